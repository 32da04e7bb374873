-- Go on from a foreign state: nothing stays but the new snapshot.
local meta, snapshot, log, ids, labels = unpack(KEYS)
local after, position, body = unpack(ARGV)

local head, stored = unpack(redis.call('HMGET', meta, 'head', 'snapshot'))
if not head then
  return {'missing'}
end
if head ~= after then
  local repeated = head == position and stored == position and redis.call('GET', snapshot) == body
  return {repeated and 'ok' or 'stale', head}
end
redis.call('UNLINK', snapshot, log, ids, labels)
redis.call('SET', snapshot, body)
redis.call('HSET', meta, 'head', position, 'snapshot', position, 'entries', 0, 'bytes', 0, 'ids', 0, 'labels', 0)
return {'ok'}

-- Replace the stream's state: only the new snapshot stays. ARGV: token, after, position, body
local meta, snapshot, log, ids, labels, _, base = unpack(KEYS)
local token, after, position, body = unpack(ARGV)

local head, stored, fence = unpack(redis.call('HMGET', meta, 'head', 'snapshot', 'fence'))
if not head then
  return {'missing'}
end
if tonumber(token) < tonumber(fence or 0) then
  return {'fenced', fence}
end
if head ~= after then
  local repeated = head == position and stored == position and redis.call('GET', snapshot) == body
  if repeated then -- a write, as in append
    redis.call('HSET', meta, 'fence', token)
  end
  return {repeated and 'ok' or 'stale', head}
end
redis.call('UNLINK', snapshot, log, ids, labels, base, unpack(KEYS, 8))
redis.call('HDEL', meta, 'base')
local seconds, microseconds = unpack(redis.call('TIME'))
local changed = string.format('%.0f', seconds * 1000 + math.floor(microseconds / 1000))
redis.call('SET', snapshot, body)
redis.call('HSET', meta, 'fence', token, 'head', position, 'snapshot', position,
  'entries', 0, 'bytes', 0, 'ids', 0, 'labels', 0, 'packed', 0, 'blocks', 0, 'buckets', 0, 'changed', changed)
return {'ok'}

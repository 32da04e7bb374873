-- Create a stream. The mark tells a repeated call from a second one. ARGV: token, mark, position, body
local meta, snapshot, lease = KEYS[1], KEYS[2], KEYS[6]
local token, mark, position, body = unpack(ARGV)

if redis.call('EXISTS', meta) == 1 then
  local repeated = redis.call('HGET', meta, 'token') == mark
  if repeated then -- a write, as in append
    redis.call('HSET', meta, 'token', mark)
  end
  return {repeated and 'ok' or 'exists'}
end
if redis.call('EXISTS', KEYS[7], unpack(KEYS, 1, 5)) > 0 then
  return {'corrupt'}
end
local leased = redis.call('HGET', lease, 'token')
if leased and tonumber(token) < tonumber(leased) then
  return {'fenced', leased}
end
redis.call('UNLINK', unpack(KEYS, 8)) -- of a stream that an earlier version deleted
local seconds, microseconds = unpack(redis.call('TIME'))
local changed = string.format('%.0f', seconds * 1000 + math.floor(microseconds / 1000))
redis.call('SET', snapshot, body)
redis.call('HSET', meta, 'token', mark, 'fence', token, 'head', position, 'snapshot', position,
  'entries', 0, 'bytes', 0, 'ids', 0, 'labels', 0, 'changed', changed)
return {'ok'}

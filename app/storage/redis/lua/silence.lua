-- Measure how long nothing was written to a stream, and its log. A stream of an older version counts as written now.
local meta = KEYS[1]
local entries, changed = unpack(redis.call('HMGET', meta, 'entries', 'changed'))
if not entries then
  return {'missing'}
end
local seconds, microseconds = unpack(redis.call('TIME'))
local now = seconds * 1000 + math.floor(microseconds / 1000)
if not changed then
  redis.pcall('HSET', meta, 'changed', string.format('%.0f', now))
end
return {'ok', math.max(0, now - (changed or now)), entries}

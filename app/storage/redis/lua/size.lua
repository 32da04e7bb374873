-- Measure a stream.
local entries, bytes = unpack(redis.call('HMGET', KEYS[1], 'entries', 'bytes'))
if not entries then
  return {'missing'}
end
return {'ok', entries, bytes, redis.call('STRLEN', KEYS[2]) + redis.call('STRLEN', KEYS[7])}

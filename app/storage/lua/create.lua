-- Begin a stream. The token tells a repeated call from a second one.
local meta, snapshot = KEYS[1], KEYS[2]
local token, position, body = unpack(ARGV)

if redis.call('EXISTS', meta) == 1 then
  return {redis.call('HGET', meta, 'token') == token and 'ok' or 'exists'}
end
if redis.call('EXISTS', unpack(KEYS)) > 0 then
  return {'corrupt'}
end
redis.call('SET', snapshot, body)
redis.call('HSET', meta, 'token', token, 'head', position, 'snapshot', position,
  'entries', 0, 'bytes', 0, 'ids', 0, 'labels', 0)
return {'ok'}

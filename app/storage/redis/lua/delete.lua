-- Delete a stream, even what is left of a damaged one. ARGV: token
local meta, lease = KEYS[1], KEYS[6]
local token = ARGV[1]

local fence = redis.pcall('HGET', meta, 'fence')
if type(fence) == 'string' and tonumber(token) < tonumber(fence) then
  return {'fenced', fence}
end
local removed = redis.call('UNLINK', KEYS[7], unpack(KEYS, 1, 5))
redis.call('UNLINK', unpack(KEYS, 8))
if redis.call('EXISTS', lease) == 0 then -- a write even if all is gone already, as in append
  redis.call('HSET', lease, 'token', token)
  redis.call('UNLINK', lease)
elseif removed > 0 then
  redis.call('UNLINK', lease)
end
return {removed > 0 and 'ok' or 'missing'}

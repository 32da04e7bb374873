-- Forget a stream, remnants of a damaged one too. ARGV: token
local token, fence = ARGV[1], redis.call('HGET', KEYS[1], 'fence')
if fence and tonumber(token) < tonumber(fence) then
  return {'fenced', fence}
end
local removed = redis.call('UNLINK', unpack(KEYS, 1, 5))
if removed > 0 then
  redis.call('UNLINK', KEYS[6])
end
return {removed > 0 and 'ok' or 'missing'}

-- Put incidents into the index of a stream, and drop the oldest beyond what it keeps. ARGV: token, how many it keeps, then
-- seq, incident, ...
local meta, incidents = KEYS[1], KEYS[8]
local token, most = ARGV[1], tonumber(ARGV[2])

local head, fence = unpack(redis.call('HMGET', meta, 'head', 'fence'))
if not head then
  return {'missing'}
end
if tonumber(token) < tonumber(fence or 0) then
  return {'fenced', fence}
end
if #ARGV > 2 then
  redis.call('HSET', incidents, unpack(ARGV, 3))
end
local excess = redis.call('HLEN', incidents) - most
if excess > 0 then
  local seqs = redis.call('HKEYS', incidents)
  table.sort(seqs, function(a, b) return tonumber(a) < tonumber(b) end)
  for place = 1, excess do
    redis.call('HDEL', incidents, seqs[place])
  end
end
return {'ok'}

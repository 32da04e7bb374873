-- Put an archived file into the index of a stream, and add labels.
-- ARGV: token, the last seq of the file, its body, its ids, then seq, label, ...
local meta, labels, files, file_ids = KEYS[1], KEYS[5], KEYS[9], KEYS[10]
local token, seq, body, ids = unpack(ARGV)

local head, fence = unpack(redis.call('HMGET', meta, 'head', 'fence'))
if not head then
  return {'missing'}
end
if tonumber(token) < tonumber(fence or 0) then
  return {'fenced', fence}
end
redis.call('HSET', files, seq, body)
redis.call('HSET', file_ids, seq, ids)
local added = 0
for i = 5, #ARGV, 2000 do -- Lua can pass about 8,000 values in one call
  added = added + redis.call('HSET', labels, unpack(ARGV, i, math.min(i + 1999, #ARGV)))
end
if added > 0 then
  redis.call('HINCRBY', meta, 'labels', added)
end
return {'ok'}

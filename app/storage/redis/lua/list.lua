-- List a stream's name if the bounds allow it. KEYS: the list. ARGV: name, then for each bound the least and the greatest
-- name that it counts, in the form of ZLEXCOUNT, and how many there may be
local list, name = KEYS[1], ARGV[1]

if redis.call('ZSCORE', list, name) then
  return {'ok'}
end
for i = 2, #ARGV, 3 do
  local count = redis.call('ZLEXCOUNT', list, ARGV[i], ARGV[i + 1])
  if count >= tonumber(ARGV[i + 2]) then
    return {'full', (i + 1) / 3, count}
  end
end
redis.call('ZADD', list, 0, name)
return {'ok'}

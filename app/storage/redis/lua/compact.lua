-- Put a block in the place of the entries that it holds, which trim.lua removes later, and buckets in the index of ids.
-- ARGV: token, after, position, how many entries, body, then bucket number, bucket, ...
local meta, _, log, _, _, _, _, _, _, _, blocks, buckets = unpack(KEYS)
local token, after, position, entries, body = unpack(ARGV, 1, 5)

local head, fence = unpack(redis.call('HMGET', meta, 'head', 'fence'))
if not head then
  return {'missing'}
end
if tonumber(token) < tonumber(fence or 0) then
  return {'fenced', fence}
end

local function goes_on(last)
  if last then
    return last[1] == after
  end
  local oldest = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
  local seq, sub = string.match(after, '(%d+)-(%d+)')
  if oldest and oldest[2][4] ~= '' then
    return tonumber(oldest[2][4]) == tonumber(seq) + 1
  end
  return oldest and oldest[1] == string.format('%s-%.0f', seq, tonumber(sub) + 1)
end

local last = redis.call('XREVRANGE', blocks, '+', '-', 'COUNT', 1)[1]
if last and last[1] == position and last[2][2] == body and last[2][4] == after then
  redis.call('HSET', meta, 'fence', token) -- a write, as in append
  return {'ok'}
end
if not goes_on(last) or not redis.call('XRANGE', log, position, position)[1] then
  return {'stale', last and last[1] or '0-0'}
end

redis.call('HDEL', meta, '') -- a full server lets a script write after it has removed something, as in acquire
redis.call('XADD', blocks, position, 'b', body, 'a', after, 'n', entries)
for i = 6, #ARGV, 2000 do
  redis.call('HSET', buckets, unpack(ARGV, i, math.min(i + 1999, #ARGV)))
end
redis.call('HSET', meta, 'fence', token, 'buckets', redis.call('HLEN', buckets))
for field, amount in pairs({entries = entries, packed = entries, bytes = #body, blocks = 1}) do
  redis.call('HINCRBY', meta, field, amount)
end
return {'ok'}

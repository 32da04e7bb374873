-- Start a stream at a snapshot, whatever is left of it. ARGV: token, position, body
local meta, snapshot = KEYS[1], KEYS[2]
local token, position, body = unpack(ARGV)

local fence = redis.pcall('HGET', meta, 'fence')
if type(fence) == 'string' and tonumber(token) < tonumber(fence) then
  return {'fenced', fence}
end
redis.call('UNLINK', unpack(KEYS, 1, 5))
redis.call('UNLINK', unpack(KEYS, 7))
local seconds, microseconds = unpack(redis.call('TIME'))
local changed = string.format('%.0f', seconds * 1000 + math.floor(microseconds / 1000))
redis.call('SET', snapshot, body)
redis.call('HSET', meta, 'fence', token, 'head', position, 'snapshot', position,
  'entries', 0, 'bytes', 0, 'ids', 0, 'labels', 0, 'packed', 0, 'blocks', 0, 'buckets', 0, 'changed', changed)
return {'ok'}

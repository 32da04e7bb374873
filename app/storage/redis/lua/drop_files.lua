-- Take the files that end at or before a sample out of the index of a stream, and these labels out of theirs.
-- ARGV: token, the last sample, then the seqs of labels
local meta, labels, files, file_ids = KEYS[1], KEYS[5], KEYS[9], KEYS[10]
local token, last = ARGV[1], tonumber(ARGV[2])

local head, fence = unpack(redis.call('HMGET', meta, 'head', 'fence'))
if not head then
  return {'missing'}
end
if tonumber(token) < tonumber(fence or 0) then
  return {'fenced', fence}
end
for _, seq in ipairs(redis.call('HKEYS', files)) do
  if tonumber(seq) <= last then
    redis.call('HDEL', files, seq)
    redis.call('HDEL', file_ids, seq)
  end
end
local removed = #ARGV > 2 and redis.call('HDEL', labels, unpack(ARGV, 3)) or 0
if removed > 0 then
  redis.call('HINCRBY', meta, 'labels', string.format('%.0f', -removed))
end
return {'ok'}

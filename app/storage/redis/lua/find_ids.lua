-- Give the seqs of ids outside blocks, and buckets of the index of ids in blocks, by linear hashing.
-- ARGV: how many ids, ids, hashes
local ids, buckets = KEYS[4], KEYS[12]
local n_ids = tonumber(ARGV[1])

local n_buckets = redis.call('HLEN', buckets)
local size = 1
while 2 * size <= n_buckets do
  size = 2 * size
end
local function bucket_of(hash)
  local number = hash % (2 * size)
  return number < n_buckets and number or number % size
end

local numbers, known = {}, {}
for i = n_ids + 2, n_buckets > 0 and #ARGV or 0 do
  local number = bucket_of(tonumber(ARGV[i]))
  if not known[number] then
    known[number] = true
    numbers[#numbers + 1] = string.format('%.0f', number)
  end
end
return {'ok', n_ids > 0 and redis.call('HMGET', ids, unpack(ARGV, 2, n_ids + 1)) or {}, n_buckets, numbers,
  #numbers > 0 and redis.call('HMGET', buckets, unpack(numbers)) or {}}

-- Read what is left of a stream, damaged or not. ARGV: the type that each key should have.
-- Gives the type of each key, and false for what cannot be read.
local meta, snapshot, log, ids, labels, _, base, _, _, _, blocks, buckets = unpack(KEYS)

local types, good = {}, {}
for place, key in ipairs(KEYS) do
  types[place] = redis.call('TYPE', key).ok
  good[key] = types[place] == ARGV[place]
end
local function read(key, ...)
  return good[key] and redis.call(...)
end
local last = read(log, 'XREVRANGE', log, '+', '-', 'COUNT', 1)
local packed = tonumber(read(meta, 'HGET', meta, 'packed') or 0)
local unpacked = read(log, 'XLEN', log)
return {'ok', types,
  read(meta, 'HMGET', meta, 'head', 'snapshot', 'base', 'entries', 'ids', 'labels', 'blocks', 'buckets'),
  read(snapshot, 'GET', snapshot), read(base, 'GET', base), last and last[1] and last[1][1] or false,
  unpacked and unpacked + packed, read(ids, 'HLEN', ids), read(labels, 'HLEN', labels),
  read(blocks, 'XLEN', blocks), read(buckets, 'HLEN', buckets)}

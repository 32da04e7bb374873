-- Read what is left of a stream, damaged or not. ARGV: the type that each key should have.
-- Gives the type of each key, and false for what cannot be read.
local meta, snapshot, log, ids, labels, _, base = unpack(KEYS)

local types, good = {}, {}
for place, key in ipairs(KEYS) do
  types[place] = redis.call('TYPE', key).ok
  good[key] = types[place] == ARGV[place]
end
local function read(key, ...)
  return good[key] and redis.call(...)
end
local last = read(log, 'XREVRANGE', log, '+', '-', 'COUNT', 1)
return {'ok', types,
  read(meta, 'HMGET', meta, 'head', 'snapshot', 'base', 'entries', 'ids', 'labels'),
  read(snapshot, 'GET', snapshot), read(base, 'GET', base), last and last[1] and last[1][1] or false,
  read(log, 'XLEN', log), read(ids, 'HLEN', ids), read(labels, 'HLEN', labels)}

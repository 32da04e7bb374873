-- Read the snapshot and the head, and all that shows whether anything is missing.
local meta, snapshot, log, ids, labels = unpack(KEYS)

local known = redis.call('HMGET', meta, 'head', 'snapshot', 'entries', 'ids', 'labels')
if not known[1] then
  return {redis.call('EXISTS', KEYS[7], unpack(KEYS, 1, 5)) == 0 and 'missing' or 'corrupt'}
end
local first = redis.call('XRANGE', log, '(' .. known[2], '+', 'COUNT', 1)[1]
local last = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
return {'ok', known[1], known[2], redis.call('GET', snapshot), first or false, last and last[1] or false,
  known[3], redis.call('XLEN', log), known[4], redis.call('HLEN', ids), known[5], redis.call('HLEN', labels)}

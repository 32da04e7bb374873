-- Read the snapshot and the head, and all that shows whether anything is missing.
local meta, snapshot, log, ids, labels, _, _, _, _, _, blocks, buckets = unpack(KEYS)

local head, at, entries, packed, of_ids, of_labels, of_blocks, of_buckets = unpack(redis.call('HMGET', meta,
  'head', 'snapshot', 'entries', 'packed', 'ids', 'labels', 'blocks', 'buckets'))
if not head then
  return {redis.call('EXISTS', KEYS[7], unpack(KEYS, 1, 5)) == 0 and 'missing' or 'corrupt'}
end
local begin = at
local block = redis.call('XRANGE', blocks, '(' .. at, '+', 'COUNT', 1)[1] -- only a copy under way has one
if block then
  begin = redis.call('XREVRANGE', blocks, '+', '-', 'COUNT', 1)[1][1]
end
local first = redis.call('XRANGE', log, '(' .. begin, '+', 'COUNT', 1)[1]
local last = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
return {'ok', head, at, redis.call('GET', snapshot), block and block[2][4] or at, begin, first or false,
  last and last[1] or false,
  entries, redis.call('XLEN', log) + (packed or 0), of_ids, redis.call('HLEN', ids), of_labels, redis.call('HLEN', labels),
  of_blocks, redis.call('XLEN', blocks), of_buckets, redis.call('HLEN', buckets)}

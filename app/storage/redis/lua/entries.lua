-- Read a page of the log, or the block that holds the first entry of the page. ARGV: after, limit, bytes of a full page
local log, blocks = KEYS[3], KEYS[11]
local after, limit, full = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local block = redis.call('XRANGE', blocks, '(' .. after, '+', 'COUNT', 1)[1]
if block then
  return {'block', block}
end
local page, bytes = {}, 0
while #page < limit and bytes < full do
  local entry = redis.call('XRANGE', log, '(' .. after, '+', 'COUNT', 1)[1]
  if not entry then break end
  page[#page + 1] = entry
  after, bytes = entry[1], bytes + #entry[2][2]
end
return {'ok', page}

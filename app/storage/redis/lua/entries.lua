-- Read a page of the log. ARGV: after, limit, bytes of a full page
local log = KEYS[3]
local after, limit, full = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local page, bytes = {}, 0
while #page < limit and bytes < full do
  local entry = redis.call('XRANGE', log, '(' .. after, '+', 'COUNT', 1)[1]
  if not entry then break end
  page[#page + 1] = entry
  after, bytes = entry[1], bytes + #entry[2][2]
end
return {'ok', page}

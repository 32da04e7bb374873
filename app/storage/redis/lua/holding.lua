-- Read a page of the distinct blocks and batches that hold some samples: {block or false, batch or false} each.
-- ARGV: bytes of a full page, the seqs in rising order
local log, blocks = KEYS[3], KEYS[11]
local full = tonumber(ARGV[1])

-- The first batch that ends at or after a seq. Label events stand at sub 1 and on, none has a batch after it at its seq.
local function next_batch(seq)
  local entry = redis.call('XRANGE', log, seq .. '-0', '+', 'COUNT', 1)[1]
  while entry and entry[2][4] == '' do
    local label_seq = string.match(entry[1], '%d+')
    entry = redis.call('XRANGE', log, string.format('%.0f-0', tonumber(label_seq) + 1), '+', 'COUNT', 1)[1]
  end
  return entry
end

local has_blocks = redis.call('EXISTS', blocks) == 1
local function next_block(seq)
  return has_blocks and redis.call('XRANGE', blocks, seq .. '-0', '+', 'COUNT', 1)[1]
end

local found, held, bytes = {}, 0, 0
for place = 2, #ARGV do
  local seq = ARGV[place]
  if bytes >= full then break end
  if tonumber(seq) > held then
    local block = next_block(seq)
    local part = block or next_batch(seq)
    if not part then break end
    local first = block and tonumber(string.match(part[2][4], '%d+')) + 1 or tonumber(part[2][4])
    if first <= tonumber(seq) then
      found[#found + 1] = {block or false, not block and part or false}
      bytes = bytes + #part[2][2]
      held = tonumber(string.match(part[1], '%d+'))
    end
  end
end
return {'ok', found}

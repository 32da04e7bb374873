-- Read a page of the distinct batches that hold some samples. ARGV: bytes of a full page, the seqs in rising order
local log = KEYS[3]
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

local found, held, bytes = {}, 0, 0
for place = 2, #ARGV do
  local seq = ARGV[place]
  if bytes >= full then break end
  if tonumber(seq) > held then
    local entry = next_batch(seq)
    if not entry then break end
    if tonumber(entry[2][4]) <= tonumber(seq) then
      found[#found + 1] = entry
      bytes = bytes + #entry[2][2]
      held = tonumber(string.match(entry[1], '%d+'))
    end
  end
end
return {'ok', found}

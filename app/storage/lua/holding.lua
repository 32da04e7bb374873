-- Read the distinct batches that hold some samples. ARGV: their seqs, rising
local log = KEYS[3]

-- The first batch that ends at or after a seq. Label events stand at sub 1 and on, none has a batch after it at its seq.
local function next_batch(seq)
  local entry = redis.call('XRANGE', log, seq .. '-0', '+', 'COUNT', 1)[1]
  while entry and entry[2][4] == '' do
    local label_seq = string.match(entry[1], '%d+')
    entry = redis.call('XRANGE', log, string.format('%.0f-0', tonumber(label_seq) + 1), '+', 'COUNT', 1)[1]
  end
  return entry
end

local found, held = {}, 0
for _, seq in ipairs(ARGV) do
  if tonumber(seq) > held then
    local entry = next_batch(seq)
    if not entry then break end
    if tonumber(entry[2][4]) <= tonumber(seq) then
      found[#found + 1] = entry
      held = tonumber(string.match(entry[1], '%d+'))
    end
  end
end
return {'ok', found}

-- Drop some of the entries up to a position, with their ids and labels: {'more'} while there may be others.
-- Steps are small, since the server does nothing else during one. ARGV: position, 1 to keep the labels
local meta, _, log, ids, labels = unpack(KEYS)
local last = ARGV[1]
local STEP_SAMPLES, STEP_ENTRIES, PAGE = 5000, 256, 16

local function parse(position)
  local seq, sub = string.match(position, '(%d+)-(%d+)')
  return tonumber(seq), tonumber(sub)
end

local function remove(key, fields)
  local removed = 0
  for i = 1, #fields, 2000 do
    removed = removed + redis.call('HDEL', key, unpack(fields, i, math.min(i + 1999, #fields)))
  end
  return removed
end

-- A newer sample may have the same id: it stays.
local function remove_ids(names, seqs)
  local own = {}
  for i = 1, #names, 2000 do
    local known = redis.call('HMGET', ids, unpack(names, i, math.min(i + 1999, #names)))
    for j, seq in ipairs(known) do
      if seq == seqs[i + j - 1] then
        own[#own + 1] = names[i + j - 1]
      end
    end
  end
  return remove(ids, own)
end

local function lower(field, amount)
  if amount > 0 then -- the negative of 0 is "-0", which Redis takes for no number
    redis.call('HINCRBY', meta, field, string.format('%.0f', -amount))
  end
end

local last_seq, last_sub = parse(last)
for _, kind in ipairs({'snapshot', 'base'}) do
  local stored = redis.call('HGET', meta, kind)
  if not stored then
    return {'missing'}
  end
  local seq, sub = parse(stored)
  if seq < last_seq or (seq == last_seq and sub < last_sub) then
    return {'ok'} -- another stream of the same name: it is not ours to trim
  end
end

local names, name_seqs, seqs = {}, {}, {}
local entries, bytes, from, newest = 0, 0, '-', nil
while entries < STEP_ENTRIES and #seqs < STEP_SAMPLES do
  local page = redis.call('XRANGE', log, from, last, 'COUNT', PAGE)
  for _, entry in ipairs(page) do
    local body, first, packed = entry[2][2], tonumber(entry[2][4]), entry[2][6]
    newest, entries, bytes = entry[1], entries + 1, bytes + #body
    if first then
      for seq = first, parse(newest) do
        seqs[#seqs + 1] = string.format('%.0f', seq)
      end
    end
    if packed ~= '' then
      for offset, id in ipairs(cmsgpack.unpack(packed)) do
        if id ~= '' then
          names[#names + 1] = id
          name_seqs[#name_seqs + 1] = string.format('%.0f', first + offset - 1)
        end
      end
    end
  end
  if #page < PAGE then break end
  from = '(' .. newest
end
if not newest then
  return {'ok'}
end

local seq, sub = parse(newest)
redis.call('XTRIM', log, 'MINID', '=', string.format('%.0f-%.0f', seq, sub + 1))
lower('entries', entries)
lower('bytes', bytes)
lower('ids', remove_ids(names, name_seqs))
lower('labels', ARGV[2] == '1' and 0 or remove(labels, seqs))
return {'more'}

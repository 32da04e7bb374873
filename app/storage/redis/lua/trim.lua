-- Remove entries that a block holds, or drop a block or some of the entries up to a position, with their ids and labels:
-- {'more'} while there may be others. Steps are small, since the server does nothing else during one.
-- ARGV: the position, or '' only to remove what blocks hold; 1 to keep the labels
local meta, _, log, ids, labels, _, _, _, _, _, blocks, buckets = unpack(KEYS)
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

-- Remove some of the entries up to a position, with their ids. Gives the position of the newest, and the seqs of all.
local function remove_entries(last)
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
  if newest then
    local seq, sub = parse(newest)
    redis.call('XTRIM', log, 'MINID', '=', string.format('%.0f-%.0f', seq, sub + 1))
    lower('entries', entries)
    lower('bytes', bytes)
    lower('ids', remove_ids(names, name_seqs))
  end
  return newest, seqs
end

-- Drop the oldest block, with its labels; with the last one the index of its ids.
local function drop_block(block)
  local first, seqs = parse(block[2][4]), {}
  if ARGV[2] ~= '1' and redis.call('EXISTS', labels) == 1 then
    for seq = first + 1, parse(block[1]) do
      seqs[#seqs + 1] = string.format('%.0f', seq)
    end
    lower('labels', remove(labels, seqs))
  end
  redis.call('XDEL', blocks, block[1])
  lower('entries', tonumber(block[2][6]))
  lower('packed', tonumber(block[2][6]))
  lower('bytes', #block[2][2])
  lower('blocks', 1)
  if redis.call('XLEN', blocks) == 0 then
    redis.call('UNLINK', blocks, buckets)
    redis.call('HSET', meta, 'buckets', 0)
  end
end

local newest = redis.call('XREVRANGE', blocks, '+', '-', 'COUNT', 1)[1]
if newest and remove_entries(newest[1]) then
  return {'more'}
end
if last == '' then
  return {'ok'}
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

local block = redis.call('XRANGE', blocks, '-', last, 'COUNT', 1)[1]
if block then
  drop_block(block)
  return {'more'}
end
local removed, seqs = remove_entries(last)
if not removed then
  return {'ok'}
end
lower('labels', ARGV[2] == '1' and 0 or remove(labels, seqs))
return {'more'}

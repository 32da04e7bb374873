-- Add an entry if the head is at `after`.
-- ARGV: token, after, position, body, first seq ('' for a label event), packed ids ('' for none), how many values tell of
-- incidents, then seq, incident, ..., then seq, label, ...
local meta, _, log, ids, labels, _, _, incidents = unpack(KEYS)
local token, after, position, body, first, packed = unpack(ARGV, 1, 6)
local told = tonumber(ARGV[7])

-- Lua can pass about 8,000 values in one call.
local function put(key, list, from)
  local added = 0
  for i = from, #list, 2000 do
    added = added + redis.call('HSET', key, unpack(list, i, math.min(i + 1999, #list)))
  end
  return added
end

local function seqs_by_id()
  local list, seq = {}, tonumber(first)
  for offset, id in ipairs(cmsgpack.unpack(packed)) do
    if id ~= '' then
      list[#list + 1] = id
      list[#list + 1] = string.format('%.0f', seq + offset - 1) -- tostring rounds to 14 digits
    end
  end
  return list
end

local head, fence = unpack(redis.call('HMGET', meta, 'head', 'fence'))
if not head then
  return {'missing'}
end
if tonumber(token) < tonumber(fence or 0) then
  return {'fenced', fence}
end
if head ~= after then
  local last = redis.call('XRANGE', log, position, position)[1]
  local repeated = head == position and last and last[2][2] == body
  if repeated then -- a write, that WAIT and WAITAOF on this connection have something to wait for
    redis.call('HSET', meta, 'fence', token)
  end
  return {repeated and 'ok' or 'stale', head}
end

-- XADD comes first: a full server refuses it before anything has changed.
redis.call('XADD', log, position, 'b', body, 'f', first, 'i', packed)
local seconds, microseconds = unpack(redis.call('TIME'))
local changed = string.format('%.0f', seconds * 1000 + math.floor(microseconds / 1000))
redis.call('HSET', meta, 'head', position, 'fence', token, 'changed', changed)
redis.call('HINCRBY', meta, 'entries', 1)
redis.call('HINCRBY', meta, 'bytes', #body)
if packed ~= '' then
  redis.call('HINCRBY', meta, 'ids', put(ids, seqs_by_id(), 1))
end
if told > 0 then
  redis.call('HSET', incidents, unpack(ARGV, 8, 7 + told))
end
if #ARGV > 7 + told then
  redis.call('HINCRBY', meta, 'labels', put(labels, ARGV, 8 + told))
end
return {'ok', position, told > 0 and redis.call('HLEN', incidents) or 0}

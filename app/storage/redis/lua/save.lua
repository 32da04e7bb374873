-- Replace the snapshot by one that is neither older nor beyond the head, and the base if it is due.
-- ARGV: token, position, body, up to where the log will be trimmed, samples after which a base is old, 1 to replace it now
local meta, snapshot, base = KEYS[1], KEYS[2], KEYS[7]
local token, position, body, last, old, as_base = unpack(ARGV)

local function is_later(a, b)
  local a_seq, a_sub = string.match(a, '(%d+)-(%d+)')
  local b_seq, b_sub = string.match(b, '(%d+)-(%d+)')
  if a_seq ~= b_seq then
    return tonumber(a_seq) > tonumber(b_seq)
  end
  return tonumber(a_sub) > tonumber(b_sub)
end

local head, stored, based, fence = unpack(redis.call('HMGET', meta, 'head', 'snapshot', 'base', 'fence'))
if not head then
  return {'missing'}
end
if tonumber(token) < tonumber(fence or 0) then
  return {'fenced', fence}
end
if is_later(stored, position) then
  return {'stale', stored}
end
if is_later(position, head) then
  return {'stale', head}
end
-- A full server lets a script write once it has freed something: without this it could never trim, and never heal.
redis.call('UNLINK', snapshot)
redis.call('SET', snapshot, body)
redis.call('HSET', meta, 'snapshot', position)
local function samples(a)
  return tonumber(string.match(a, '%d+'))
end
if as_base == '1' or not based or is_later(last, based) or samples(position) - samples(based) >= tonumber(old) then
  redis.call('SET', base, body)
  redis.call('HSET', meta, 'base', position)
end
return {'ok'}

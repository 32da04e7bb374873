-- Replace the snapshot by one that is not older and not later than the head. ARGV: token, position, body
local meta, snapshot = KEYS[1], KEYS[2]
local token, position, body = unpack(ARGV)

local function is_later(a, b)
  local a_seq, a_sub = string.match(a, '(%d+)-(%d+)')
  local b_seq, b_sub = string.match(b, '(%d+)-(%d+)')
  if a_seq ~= b_seq then
    return tonumber(a_seq) > tonumber(b_seq)
  end
  return tonumber(a_sub) > tonumber(b_sub)
end

local head, stored, fence = unpack(redis.call('HMGET', meta, 'head', 'snapshot', 'fence'))
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
return {'ok'}

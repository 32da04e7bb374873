-- Extend leases, even ended ones that nobody has taken since.
-- Gives the places of the lost ones.
-- KEYS: meta, lease, meta, lease, ... ARGV: owner, milliseconds until the keys go, token, token, ...
local owner, milliseconds = unpack(ARGV, 1, 2)

-- Ignore a key of another type: it must not stop the others.
local function says(key, field, value)
  return redis.pcall('HGET', key, field) == value
end

local function is_free(meta, lease, token)
  return redis.call('EXISTS', lease) == 0 and says(meta, 'fence', token)
end

local lost = {}
for place = 1, #KEYS / 2 do
  local meta, lease, token = KEYS[2 * place - 1], KEYS[2 * place], ARGV[place + 2]
  if says(lease, 'token', token) then
    redis.call('PEXPIRE', lease, milliseconds)
  elseif is_free(meta, lease, token) then
    redis.call('UNLINK', lease) -- for a full server, as in acquire
    redis.call('HSET', lease, 'owner', owner, 'token', token)
    redis.call('PEXPIRE', lease, milliseconds)
  else
    lost[#lost + 1] = place
  end
end
return {'ok', lost}

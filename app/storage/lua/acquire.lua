-- Lease a stream unless another holds it; it need not exist. The key outlives the lease, so that a renewal that comes late
-- finds whether anybody came since. ARGV: owner, milliseconds, milliseconds for which the key outlives it
local meta, lease = KEYS[1], KEYS[6]
local owner, milliseconds, kept = unpack(ARGV)

-- A key that is no hash says nothing: a damaged stream can be leased, so that it can be repaired or deleted.
local function fields(key, ...)
  return unpack(redis.call('TYPE', key).ok == 'hash' and redis.call('HMGET', key, ...) or {})
end

local holder, token = fields(lease, 'owner', 'token')
local left = redis.call('PTTL', lease) - kept
if holder and holder ~= owner and left > 0 then
  redis.pcall('HSET', lease, 'wanted', 1) -- the holder may leave it; a full server forgets to ask
  return {'held', left}
end
local head, fence = fields(meta, 'head', 'fence')
local seconds, microseconds = unpack(redis.call('TIME'))
-- Higher than all before. The clock sees to it where a stream was deleted, or a fail-over lost the last token.
local newest = math.max(tonumber(token or 0) + 1, tonumber(fence or 0) + 1, seconds * 1000000 + microseconds)
newest = string.format('%.0f', newest)
-- A full server lets a script write once it has removed something: without this nothing could be deleted there.
redis.call('UNLINK', lease)
redis.call('HSET', lease, 'owner', owner, 'token', newest)
redis.call('PEXPIRE', lease, milliseconds + kept)
if head then
  redis.call('HSET', meta, 'fence', newest)
end
return {'ok', newest}

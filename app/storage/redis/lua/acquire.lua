-- Lease a stream unless another holds it; it need not exist. The key outlives the lease, so that a renewal that comes late
-- finds whether anybody came since. Milliseconds: of the lease, for which its key outlives it, and for which the holder will
-- not hand the stream over. ARGV: owner, milliseconds, milliseconds, milliseconds
local meta, lease = KEYS[1], KEYS[6]
local owner, milliseconds, outlives, keeps = unpack(ARGV)

-- A key that is no hash says nothing: a damaged stream can be leased, so that it can be repaired or deleted.
local function fields(key, ...)
  return unpack(redis.call('TYPE', key).ok == 'hash' and redis.call('HMGET', key, ...) or {})
end

local seconds, microseconds = unpack(redis.call('TIME'))
local now = seconds * 1000 + math.floor(microseconds / 1000)
local holder, token, kept = fields(lease, 'owner', 'token', 'kept')
local left = redis.call('PTTL', lease) - outlives
if holder and holder ~= owner and left > 0 then
  return {'held', left, holder, math.max(0, tonumber(kept or 0) - now)}
end
local head, fence = fields(meta, 'head', 'fence')
-- Higher than all before. The clock sees to it where a stream was deleted, or a fail-over lost the last token.
local newest = math.max(tonumber(token or 0) + 1, tonumber(fence or 0) + 1, seconds * 1000000 + microseconds)
newest = string.format('%.0f', newest)
-- A full server lets a script write once it has removed something: without this nothing could be deleted there.
redis.call('UNLINK', lease)
redis.call('HSET', lease, 'owner', owner, 'token', newest, 'kept', string.format('%.0f', now + keeps))
redis.call('PEXPIRE', lease, milliseconds + outlives)
if head then
  redis.call('HSET', meta, 'fence', newest)
end
return {'ok', newest}

-- Lease a stream, which need not exist, unless another owner holds it. The key outlives the lease, so that a late renewal
-- sees whether another owner has taken it since. Milliseconds: how long the lease lasts, how much longer its key lasts, and
-- how long the holder will not hand the stream over. ARGV: owner, milliseconds, milliseconds, milliseconds
local meta, lease = KEYS[1], KEYS[6]
local owner, milliseconds, outlives, keeps = unpack(ARGV)

-- Ignore a key of another type: a damaged stream can be leased, so that it can be repaired or deleted.
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
-- Higher than all tokens before: the clock ensures it after a deletion, or a fail-over that lost the last token.
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

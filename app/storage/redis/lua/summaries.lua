-- Keep the summaries of streams, each after the token of its writer, unless a newer token was there.
-- KEYS: the hash of all. ARGV: for each its stream, the token or '' to replace none, and the summary
local summaries = KEYS[1]

for i = 1, #ARGV, 3 do
  local stream, token, body = unpack(ARGV, i, i + 2)
  local present = redis.call('HGET', summaries, stream)
  local newest = present and tonumber(string.match(present, '^%d+'))
  if not newest or (token ~= '' and tonumber(token) >= newest) then
    redis.call('HSET', summaries, stream, (token == '' and '0' or token) .. ' ' .. body)
  end
end

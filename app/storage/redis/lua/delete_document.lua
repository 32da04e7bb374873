-- Delete a document if it is the expected one; if none is there, it is a repeated call.
-- KEYS: the hash of its kind. ARGV: name, expected body
local documents = KEYS[1]
local name, expected = unpack(ARGV)

local present = redis.call('HGET', documents, name)
if present and present ~= expected then
  return {'changed'}
end
redis.call('HDEL', documents, name)
return {'ok'}

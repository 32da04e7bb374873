-- Keep a document if the expected one is there, or none is and none is expected. If this body is there already, it is
-- a repeated call: write it again, that WAIT and WAITAOF on this connection have something to wait for.
-- KEYS: the hash of its kind. ARGV: name, body, then the expected body, if any
local documents = KEYS[1]
local name, body, expected = unpack(ARGV)

local present = redis.call('HGET', documents, name)
if present ~= (expected or false) and present ~= body then
  return {'changed'}
end
redis.call('HSET', documents, name, body)
return {'ok'}

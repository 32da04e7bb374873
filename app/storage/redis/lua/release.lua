-- End those leases that are still held. KEYS: lease, lease, ... ARGV: token, token, ...
for place, lease in ipairs(KEYS) do
  if redis.pcall('HGET', lease, 'token') == ARGV[place] then -- pcall: a key of another type must not stop the others
    redis.call('UNLINK', lease)
  end
end
return {'ok'}

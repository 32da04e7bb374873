-- End those leases that still stand. KEYS: lease, lease, ... ARGV: token, token, ...
for place, lease in ipairs(KEYS) do
  if redis.call('HGET', lease, 'token') == ARGV[place] then
    redis.call('UNLINK', lease)
  end
end
return {'ok'}

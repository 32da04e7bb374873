-- Read a page of the log. ARGV: after, limit
return {'ok', redis.call('XRANGE', KEYS[3], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])}

-- Say where the newest block ends.
local newest = redis.call('XREVRANGE', KEYS[11], '+', '-', 'COUNT', 1)[1]
return {'ok', newest and newest[1] or false}

-- Forget a stream, remnants of a damaged one too.
return {redis.call('UNLINK', unpack(KEYS)) > 0 and 'ok' or 'missing'}

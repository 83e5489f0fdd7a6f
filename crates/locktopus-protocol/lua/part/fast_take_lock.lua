-- Fast path: takes a lock, if a token was reserved.
if fast_token then
  redis.call('HSET', KEYS[1], ARGV[1], '1')
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return fast_token <= now and fast_token or {1, fast_token, now}
end

-- Fast path: takes a mutex if a token was reserved. A single-key mutex has no token.
if fast_token then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return fast_token <= now and fast_token or {1, fast_token, now}
end
if not KEYS[3] and ARGV[7] == '0' and not late and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return now
end

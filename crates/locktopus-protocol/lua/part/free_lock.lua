-- Takes a lock with the token of the usual case.
if free_token then
  redis.call('HSET', KEYS[1], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return free_token == now and now or {1, free_token, now}
end

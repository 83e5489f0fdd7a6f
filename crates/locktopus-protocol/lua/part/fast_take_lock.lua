-- Takes a lock with the token of the usual case.
if usual_token then
  redis.call('HSET', KEYS[1], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return usual_token == now and now or {1, usual_token, now}
end

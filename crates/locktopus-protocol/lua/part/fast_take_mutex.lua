-- Takes a mutex with the token of the usual case; one of a single key has no token.
if usual_token then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return usual_token == now and now or {1, usual_token, now}
end
if not KEYS[3] and ARGV[7] == '0' and not late and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return now
end

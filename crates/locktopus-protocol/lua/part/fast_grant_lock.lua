-- Gives the heir of the usual case a lock.
if usual_token then
  redis.call('HSET', KEYS[1], heir, 1)
  redis.call('PEXPIRE', KEYS[1], heir_lease)
end

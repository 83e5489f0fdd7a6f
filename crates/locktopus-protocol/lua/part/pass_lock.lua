-- Gives the heir of the usual case a lock.
if passed then
  redis.call('HSET', KEYS[1], heir, 1)
  redis.call('PEXPIRE', KEYS[1], heir_lease)
  return 1
end

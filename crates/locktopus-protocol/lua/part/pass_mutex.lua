-- Gives the heir of the usual case a mutex.
if passed then
  redis.call('SET', KEYS[1], heir, 'PX', heir_lease)
  return 1
end

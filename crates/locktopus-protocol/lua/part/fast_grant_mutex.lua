-- Gives the heir of the usual case a mutex.
if usual_token then
  redis.call('SET', KEYS[1], heir, 'PX', heir_lease)
end

-- The heir of the usual case, who was given the lock, leaves the queue and is told: last, because who hears it believes it.
if usual_token then
  redis.call('ZREM', KEYS[3], heir)
  redis.call('HDEL', KEYS[4], heir)
  local text = usual_token == now and time[1] .. string.sub(time[2] + 1000000, 2) or string.format('%.0f', usual_token)
  redis.pcall(publish, heir_inbox, text .. ' ' .. heir)
  return 1
end

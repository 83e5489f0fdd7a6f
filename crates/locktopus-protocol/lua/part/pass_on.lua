-- Tells the heir of the usual case. Defines `passed`: it is told, has left the queue, and is to be given the lock.
-- Nobody is given anything who certainly does not listen: the long way passes over them.
local passed = false
if usual_token then
  local text = usual_token == now and time[1] .. string.sub(time[2] + 1000000, 2) or string.format('%.0f', usual_token)
  passed = redis.pcall(publish, heir_inbox, text .. ' ' .. heir) ~= 0 or publish == 'publish'
  if passed then
    redis.call('ZREM', KEYS[3], heir)
    redis.call('HDEL', KEYS[4], heir)
  end
end

-- Fast path: the new holder leaves the queue, and its grant is published last, because its process relies on it at once.
if fast_token then
  redis.call('ZREM', KEYS[3], head)
  redis.call('HDEL', KEYS[4], head)
  local text = fast_token == now and time[1] .. string.sub(time[2] + 1000000, 2) or string.format('%.0f', fast_token)
  redis.pcall(publish, head_inbox, text .. ' ' .. head)
  return 1
end

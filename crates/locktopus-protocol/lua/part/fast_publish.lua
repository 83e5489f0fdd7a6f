-- Fast path: the new holder leaves the queue, and its grant is published last, because its process relies on it at once.
-- A head that is not granted the lock here keeps its place.
if fast_token then
  redis.call('HDEL', KEYS[4], head)
  local text = fast_token == now and time[1] .. string.sub(time[2] + 1000000, 2) or string.format('%.0f', fast_token)
  redis.pcall(publish, head_inbox, text .. ' ' .. head)
  return 1
end
if head then
  redis.call('ZADD', KEYS[3], ticket, head)
  if redis.call('PTTL', KEYS[3]) == -1 then
    -- It was alone, and the time after which its queue is forgotten went with it. The records have at least the same.
    redis.call('PEXPIRE', KEYS[3], math.max(60000, redis.call('PTTL', KEYS[4])))
  end
end

-- Fast path: forgets the new holder's heartbeat and publishes the grant last, because its process
-- relies on it at once. A head that gets no grant here keeps its place.
if fast_token then
  if math.abs(now - ticket) >= head_place * 125 then
    redis.call('HDEL', KEYS[4], head)
  end
  -- In the same second as the clock, the token has that second's digits and needs no formatting.
  local micros = time[2] + fast_token - now
  local text = micros >= 0 and fast_token <= now and time[1] .. string.sub(micros + 1000000, 2)
    or string.format('%.0f', fast_token)
  redis.pcall(publish, head_inbox, text .. ' ' .. head)
  return 1
end
if member then
  redis.call('ZADD', KEYS[3], ticket, member)
  if redis.call('PTTL', KEYS[3]) == -1 then
    -- It was alone, so the expiry of its queue was lost with it. Heartbeats set at least this one.
    redis.call('PEXPIRE', KEYS[3], math.max(60000, 2 * (head_place or 0), redis.call('PTTL', KEYS[4])))
  end
end

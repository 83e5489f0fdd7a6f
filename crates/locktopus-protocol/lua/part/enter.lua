-- Taking a place in the waiting queue of every kind but the fair lock. Needs what the queue needs, and `time`. Defines `enter`.

-- Takes a place at the end, or keeps the one there is. Returns how many are ahead; of a newcomer at most 1, as they are not
-- counted for it.
local function enter(owner, place, rest, _, newcomer)
  -- Milliseconds have few enough digits to be written out by themselves, microseconds have not.
  local record = (now - now % 1000) / 1000 + place .. ' ' .. rest
  local new = redis.call('HSET', KEYS[4], owner, record) == 1
  local rank = not new and redis.call('ZRANK', KEYS[3], owner)
  local ahead = rank
  local last = true
  if not rank then
    last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]
    local ticket = time[1] .. string.sub(time[2] + 1000000, 2)
    if last and last + 1 > now then
      -- After the clock was set back, newcomers must still queue behind those who wait already.
      ticket = string.format('%.0f', last + 1)
    end
    redis.call('ZADD', KEYS[3], ticket, owner)
    ahead = last and (newcomer and 1 or redis.call('ZCARD', KEYS[3]) - 1) or 0
  end
  -- Heartbeats keep the queue; of a hot one whose waiters leave before their first, every sixteenth newcomer.
  local ttl = math.max(60000, 2 * place)
  if not last then
    redis.call('PEXPIRE', KEYS[3], ttl)
    -- A recall note there may have to stay longer.
    if redis.call('PEXPIRE', KEYS[4], ttl, 'NX') == 0 then
      redis.call('PEXPIRE', KEYS[4], ttl, 'GT')
    end
  elseif rank or now % 16 == 0 then
    redis.call('PEXPIRE', KEYS[3], ttl, 'GT')
    redis.call('PEXPIRE', KEYS[4], ttl, 'GT')
  end
  return ahead
end

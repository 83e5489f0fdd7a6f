-- Takes a place in the queue of every kind but the fair lock; `queue` describes its content. Needs
-- `time`, `now`; KEYS and ARGV of acquire. Defines `look_back`, `tail`, `place_of`, `rejoin`,
-- `enter`.

-- As in `queue`, which comes later.
local ASIDE = 4e15

-- The greatest ticket of the waiters set aside, as far as this script has seen; 0 if none.
local aside = 0

-- The last in the queue and its ticket. Empty if there are no waiters, and false if all are set
-- aside.
local function last_in_line()
  local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')
  if last[1] and last[2] + 0 >= ASIDE then
    aside = last[2] - ASIDE
    last = redis.call('ZRANGE', KEYS[3], '(4e15', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
    last[1] = last[1] or false
  end
  return last
end

-- The result of `last_in_line`, kept by `look_back`.
local tail

-- Whether any waiter is in the queue.
local function look_back()
  tail = last_in_line()
  return tail[1]
end

-- The place that this attempt wants, as a member of the queue. `inbox` replaces its inbox.
local function place_of(owner, inbox)
  return table.concat({ARGV[10], ARGV[2], ARGV[7], ARGV[6], ARGV[5], #owner, owner, inbox or ARGV[11]}, ' ')
end

-- Notes that a waiter is alive now, unless its ticket shows that for long enough.
local function note(owner, place, ticket)
  if math.abs(now - ticket) < place * 125 then
    return
  end
  -- Milliseconds are short enough to convert to text exactly; microseconds are not.
  redis.call('HSET', KEYS[4], owner, (now - now % 1000) / 1000 + place .. '')
  -- A recall note in this hash may have to stay longer.
  local ttl = math.max(60000, 2 * place)
  if redis.call('PEXPIRE', KEYS[4], ttl, 'NX') == 0 then
    redis.call('PEXPIRE', KEYS[4], ttl, 'GT')
  end
end

-- Puts a waiter back into the queue if it was set aside. Returns its ticket (nil if it has no
-- place) and whether it was set aside. A place that it took with its other inbox changes to this
-- one.
local function come_back(owner, member)
  local ticket = redis.call('ZSCORE', KEYS[3], member)
  if not ticket and ARGV[15] then
    local other = place_of(owner, ARGV[15])
    ticket = redis.call('ZSCORE', KEYS[3], other)
    if ticket then
      redis.call('ZREM', KEYS[3], other)
      redis.call('ZADD', KEYS[3], ticket, member)
    end
  end
  if not ticket or ticket + 0 < ASIDE then
    return ticket, false
  end
  ticket = ticket - ASIDE
  redis.call('ZADD', KEYS[3], ticket, member)
  return ticket, true
end

-- The same for the waiter of this attempt. Returns only whether it was set aside.
local function rejoin(owner)
  return select(2, come_back(owner, place_of(owner)))
end

-- A heartbeat for this place. Returns how many are ahead; nil if there is no such place.
local function stay(owner, place, member)
  local ticket = come_back(owner, member)
  if not ticket then
    return nil
  end
  redis.call('PEXPIRE', KEYS[3], math.max(60000, 2 * place), 'GT')
  note(owner, place, ticket)
  return redis.call('ZRANK', KEYS[3], member)
end

-- Takes a place at the end, or keeps the existing one. Returns how many are ahead; for a newcomer
-- at most 1, because it needs no exact count.
local function enter(owner, place, _, newcomer)
  local member = place_of(owner)
  local ahead = not newcomer and stay(owner, place, member)
  if ahead then
    return ahead
  end
  local last = (tail or last_in_line())[2]
  local greatest = math.max(last or 0, aside)
  local ticket = time[1] .. string.sub(time[2] + 1000000, 2)
  local ahead_of_clock = greatest + 1 > now
  if ahead_of_clock then
    -- After the clock was set back, newcomers must still queue behind earlier waiters.
    ticket = string.format('%.0f', greatest + 1)
  end
  if redis.call('ZADD', KEYS[3], 'NX', ticket, member) == 0 then
    -- A newcomer's attempt that runs twice.
    come_back(owner, member)
    return redis.call('ZRANK', KEYS[3], member)
  end
  if ahead_of_clock then
    note(owner, place, ticket)
  end
  -- Heartbeats keep the queue alive. In a hot queue whose waiters leave before their first
  -- heartbeat, every sixteenth newcomer does.
  if greatest == 0 then
    redis.call('PEXPIRE', KEYS[3], math.max(60000, 2 * place))
  elseif now % 16 == 0 then
    redis.call('PEXPIRE', KEYS[3], math.max(60000, 2 * place), 'GT')
  end
  return last and (newcomer and 1 or redis.call('ZRANK', KEYS[3], member)) or 0
end

-- The differences of a rate limiter from a semaphore. KEYS[5] holds the taken permits (sorted set:
-- '<permits> <owner>' -> server time in ms at which they come back). The mark in KEYS[6] is
-- 'rate_limiter <permits> <period in ms>'. Only Locktopus writes that mark, so a number without it
-- is no rate limiter. Needs all that `hold_semaphore` defines, and `now`. Redefines some of it.
KIND, turns, letters = 'rate_limiter', 'timed', 't'

used_as = function()
  if not used then
    used, all, drained = counted_as(KIND, KEYS[6], KEYS[7])
    used = used == 'ours' and not all and 'other' or used
  end
  return used
end

-- Takes back the due permits of up to 1,024 requests. Permits never stay away longer than a period
-- from now; otherwise they could after the clock was set back or the period became shorter.
local reap_some = reap
reap = function()
  local any, latest = came_back, used_as() == 'ours' and math.ceil(now / 1000) + drained
  for _ = 1, 16 do
    local late = latest and redis.call('ZRANGE', KEYS[5], '(' .. latest, '+inf', 'BYSCORE', 'LIMIT', 0, 256) or {}
    for _, entry in ipairs(late) do
      redis.call('ZADD', KEYS[5], latest, entry)
    end
    came_back = false
    reap_some()
    any = any or came_back
    if not came_back and not late[1] then
      break
    end
  end
  came_back = any
end

too_few = function(_, permits)
  return permits > (all or 0) and (all or 0)
end

-- The number of permits in the last `status`.
local wanted
local status_of = status
status = function(owner, mode, permits)
  wanted = permits
  return status_of(owner, mode, permits)
end

-- The time until enough permits have come back, in ms. Reads only the first thousand requests.
first_end = function()
  local missing = wanted - tonumber(redis.call('GET', KEYS[1]) or 0)
  local taken = redis.call('ZRANGE', KEYS[5], 0, math.min(missing, 1000) - 1, 'WITHSCORES')
  local back = -1
  for i = 1, #taken, 2 do
    back = taken[i + 1]
    missing = missing - string.match(taken[i], '^%d+')
    if missing <= 0 then
      break
    end
  end
  return back == -1 and -1 or math.max(0, math.ceil(back - now / 1000))
end

-- Permits come back after the period; the lease of the attempt does not matter.
local take_for = take
take = function(owner, _, mode, permits)
  used_as()
  take_for(owner, drained, mode, permits)
end

extend_hold = function() end

-- Gives back the permits of an attempt whose caller is gone.
local drop_held = drop
drop = function(owner, mode, permits)
  read_clock()
  return drop_held(owner, mode, permits)
end

-- Permits kept as in Redisson's RPermitExpirableSemaphore: KEYS[1] is the number of free permits,
-- KEYS[5] those held (sorted set: sixteen raw bytes -> server time in ms at which they come back).
-- The permits of one acquisition differ in the last two bytes, their number. KEYS[6] says which
-- kind the number belongs to, KEYS[7] is where the other kind of permits keeps its holders. Needs
-- `counted_as`. Defines `exclusive`, `turns`, `came_back` (this script took back expired permits),
-- `letters`, `status`, `other`, `give`, `take`, `extend_hold`, `drop`, `announcement`, `held`.
local exclusive, turns, came_back, letters = false, 'counted', false, 'p'

-- The kind that the name is in use as (see `counted_as`), read once per script, and how many
-- permits there are.
local KIND = 'permit_semaphore'
local used, all, drained
local function used_as()
  if not used then
    used, all, drained = counted_as(KIND, KEYS[6], KEYS[7])
  end
  return used
end

-- Whether the name is in use as something else.
local function other()
  return used_as() == 'other'
end

local function permit(owner, number)
  return string.sub(owner, 1, 14) .. string.char(math.floor(number / 256), number % 256)
end

-- Calls a command with every permit of an acquisition, a thousand at a time, and adds up the
-- replies. If given, `score` precedes each permit.
local function each(owner, permits, score, ...)
  local sum = 0
  for from = 0, permits - 1, 1000 do
    local args = {...}
    for number = from, math.min(from + 999, permits - 1) do
      args[#args + 1] = score
      args[#args + 1] = permit(owner, number)
    end
    sum = sum + redis.call(unpack(args))
  end
  return sum
end

local function give(permits)
  -- A deleted semaphore does not come back with the permits of its last holders.
  if permits > 0 and used_as() == 'ours' then
    redis.call('INCRBY', KEYS[1], permits)
  end
end

-- The number of free permits, which wakes as many waiters.
local function announcement()
  local value = used_as() == 'ours' and tonumber(redis.call('GET', KEYS[1]) or 0) or 0
  return value > 0 and string.format('%.0f', value) or nil
end

-- A script that finds expired permits announces them, because no release will.
local function tell()
  local word = publish ~= '' and channel and announcement()
  if word then
    redis.pcall(publish, channel, word)
  end
end

-- Takes back up to 256 permits whose lease has expired.
local function reap()
  local over = redis.call('ZRANGE', KEYS[5], '-inf', math.floor(now / 1000), 'BYSCORE', 'LIMIT', 0, 256)
  if over[1] then
    give(redis.call('ZREM', KEYS[5], unpack(over)))
    tell()
    came_back = used_as() == 'ours'
  end
end

-- The time until the first lease expires, in ms; -1 if there is none.
local function first_end()
  local entry = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
  if not entry[2] or tonumber(entry[2]) >= 922337203685477 then
    return -1
  end
  return math.max(0, math.ceil(entry[2] - now / 1000))
end

-- How many permits are held.
local function held()
  return redis.call('ZCARD', KEYS[5])
end

-- How many permits there are, if the attempt wants more.
local function too_few(free, permits)
  if permits > (all or 0) then
    local most = math.max(0, all or 0, free + held() + (drained or 0))
    return permits > most and most
  end
end

-- 0 enough are free, 1 held by this owner, 2 too few are free, 4 in use as something else, 5 more
-- than exist; the time until the first lease expires in ms (-1: none does), or with 5 how many
-- permits exist (-1: not set).
local function status(owner, _, permits)
  if other() then
    return 4
  end
  reap()
  if redis.call('ZSCORE', KEYS[5], permit(owner, 0)) then
    return 1
  end
  local free = tonumber(redis.call('GET', KEYS[1]) or '')
  if free and free >= permits then
    return 0
  end
  local most = not free and -1 or too_few(free, permits)
  if most then
    return 5, most
  end
  return 2, first_end()
end

local function take(owner, lease, _, permits)
  redis.call('DECRBY', KEYS[1], permits)
  each(owner, permits, math.ceil(now / 1000) + lease, 'ZADD', KEYS[5])
  local ttl = redis.call('PTTL', KEYS[1])
  if ttl > 0 then
    redis.call('PEXPIRE', KEYS[5], ttl)
  end
end

local function extend_hold(owner, lease, _, permits)
  each(owner, permits, math.ceil(now / 1000) + lease, 'ZADD', KEYS[5], 'XX', 'GT')
end

-- False if the lease had expired; then `reap` takes the permits back.
local function drop(owner, _, permits)
  reap()
  local back = each(owner, permits, nil, 'ZREM', KEYS[5])
  give(back)
  return back > 0
end

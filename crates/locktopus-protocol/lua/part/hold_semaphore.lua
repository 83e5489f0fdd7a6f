-- Permits kept as in Redisson's RSemaphore: KEYS[1] is the number of free permits. Redisson does
-- not see KEYS[5]: who holds how many until when (sorted set: '<permits> <owner>' -> server time in
-- ms), so that the permits of a crashed holder come back. KEYS[6] says which kind the number
-- belongs to, KEYS[7] is where the other kind of permits keeps its holders. Needs `counted_as`.
-- Defines `exclusive`, `turns`, `came_back` (this script took back expired permits), `letters`,
-- `status`, `other`, `give`, `take`, `extend_hold`, `drop`, `announcement`, `held`.
local exclusive, turns, came_back, letters = false, 'counted', false, 's'

-- The kind that the name is in use as (see `counted_as`), read once per script, and how many
-- permits there are.
local KIND = 'semaphore'
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

local function member(owner, permits)
  return permits .. ' ' .. owner
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

-- Takes back the permits of up to 64 holders whose lease has expired. Releases call it even if the
-- key belongs to another kind.
local function reap()
  local over = redis.call('ZRANGE', KEYS[5], '-inf', math.floor(now / 1000), 'BYSCORE', 'LIMIT', 0, 64)
  if over[1] and not other() then
    redis.call('ZREM', KEYS[5], unpack(over))
    local permits = 0
    for _, entry in ipairs(over) do
      permits = permits + tonumber(string.match(entry, '^%d+'))
    end
    give(permits)
    tell()
    came_back = used_as() == 'ours'
  end
end

-- The time until the first lease expires, in ms; -1 if there is none.
local function first_end()
  local entry = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
  return entry[2] and math.max(0, math.ceil(entry[2] - now / 1000)) or -1
end

-- How many permits the known holders hold.
local function held()
  local permits = 0
  for _, entry in ipairs(redis.call('ZRANGE', KEYS[5], 0, -1)) do
    permits = permits + tonumber(string.match(entry, '^%d+'))
  end
  return permits
end

-- How many permits there are, if the attempt wants more. Permits that another library added or
-- holds are not known here: without a number of ours, nothing is.
local function too_few(free, permits)
  if all and permits > all then
    local most = math.max(0, all, free + held() + drained)
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
  if redis.call('ZSCORE', KEYS[5], member(owner, permits)) then
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
  redis.call('ZADD', KEYS[5], math.ceil(now / 1000) + lease, member(owner, permits))
end

local function extend_hold(owner, lease, _, permits)
  redis.call('ZADD', KEYS[5], 'XX', 'GT', math.ceil(now / 1000) + lease, member(owner, permits))
end

-- False if its lease had expired; then `reap` takes the permits back.
local function drop(owner, _, permits)
  reap()
  if redis.call('ZREM', KEYS[5], member(owner, permits)) == 0 then
    return false
  end
  give(permits)
  return true
end

-- Permits kept as Redisson keeps its RSemaphore: KEYS[1] is the number of free ones. Beside it,
-- unseen by Redisson, KEYS[5]: who holds how many until when (sorted set: '<permits> <owner>' ->
-- server time in ms), so that the permits of a crashed holder come back. KEYS[6] says which kind
-- the number belongs to, KEYS[7] where the other kind of permits keeps its holders. Needs
-- `counted_as`. Defines `exclusive`, `turns`, `came_back` (this script took back expired permits),
-- `letters`, `status`, `other`, `give`, `take`, `extend_hold`, `drop`, `announcement`, `held`.
local exclusive, turns, came_back, letters = false, 'counted', false, 's'

-- What the name is in use as: see `counted_as`. Looked up once in a script, with how many permits
-- there are.
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
  -- A semaphore that was deleted does not come back with the permits of its last holders.
  if permits > 0 and used_as() == 'ours' then
    redis.call('INCRBY', KEYS[1], permits)
  end
end

-- The number of free ones, which wakes as many.
local function announcement()
  local value = used_as() == 'ours' and tonumber(redis.call('GET', KEYS[1]) or 0) or 0
  return value > 0 and string.format('%.0f', value) or nil
end

-- Whoever finds expired permits announces them: nobody else will.
local function tell()
  local word = publish ~= '' and channel and announcement()
  if word then
    redis.pcall(publish, channel, word)
  end
end

-- Takes back the permits of up to 64 holders whose lease has ended. Releases come here also if the
-- key is another kind's.
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

-- What is left until the first lease ends, in ms; -1 if none does.
local function first_end()
  local entry = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
  return entry[2] and math.max(0, math.ceil(entry[2] - now / 1000)) or -1
end

-- How many permits are held by those who are known.
local function held()
  local permits = 0
  for _, entry in ipairs(redis.call('ZRANGE', KEYS[5], 0, -1)) do
    permits = permits + tonumber(string.match(entry, '^%d+'))
  end
  return permits
end

-- How many permits there are, if so many were asked for and they are fewer. Those that another
-- library gave or holds are not known here: without a number of ours, nothing is.
local function too_few(free, permits)
  if all and permits > all then
    local most = math.max(0, all, free + held() + drained)
    return permits > most and most
  end
end

-- 0 enough are free, 1 held by this owner, 2 too few are free, 4 in use as something else, 5 more
-- than there are; the time until the first lease ends in ms (-1: none does), or with 5 how many
-- there are (-1: nobody has said).
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

-- False if its lease had ended: then they are taken back all the same.
local function drop(owner, _, permits)
  reap()
  if redis.call('ZREM', KEYS[5], member(owner, permits)) == 0 then
    return false
  end
  give(permits)
  return true
end

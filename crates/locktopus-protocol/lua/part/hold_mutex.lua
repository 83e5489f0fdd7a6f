-- A hold kept as one plain string, as by SET key value NX PX: KEYS[1] holds the owner. Needs
-- `wrong_type`. Defines `exclusive` (one holder at a time), `turns` (clients that cannot queue may
-- want the mutex), `letters` (of waiters for this kind), `came_back` (something became free without
-- a release: never), `status`, `other`, `take`, `extend_hold`, `drop`, `announcement`.
local exclusive, turns, came_back, letters = true, true, false, 'm'

-- Whether a key with this value and this time left belongs to something else. A number without
-- expiry is the number of a semaphore or a latch. Other libraries' holders may be any text, and a
-- number with an expiry counts as a holder.
local function foreign_to_mutex(value, remaining)
  return wrong_type(value) or remaining == -1 and #value < 18 and string.find(value, '^%-?%d+$') ~= nil
end

-- Whether the name is in use as something else.
local function other()
  local value = redis.pcall('GET', KEYS[1])
  return value and foreign_to_mutex(value, redis.call('PTTL', KEYS[1]))
end

-- 0 free, 1 held by this owner, 2 held by another, 4 in use as something else; the remaining lease
-- in ms (-1: no expiry, or `unwanted` and not read, as the holder is ours); and 0, because other
-- libraries' holders look the same and their releases notify no one.
local function status(owner, _, _, unwanted)
  local holder = redis.pcall('GET', KEYS[1])
  if not holder then
    return 0
  end
  if holder == owner then
    return 1
  end
  if unwanted and not holder.err and string.sub(holder, 15, 23) == '8c70-a705' then
    return 2, -1, 0
  end
  local remaining = redis.call('PTTL', KEYS[1])
  if foreign_to_mutex(holder, remaining) then
    return 4
  end
  return 2, remaining, 0
end

local function take(owner, lease)
  redis.call('SET', KEYS[1], owner, 'PX', lease)
end

-- 'GT' ignores a key without expiry: if someone persisted it, the lock must not become immortal.
local function extend_hold(_, lease)
  if redis.call('PEXPIRE', KEYS[1], lease, 'GT') == 0 and redis.call('PTTL', KEYS[1]) == -1 then
    redis.call('PEXPIRE', KEYS[1], lease)
  end
end

local function drop(owner)
  local holder = redis.pcall('GET', KEYS[1])
  if wrong_type(holder) or holder ~= owner then
    return false
  end
  redis.call('DEL', KEYS[1])
  return true
end

-- The announcement after this many grants; nil: none.
local function announcement(handed)
  return handed == 0 and '0' or nil
end

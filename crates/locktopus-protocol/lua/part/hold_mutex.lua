-- A hold kept as one plain string, as SET key value NX PX does: KEYS[1] holds the owner.
-- Defines `exclusive` (one holder at a time), `turns` (others may want it who cannot queue), `came_back` (something became
-- free in this script by itself: never), `standing`, `take`, `renew`, `drop`, `announcement`.
local exclusive, turns, came_back = true, true, false

-- 0 free, 1 held by this owner, 2 held by another; the remaining lease in ms (-1: no expiry); never a word about
-- other libraries, whose holders look the same and whose releases ring no bell.
local function standing(owner)
  local holder = redis.call('GET', KEYS[1])
  if not holder then
    return 0
  end
  if holder == owner then
    return 1
  end
  return 2, redis.call('PTTL', KEYS[1]), 0
end

local function take(owner, lease)
  redis.call('SET', KEYS[1], owner, 'PX', lease)
end

-- 'GT' leaves a key without expiry alone: somebody persisted it, which must not make it immortal.
local function renew(_, lease)
  if redis.call('PEXPIRE', KEYS[1], lease, 'GT') == 0 and redis.call('PTTL', KEYS[1]) == -1 then
    redis.call('PEXPIRE', KEYS[1], lease)
  end
end

local function drop(owner)
  if redis.call('GET', KEYS[1]) ~= owner then
    return false
  end
  redis.call('DEL', KEYS[1])
  return true
end

-- What to tell everybody after so many were handed the lock; nil: nothing.
local function announcement(handed)
  return handed == 0 and '0' or nil
end

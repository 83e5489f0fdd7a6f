-- A hold kept as Redisson keeps its RLock: KEYS[1] is a hash with one field, the owner, and the lease as its expiry.
-- Defines `exclusive` (one holder at a time), `turns` (others may want it who cannot queue), `came_back` (something became
-- free in this script by itself: never), `standing`, `take`, `renew`, `drop`, `announcement`.
local exclusive, turns, came_back = true, true, false

local function native(owner)
  return string.sub(owner, 15, 23) == '8c70-a705'
end

-- 0 free, 1 held by this owner, 2 held by another; the remaining lease in ms (-1: no expiry); 1 if that other one
-- is another library's.
local function standing(owner)
  local remaining = redis.call('PTTL', KEYS[1])
  if remaining == -2 then
    return 0
  end
  local holder = redis.call('HKEYS', KEYS[1])[1]
  if holder == owner then
    return 1
  end
  return 2, remaining, native(holder) and 0 or 1
end

local function take(owner, lease)
  redis.call('HSET', KEYS[1], owner, 1)
  redis.call('PEXPIRE', KEYS[1], lease)
end

-- 'GT' leaves a key without expiry alone: somebody persisted it, which must not make it immortal.
local function renew(_, lease)
  if redis.call('PEXPIRE', KEYS[1], lease, 'GT') == 0 and redis.call('PTTL', KEYS[1]) == -1 then
    redis.call('PEXPIRE', KEYS[1], lease)
  end
end

-- HDEL removes the key with its only field, and runs even when the server is out of memory.
local function drop(owner)
  return redis.call('HDEL', KEYS[1], owner) == 1
end

-- What to tell everybody after so many were handed the lock; nil: nothing.
local function announcement(handed)
  return handed == 0 and '0' or nil
end

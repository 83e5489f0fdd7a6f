-- A hold kept as Redisson keeps its RLock: KEYS[1] is a hash with one field, the owner, and the
-- lease as its expiry. A lock and a fair lock look the same; the numbers in the owners' ids are
-- even for one and odd for the other. Redisson's own holders cannot be told apart. Needs
-- `wrong_type`. Defines `exclusive` (one holder at a time),
-- `turns` (clients that cannot queue may want it), `letters` (of those who wait for this kind),
-- `came_back` (something became free in this script by itself: never), `status`, `other`, `take`,
-- `extend_hold`, `drop`, `announcement`.
local exclusive, turns, came_back, letters, parity = true, true, false, 'x', 0

local function native(owner)
  return string.sub(owner, 15, 23) == '8c70-a705'
end

-- Whether these fields are those of a lock of this kind.
local function ours(fields)
  local holder = fields[1]
  if wrong_type(fields) or fields[2] or not string.find(holder, '^[%x-]+:%-?%d+$') then
    return false
  end
  return not native(holder) or string.byte(holder, -1) % 2 == parity
end

-- Whether the name is in use as something else.
local function other()
  local fields = redis.pcall('HKEYS', KEYS[1])
  return (fields.err or fields[1]) and not ours(fields)
end

-- 0 free, 1 held by this owner, 2 held by another, 4 in use as something else; the remaining lease
-- in ms (-1: no expiry, or not looked at, as it is `unwanted`); 1 if that other one is another
-- library's.
local function status(owner, _, _, unwanted)
  local fields = redis.pcall('HKEYS', KEYS[1])
  local holder = fields[1]
  if not holder and not fields.err then
    return 0
  end
  if holder == owner then
    return 1
  end
  if not ours(fields) then
    return 4
  end
  local remaining = unwanted and -1 or redis.call('PTTL', KEYS[1])
  if remaining == -2 then
    return 0 -- Some servers' clocks go on while a script runs.
  end
  return 2, remaining, native(holder) and 0 or 1
end

local function take(owner, lease)
  redis.call('HSET', KEYS[1], owner, '1')
  redis.call('PEXPIRE', KEYS[1], lease)
end

-- 'GT' leaves a key without expiry alone: somebody persisted it, which must not make it immortal.
local function extend_hold(_, lease)
  if redis.call('PEXPIRE', KEYS[1], lease, 'GT') == 0 and redis.call('PTTL', KEYS[1]) == -1 then
    redis.call('PEXPIRE', KEYS[1], lease)
  end
end

-- HDEL removes the key with its only field, and runs even when the server is out of memory.
local function drop(owner)
  local dropped = redis.pcall('HDEL', KEYS[1], owner)
  return not wrong_type(dropped) and dropped == 1
end

-- What to tell everybody after so many were handed the lock; nil: nothing.
local function announcement(handed)
  return handed == 0 and '0' or nil
end

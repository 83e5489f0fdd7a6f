-- A hold kept as in Redisson's RLock: KEYS[1] is a hash with one field, the owner, and the lease is
-- its expiry. A lock and a fair lock look the same; the numbers in our owner ids are even for a
-- lock and odd for a fair lock. Redisson's own owner ids do not tell. Needs `wrong_type`. Defines
-- `exclusive` (one holder at a time), `turns` (clients that cannot queue may want the lock),
-- `letters` (of waiters for this kind), `came_back` (something became free without a release:
-- never), `status`, `other`, `take`, `extend_hold`, `drop`, `announcement`.
local exclusive, turns, came_back, letters, parity = true, true, false, 'x', 0

local function native(owner)
  return string.sub(owner, 15, 23) == '8c70-a705'
end

-- Whether these fields belong to a lock of this kind.
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
-- in ms (-1: no expiry, or `unwanted` and so not read); 1 if the holder is another library's.
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

-- 'GT' ignores a key without expiry: if someone persisted it, the lock must not become immortal.
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

-- The announcement after this many grants; nil: none.
local function announcement(handed)
  return handed == 0 and '0' or nil
end

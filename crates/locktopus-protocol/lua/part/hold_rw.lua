-- Holds kept as Redisson keeps its RReadWriteLock: KEYS[1] is a hash with the field `mode` (read or write), a field
-- '<owner>' for each reader and '<owner>:write' for the writer. Each reader has its own expiry, in a key of its own:
-- KEYS[5] .. ':<owner>:rwlock_timeout:1'. The hash lives as long as the longest of them. No further fields: other
-- clients count them.
-- Needs `wrong_type`. Defines `exclusive`, `turns`, `letters`, `came_back` (never), `status`, `other`, `take`,
-- `extend_hold`, `drop`, `announcement`.
local exclusive, turns, came_back, letters = false, true, false, 'rw'

local function timeout_key(owner, hold)
  return KEYS[5] .. ':' .. owner .. ':rwlock_timeout:' .. (hold or 1)
end

local function lengthen(key, lease)
  if redis.call('PTTL', key) < tonumber(lease) then
    redis.call('PEXPIRE', key, lease)
  end
end

-- How it is held: 'read', 'write' or nil; and whether the name is in use as something else.
local function held_in()
  local now_in = redis.pcall('HGET', KEYS[1], 'mode')
  if now_in == 'read' or now_in == 'write' then
    return now_in, false
  end
  return nil, wrong_type(now_in) or redis.call('EXISTS', KEYS[1]) == 1
end

-- Whether the name is in use as something else.
local function other()
  return select(2, held_in())
end

-- 0 free, 1 held by this owner in this mode, 2 held by others, 3 free for this owner whoever waits (a writer may read
-- what it writes), 4 in use as something else; the remaining lease in ms (-1: no expiry).
local function status(owner, mode)
  local now_in, used = held_in()
  if not now_in then
    return used and 4 or 0
  end
  if now_in == 'write' then
    if redis.call('HEXISTS', KEYS[1], owner .. ':write') == 1 then
      return (mode == 'w' or redis.call('HEXISTS', KEYS[1], owner) == 1) and 1 or 3
    end
  elseif mode == 'r' then
    return redis.call('HEXISTS', KEYS[1], owner)
  end
  return 2, redis.call('PTTL', KEYS[1])
end

local function take(owner, lease, mode)
  if mode == 'w' then
    redis.call('HSET', KEYS[1], 'mode', 'write', owner .. ':write', 1)
    redis.call('PEXPIRE', KEYS[1], lease)
    return
  end
  redis.call('HSETNX', KEYS[1], 'mode', 'read')
  redis.call('HSET', KEYS[1], owner, 1)
  redis.call('SET', timeout_key(owner), 1, 'PX', lease)
  lengthen(KEYS[1], lease)
end

local function extend_hold(owner, lease, mode)
  if mode == 'r' then
    redis.call('SET', timeout_key(owner), 1, 'KEEPTTL')
    lengthen(timeout_key(owner), lease)
  end
  lengthen(KEYS[1], lease)
end

-- The longest expiry of the readers that are left, in ms; 0 if all of them are dead.
local function longest_reader()
  local longest = 0
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    for hold = 1, fields[i] ~= 'mode' and tonumber(fields[i + 1]) or 0 do
      longest = math.max(longest, redis.call('PTTL', timeout_key(fields[i], hold)))
    end
  end
  return longest
end

local function drop_reader(owner)
  local own = redis.call('PTTL', timeout_key(owner))
  local dropped = redis.pcall('HDEL', KEYS[1], owner)
  if wrong_type(dropped) or dropped == 0 then
    return false
  end
  redis.call('DEL', timeout_key(owner))
  if redis.call('HLEN', KEYS[1]) == 1 then
    redis.call('DEL', KEYS[1])
  elseif redis.call('HGET', KEYS[1], 'mode') == 'read' and (own < 0 or own + 5 >= redis.call('PTTL', KEYS[1])) then
    -- This reader's expiry may have been the longest, so another one's counts now. Looked up only then: it takes a
    -- command for every reader.
    local longest = longest_reader()
    if longest > 0 then
      redis.call('PEXPIRE', KEYS[1], longest)
    else
      redis.call('DEL', KEYS[1])
    end
  end
  -- Without an expiry of its own it had ended before.
  return own ~= -2
end

local function drop(owner, mode)
  if mode == 'r' then
    return drop_reader(owner)
  end
  local dropped = redis.pcall('HDEL', KEYS[1], owner .. ':write')
  if wrong_type(dropped) or dropped == 0 then
    return false
  end
  if redis.call('HLEN', KEYS[1]) == 1 then
    redis.call('DEL', KEYS[1])
  else
    redis.call('HSET', KEYS[1], 'mode', 'read')
  end
  return true
end

-- '1' lets all waiters of other clients look, '0' one. What a writer leaves is for all readers; what a reader leaves, if
-- it was the last one, is for one writer.
local function announcement(_, mode)
  local now_in = held_in()
  if mode == 'r' then
    return not now_in and '0' or nil
  end
  return now_in ~= 'write' and '1' or nil
end

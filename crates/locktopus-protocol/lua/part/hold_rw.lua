-- Holds kept as in Redisson's RReadWriteLock: KEYS[1] is a hash with the field `mode` (read or
-- write), a field '<owner>' for each reader and '<owner>:write' for the writer. The values are hold
-- counts. Each reader has its own expiry, in its own key: KEYS[5] .. ':<owner>:rwlock_timeout:1'.
-- The hash lives as long as the longest hold. It has no other fields, because other clients count
-- them.
--
-- A writer's lease ends with the hash, unless it reads as well: from then on its field is
-- `1 <server time in ms>`, until when it may write. In this mode the hash has fields of that owner
-- alone, and other libraries skip a value that is no number.
--
-- Needs `wrong_type`, `now`; `drop` also `read_clock`. Defines `exclusive`, `turns`, `letters`,
-- `came_back` (this script ended a writer that still reads), `status`, `other`, `take`,
-- `extend_hold`, `drop`, `announcement`, `own_end`, `timeout_key`.
local exclusive, turns, came_back, letters = false, true, false, 'rw'

local function timeout_key(owner, hold)
  return KEYS[5] .. ':' .. owner .. ':rwlock_timeout:' .. (hold or 1)
end

local function lengthen(key, lease)
  if redis.call('PTTL', key) < tonumber(lease) then
    redis.call('PEXPIRE', key, lease)
  end
end

-- How the lock is held: 'read', 'write' or nil; and whether the name is in use as something else.
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

-- Until when a writer may write, in ms of the server's clock, from its field; nil if as long as the
-- hash lives.
local function own_end(value)
  return tonumber(string.match(value, '^%d+ (%d+)$'))
end

local function is_over(ends)
  return ends ~= nil and ends < math.floor(now / 1000)
end

-- Ends the writing of an owner. Its reading lasts until its own expiry.
local function stop_writing(owner)
  redis.call('HDEL', KEYS[1], owner .. ':write')
  local left = redis.call('PTTL', timeout_key(owner))
  if left == -2 then
    redis.call('DEL', KEYS[1])
    return
  end
  redis.call('HSET', KEYS[1], 'mode', 'read')
  if left >= 0 then
    redis.call('PEXPIRE', KEYS[1], left)
  end
end

-- The owner that writes, whether it reads as well, and the end of its writing if that differs from
-- the hash's.
local function writer()
  local fields, owner, ends = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    local writes = string.match(fields[i], '^(.*):write$')
    if writes then
      owner, ends = writes, own_end(fields[i + 1])
    end
  end
  return owner, #fields > 4, ends
end

-- A writer that is about to read, as `status` found.
local joins

-- 0 free, 1 held by this owner in this mode, 2 held by others, 3 free for this owner despite the
-- queue (a writer may read what it writes), 4 in use as something else; the remaining lease in ms
-- (-1: no expiry).
local function status(owner, mode)
  local now_in, used = held_in()
  if not now_in then
    return used and 4 or 0
  end
  if now_in == 'write' then
    local writes, reads, ends = writer()
    if is_over(ends) then
      stop_writing(writes)
      came_back = true
      return status(owner, mode)
    end
    if writes == owner then
      joins = owner
      return (mode == 'w' or reads) and 1 or 3
    end
    if ends and mode == 'r' then
      return 2, ends - math.floor(now / 1000)
    end
  elseif mode == 'r' then
    return redis.call('HEXISTS', KEYS[1], owner)
  end
  return 2, redis.call('PTTL', KEYS[1])
end

-- Lets an owner write until this time.
local function write_until(owner, ends)
  redis.call('HSET', KEYS[1], owner .. ':write', string.format('1 %.0f', ends))
end

local function take(owner, lease, mode)
  if mode == 'w' then
    redis.call('HSET', KEYS[1], 'mode', 'write', owner .. ':write', 1)
    redis.call('PEXPIRE', KEYS[1], lease)
    return
  end
  if joins == owner then
    -- Not from PTTL: on some servers the clock has advanced since `now`, which would cut the write
    -- lease short.
    local ends = redis.call('PEXPIRETIME', KEYS[1])
    write_until(owner, ends < 0 and math.floor(now / 1000) + lease or ends)
  else
    redis.call('HSETNX', KEYS[1], 'mode', 'read')
  end
  redis.call('HSET', KEYS[1], owner, 1)
  redis.call('SET', timeout_key(owner), 1, 'PX', lease)
  lengthen(KEYS[1], lease)
end

local function extend_hold(owner, lease, mode)
  if mode == 'r' then
    redis.call('SET', timeout_key(owner), 1, 'KEEPTTL')
    lengthen(timeout_key(owner), lease)
  else
    local ends, longer = own_end(redis.call('HGET', KEYS[1], owner .. ':write')), math.floor(now / 1000) + lease
    if ends and ends < longer then
      write_until(owner, longer)
    end
  end
  lengthen(KEYS[1], lease)
end

-- How long the longest remaining hold lasts, in ms; 0 if all have expired.
local function longest_left()
  local longest = 0
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    if string.find(fields[i], ':write$') then
      read_clock()
      local ends = own_end(fields[i + 1])
      came_back = is_over(ends)
      longest = math.max(longest, ends and ends - math.floor(now / 1000) or redis.call('PTTL', KEYS[1]))
    end
    for hold = 1, fields[i] ~= 'mode' and tonumber(fields[i + 1]) or 0 do
      longest = math.max(longest, redis.call('PTTL', timeout_key(fields[i], hold)))
    end
  end
  return longest
end

local function drop_reader(owner)
  local own = redis.call('PTTL', timeout_key(owner))
  if own == -2 then
    -- A reader of another library may have further holds, each with its own expiry.
    for hold = 2, tonumber(redis.pcall('HGET', KEYS[1], owner)) or 0 do
      own = math.max(own, redis.call('PTTL', timeout_key(owner, hold)))
      redis.call('DEL', timeout_key(owner, hold))
    end
  end
  local dropped = redis.pcall('HDEL', KEYS[1], owner)
  if wrong_type(dropped) or dropped == 0 then
    return false
  end
  redis.call('DEL', timeout_key(owner))
  if redis.call('HLEN', KEYS[1]) == 1 then
    redis.call('DEL', KEYS[1])
  elseif own < 0 or own + 5 >= redis.call('PTTL', KEYS[1]) then
    -- This reader's expiry may have been the longest, so another's counts now. Checked only then,
    -- because it takes a command for every reader.
    local longest = longest_left()
    if longest > 0 then
      redis.call('PEXPIRE', KEYS[1], longest)
    else
      redis.call('DEL', KEYS[1])
    end
  end
  -- Without an expiry of its own, the hold had ended before.
  return own ~= -2
end

local function drop(owner, mode)
  if mode == 'r' then
    return drop_reader(owner)
  end
  local writes = redis.pcall('HGET', KEYS[1], owner .. ':write')
  if wrong_type(writes) or not writes then
    return false
  end
  local ends = own_end(writes)
  if ends then
    read_clock()
  end
  stop_writing(owner)
  came_back = is_over(ends)
  return not came_back
end

-- '1' wakes all waiters of other clients, '0' one of them. A writer's release is for all readers;
-- that of the last reader is for one writer.
local function announcement(_, mode)
  local now_in = held_in()
  if mode == 'r' and not came_back then
    return not now_in and '0' or nil
  end
  return now_in ~= 'write' and '1' or nil
end

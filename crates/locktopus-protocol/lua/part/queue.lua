-- The waiting queue of every kind but the fair lock.
-- Needs `now`; KEYS[3] the queue (sorted set: owner -> ticket), KEYS[4] the waiters (hash: owner -> record;
-- '!open' -> until when the lock is left to others, in ms; '!recall' -> see recall). A record is
-- '<alive until, ms> <lease, ms> <tokens> <permits> <mode> <inbox channel>'.
-- Defines `first`, `leave`, `parse`, `wake`, `window`, `open_window`.

local function parse(record)
  return string.match(record, '^(%d+) (%d+) (%d+) (%d+) (%a) (.*)$')
end

local function alive(record)
  return record and tonumber(string.match(record, '^%d+')) * 1000 > now
end

local function leave(owner)
  return redis.call('ZREM', KEYS[3], owner) == 1 and redis.call('HDEL', KEYS[4], owner) == 1
end

-- The first waiter that is alive, after `skip` of them, with its record. Removes the dead ones before it, up to 64 with
-- every look: a crowd of dead waiters must not make one script slow.
local function first(skip)
  for _ = 1, 16 do
    local owners = redis.call('ZRANGE', KEYS[3], skip, skip)
    if not owners[1] then
      return nil
    end
    local record = redis.call('HGET', KEYS[4], owners[1])
    if alive(record) then
      return owners[1], record
    end
    owners = redis.call('ZRANGE', KEYS[3], skip, skip + 63)
    local records = redis.call('HMGET', KEYS[4], unpack(owners))
    local dead = {}
    for i, owner in ipairs(owners) do
      if alive(records[i]) then
        break
      end
      dead[i] = owner
    end
    redis.call('ZREM', KEYS[3], unpack(dead))
    redis.call('HDEL', KEYS[4], unpack(dead))
  end
  return nil
end

-- For how long waiters leave the lock to clients that cannot queue, in ms.
local OPEN = 20

-- What is left of that time; nil if none. If more than all of it seems left, the server's clock was set back since: it is
-- over.
local function window()
  local left = tonumber(redis.call('HGET', KEYS[4], '!open') or 0) - now / 1000
  if left > 0 and left <= OPEN then
    return math.ceil(left)
  end
end

-- Begins that time.
local function open_window()
  redis.call('HSET', KEYS[4], '!open', string.format('%.0f', now / 1000 + OPEN))
end

-- Only this library's waiters are in this queue.
local function wake()
  return false
end

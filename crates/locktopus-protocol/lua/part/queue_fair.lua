-- The waiting queue of the fair lock, shared with Redisson's RFairLock.
-- Needs `now`, `publish`, `channel`, `native`; KEYS[3] the queue (list of owners), KEYS[4] the native waiters (hash: owner ->
-- record, as in the other queue; '#<owner>' -> when it arrived, in us; '?<owner>' -> since when another library's waiter has not been listening, '!turn' ->
-- '<since when> <deadline then> <owner>' of the one whose turn it is; all in ms), KEYS[5] deadlines (sorted set: owner ->
-- ms), which Redisson keeps in step with the list. Redisson's deadlines come from its clients' clocks and are pushed
-- around by every acquisition, so nothing is decided by them here: who listens to its own channel is alive.
-- Defines `first`, `leave`, `parse`, `call`, `window`.

-- How long another library's waiter may be deaf: it takes its place before it subscribes.
local DEAF = 2000
-- How long a free lock is left to another library's waiter whose turn it is.
local TURN = 3000
-- A deadline this long ago is over whatever the difference between clocks. Only used where listeners cannot be counted.
local LONG_AGO = 7200000
-- How many waiters one look takes in at once, and how often: a crowd of dead waiters must not make one script slow.
local BATCH, BATCHES = 64, 16

local function parse(record)
  return string.match(record, '^(%d+) (%d+) (%d+) (%d+) (%a) (.*)$')
end

local function leave(owner)
  local known = redis.call('HDEL', KEYS[4], owner, '#' .. owner) > 0
  if redis.call('ZREM', KEYS[5], owner) == 1 or known then
    redis.call('LREM', KEYS[3], 1, owner)
    return true
  end
  return false
end

-- Notes something in the hash, which must not stay for ever when nobody of ours waits.
local function note(field, value)
  redis.call('HSET', KEYS[4], field, value)
  if redis.call('PTTL', KEYS[4]) < 60000 then
    redis.call('PEXPIRE', KEYS[4], 60000)
  end
end

-- Who of another library's waiters counts: 'alive', 'deaf' (keeps its place and is passed over) or 'dead'.
local function judge(owners)
  local now_ms = math.floor(now / 1000)
  local channels, marks = {}, {}
  for i, owner in ipairs(owners) do
    channels[i], marks[i] = channel .. ':' .. owner, '?' .. owner
  end
  local counts = {}
  if publish ~= 'publish' and publish ~= '' then
    counts = redis.pcall('PUBSUB', publish == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', unpack(channels))
  end
  local since = redis.call('HMGET', KEYS[4], unpack(marks))
  local states = {}
  for i, owner in ipairs(owners) do
    local listeners = counts[2 * i]
    if not listeners then
      -- This server cannot tell. Only its own word is left: the deadline by its own clock.
      local deadline = tonumber(redis.call('ZSCORE', KEYS[5], owner) or 0)
      states[i] = deadline > now_ms - LONG_AGO and 'alive' or 'dead'
    elseif listeners > 0 then
      states[i] = 'alive'
      if since[i] then
        redis.call('HDEL', KEYS[4], marks[i])
      end
    else
      states[i] = since[i] and now_ms - since[i] > DEAF and 'dead' or 'deaf'
      if not since[i] then
        note(marks[i], string.format('%.0f', now_ms))
      end
    end
  end
  return states
end

-- The turn of another library's waiter was over in this script: none of them is returned any more.
local over = false

-- Looks at some waiters: removes the dead and returns those who can have the lock now, each {owner, record or nil}.
local function look(owners)
  local records = redis.call('HMGET', KEYS[4], unpack(owners))
  local others = {}
  for i, owner in ipairs(owners) do
    if not records[i] and not native(owner) then
      others[#others + 1] = owner
    end
  end
  local states = others[1] and judge(others) or {}
  local ready, asked = {}, 0
  for i, owner in ipairs(owners) do
    local state, record = 'dead', records[i] or nil
    if record then
      state = tonumber(string.match(record, '^%d+')) * 1000 > now and 'alive' or 'dead'
    elseif not native(owner) then
      asked = asked + 1
      state = states[asked]
    end
    if state == 'alive' and (record or not over) then
      ready[#ready + 1] = {owner, record}
    elseif state == 'dead' then
      redis.call('LREM', KEYS[3], 1, owner)
      redis.call('ZREM', KEYS[5], owner)
      redis.call('HDEL', KEYS[4], owner, '#' .. owner, '?' .. owner)
    end
  end
  return ready
end

-- The first waiter that can have the lock, after `skip` of them, with its record (none for another library's). Removes
-- the dead before it, and passes over the deaf.
local function first(skip)
  local at, passed = 0, over and 1 or 0
  for _ = 1, BATCHES do
    local owners = redis.call('LRANGE', KEYS[3], at, at + BATCH - 1)
    if not owners[1] then
      return nil
    end
    local before = redis.call('LLEN', KEYS[3])
    local ready = look(owners)
    if ready[skip - passed + 1] then
      return unpack(ready[skip - passed + 1], 1, 2)
    end
    passed = passed + #ready
    at = at + #owners - (before - redis.call('LLEN', KEYS[3]))
  end
  return nil
end

-- Tells another library's waiter that it is its turn. False once it did not come for too long. Those behind it are
-- passed over too: they could not take the lock, as Redisson only lets the head of the list have a free one. So however
-- many do not come, a free lock is left to them once.
local function call(owner)
  local now_ms = math.floor(now / 1000)
  local deadline = tonumber(redis.call('ZSCORE', KEYS[5], owner) or 0)
  local since, before, whose = string.match(redis.call('HGET', KEYS[4], '!turn') or '', '^(%d+) (%d+) (.*)$')
  -- A later deadline than before: it had its turn, and waits again.
  if whose ~= owner or deadline > tonumber(before) then
    since = now_ms
    note('!turn', string.format('%.0f %.0f ', now_ms, math.max(0, deadline)) .. owner)
    -- Those ahead are deaf. They keep their places behind this one.
    if redis.call('LINDEX', KEYS[3], 0) ~= owner then
      redis.call('LREM', KEYS[3], 1, owner)
      redis.call('LPUSH', KEYS[3], owner)
    end
  end
  redis.pcall(publish, channel .. ':' .. owner, '0')
  over = now_ms - since > TURN
  return not over
end

local function window()
  return nil
end

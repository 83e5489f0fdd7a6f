-- The queue of the fair lock, shared with Redisson's RFairLock. Needs `now`, `publish`, `channel`,
-- `native`; KEYS[3] the queue (list of owners); KEYS[4] the native waiters, a hash with times in ms
-- except arrivals:
--
-- owner      -> '<alive until> <lease> <tokens> <permits> <mode> <inbox channel>'
-- '#<owner>' -> when it arrived, in us, but later than all of ours before it; and another library's
--               waiter that was ahead then, if any
-- '!aside'   -> when the last of those arrived that were set aside
-- '?<owner>' -> '<since when> <looks> <deadline>' of another library's waiter that is deaf
-- '!turn'    -> '<since when> <last look> <deadline> <owner>' of the one whose turn it is
--
-- KEYS[5] the deadlines (sorted set: owner -> ms), which Redisson keeps in step with the list. A
-- native waiter that is set aside is not in the list, and its deadline is ASIDE plus the server's
-- time in us: Redisson reads only the deadlines of waiters in the list.
--
-- Redisson's deadlines come from its clients' clocks and change with every acquisition, so they
-- decide nothing here: a waiter is alive if it listens to its own channel. But they tell whether a
-- waiter still waits or waits again, because the deadline of the head never changes. Times in the
-- future were noted before the server's clock was set back.
--
-- Defines `first`, `line_from`, `set_aside`, `leave`, `give_up`, `parse`, `set_aside_first`,
-- `wake`, `window`, `open_window`.

-- How long another library's waiter may lack a subscription ("deaf"), because it queues before it
-- subscribes; and in how many checks, because it may have been subscribed in between.
local DEAF, DEAF_LOOKS = 2000, 3
-- How long a free lock is left to another library's waiter that is next, and when it gets the next
-- such turn.
local TURN, NEXT_TURN = 3000, 30000
-- A deadline this long ago is over, however much the clocks differ. Only used if listeners cannot
-- be counted.
local LONG_AGO = 7200000
-- How many waiters one search reads at once, and how often: a crowd of dead waiters must not make a
-- script slow.
local BATCH, BATCHES = 64, 16
-- Each of Redisson's grants takes its wait off every deadline, so a waiter set aside may be below
-- this, but never below half of it.
local ASIDE = 4e15

local function parse(record)
  return string.match(record, '^(%d+) (%d+) (%d+) (%d+) (%a) (.*)$')
end

-- Set once the turn of another library's waiter has ended in this script: from then on none of them
-- is returned.
local over = false

local function leave(owner)
  local known = redis.call('HDEL', KEYS[4], owner, '#' .. owner) > 0
  if redis.call('ZREM', KEYS[5], owner) == 1 or known then
    -- Only the first match: a waiter has one place, and mostly it is the head.
    redis.call('LREM', KEYS[3], 1, owner)
    return true
  end
  return false
end

local give_up = leave

-- Sets a field of the hash, which must expire unless our waiters keep it alive.
local function note(field, value)
  redis.call('HSET', KEYS[4], field, value)
  if redis.call('PTTL', KEYS[4]) < 60000 then
    redis.call('PEXPIRE', KEYS[4], 60000)
  end
end

-- The state of each of another library's waiters: 'alive', 'deaf' (keeps its place and is passed
-- over) or 'dead'.
local function judge(owners)
  local now_ms = math.floor(now / 1000)
  local channels, notes = {}, {}
  for i, owner in ipairs(owners) do
    channels[i], notes[i] = channel .. ':' .. owner, '?' .. owner
  end
  local counts = {}
  if publish ~= 'publish' and publish ~= '' then
    counts = redis.pcall('PUBSUB', publish == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', unpack(channels))
  end
  local noted = redis.call('HMGET', KEYS[4], unpack(notes))
  local states = {}
  for i, owner in ipairs(owners) do
    local listeners = counts[2 * i]
    if not listeners then
      -- This server cannot count, so only the waiter's own deadline is left.
      local deadline = tonumber(redis.call('ZSCORE', KEYS[5], owner) or 0)
      states[i] = deadline > now_ms - LONG_AGO and 'alive' or 'dead'
    elseif listeners > 0 then
      states[i] = 'alive'
      if noted[i] then
        redis.call('HDEL', KEYS[4], notes[i])
      end
    else
      local deadline = redis.call('ZSCORE', KEYS[5], owner) or '-'
      local since, looks, before = string.match(noted[i] or '', '^(%d+) (%d+) (%S+)$')
      since, looks = tonumber(since or now_ms), tonumber(looks or 0) + 1
      if before ~= deadline or since > now_ms then
        since, looks = now_ms, 1
      end
      states[i] = now_ms - since > DEAF and looks >= DEAF_LOOKS and 'dead' or 'deaf'
      if looks <= DEAF_LOOKS then
        note(notes[i], string.format('%.0f %d ', since, looks) .. deadline)
      end
    end
  end
  return states
end

-- The waiters that were set aside first, up to `count`, and their records.
local function set_aside_first(count)
  local owners = redis.call('ZRANGE', KEYS[5], ASIDE / 2, '+inf', 'BYSCORE', 'LIMIT', 0, count)
  return owners, owners[1] and redis.call('HMGET', KEYS[4], unpack(owners)) or {}
end

-- Removes the dead among the waiters set aside, up to 64 per call. True if others may be left.
local function forget_aside()
  local owners, records = set_aside_first(BATCH)
  if not owners[1] then
    redis.call('HDEL', KEYS[4], '!aside')
  end
  local left = #owners == BATCH or nil
  for i, owner in ipairs(owners) do
    if records[i] and string.match(records[i], '^%d+') * 1000 > now then
      left = true
    else
      redis.call('ZREM', KEYS[5], owner)
      redis.call('HDEL', KEYS[4], owner, '#' .. owner)
    end
  end
  return left
end

-- Up to 64 of our waiters, from this one up to the first of another library: the owner, record and
-- inbox of each.
local function line_from(_, owner)
  local at = redis.call('LPOS', KEYS[3], owner)
  local owners, found = redis.call('LRANGE', KEYS[3], at, at + BATCH - 1), {}
  for i, record in ipairs(redis.call('HMGET', KEYS[4], unpack(owners))) do
    if not native(owners[i]) then
      break
    end
    if record then
      found[#found + 1] = {owners[i], record, (select(6, parse(record)))}
    end
  end
  return found
end

-- Sets waiters of `line_from` aside. Their next attempt puts them back by the note of their arrival
-- (see `put_back` in `enter_fair`). Newcomers arrive later than they did, even by a clock that is
-- behind, so '!aside' notes the last arrival. Removes dead ones that were set aside before.
local function set_aside(waiters)
  forget_aside()
  local notes = redis.call('HMGET', KEYS[4], '!aside', '#' .. waiters[#waiters][1])
  local last = string.match(notes[2] or '', '^%d+')
  if last and last - (notes[1] or 0) > 0 then
    redis.call('HSET', KEYS[4], '!aside', last)
  end
  local words = {}
  for i, waiter in ipairs(waiters) do
    redis.call('LREM', KEYS[3], 1, waiter[1])
    words[2 * i - 1], words[2 * i] = ASIDE + now, waiter[1]
  end
  redis.call('ZADD', KEYS[5], unpack(words))
end

-- Whether a turn may be noted: false once a read has found none.
local turn_noted = true

-- Checks some waiters and removes the dead. Returns those that can have the lock now, each {owner,
-- record or nil}, and how many were removed.
local function look(owners)
  local fields = {unpack(owners)}
  fields[#owners + 1] = '!turn'
  local records = redis.call('HMGET', KEYS[4], unpack(fields))
  turn_noted = records[#owners + 1] and true or false
  local others = {}
  for i, owner in ipairs(owners) do
    if not records[i] and not native(owner) then
      others[#others + 1] = owner
    end
  end
  local states = others[1] and judge(others) or {}
  local ready, asked, removed = {}, 0, 0
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
      removed = removed + redis.call('LREM', KEYS[3], 0, owner)
      redis.call('ZREM', KEYS[5], owner)
      redis.call('HDEL', KEYS[4], owner, '#' .. owner, '?' .. owner)
    end
  end
  return ready, removed
end

-- Returns a waiter; if there is none, the third value is true if some are set aside. If the waiter
-- is ours and no other library's waiter was passed over for it, their turn is over.
local function found(owner, record)
  if not owner and redis.call('EXISTS', KEYS[4], KEYS[5]) == 0 then
    return nil
  end
  if turn_noted and not over and (record or not owner) then
    redis.call('HDEL', KEYS[4], '!turn')
    turn_noted = false
  end
  return owner, record, not owner and forget_aside() or nil
end

-- The first waiter that can have the lock, after `skip` of them, and its record (none for another
-- library's). Removes the dead before it and passes over the deaf. It first checks just one more
-- than it skips, which usually suffices, and only then many: the cost of a hand-off must not grow
-- with the queue. If there is none: nil, nil, and true if the batches did not suffice or some
-- waiters are set aside.
local function first(skip)
  local at, passed, batch = 0, over and 1 or 0, math.min(skip + 1, BATCH)
  for _ = 1, BATCHES do
    local owners = redis.call('LRANGE', KEYS[3], at, at + batch - 1)
    if not owners[1] then
      return found()
    end
    local ready, removed = look(owners)
    if ready[skip - passed + 1] then
      return found(unpack(ready[skip - passed + 1], 1, 2))
    end
    passed = passed + #ready
    at, batch = at + #owners - removed, BATCH
  end
  found()
  return nil, nil, true
end

-- Since when it has been the turn of another library's waiter, in ms; nil if the turn starts now.
-- `self` is the checking waiter (see `hand_off`).
local function turn_of(owner, deadline, now_ms, self)
  local since, seen, before, whose = string.match(redis.call('HGET', KEYS[4], '!turn') or '', '^(%d+) (%d+) (%S+) (.*)$')
  since, seen = tonumber(since), tonumber(seen)
  if whose ~= owner or before ~= deadline or seen > now_ms or now_ms - since > NEXT_TURN then
    return nil
  end
  -- If a turn had not ended at the last check, the waiter may have used it since and queued again.
  -- It has not if that check was just now, or if the checking waiter has waited behind it all the
  -- time.
  local arrived = self and tonumber(string.match(redis.call('HGET', KEYS[4], '#' .. self) or '', '^%d+'))
  if seen - since <= TURN and now_ms - seen > TURN and not (arrived and math.floor(arrived / 1000) <= since) then
    return nil
  end
  return since
end

-- Wakes another library's waiter because it is its turn. False once it has failed to take the lock
-- for too long. Then those behind it are passed over too: Redisson gives a free lock only to the
-- head of the list, so they could not take it. So a free lock is left to such waiters only once in
-- a while, however many do not react.
local function wake(owner, self)
  local now_ms = math.floor(now / 1000)
  local deadline = redis.call('ZSCORE', KEYS[5], owner) or '-'
  local since = turn_of(owner, deadline, now_ms, self)
  -- Those ahead do not listen. They keep their places behind this one.
  if not since and redis.call('LINDEX', KEYS[3], 0) ~= owner then
    redis.call('LREM', KEYS[3], 0, owner)
    redis.call('LPUSH', KEYS[3], owner)
  end
  since = since or now_ms
  over = now_ms - since > TURN
  turn_noted = true
  note('!turn', string.format('%.0f %.0f ', since, now_ms) .. deadline .. ' ' .. owner)
  redis.pcall(publish, channel .. ':' .. owner, '0')
  return not over
end

local function window()
  return nil
end

local function open_window() end

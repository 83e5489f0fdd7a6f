-- Takes a place in the queue of the fair lock. Needs what `queue_fair` needs; ARGV of acquire.
-- Defines `enter`; `look_back` and `tail`, which say without checking that others may be waiting;
-- `rejoin`; `place_of`: a place is found by its owner.
local function place_of() end
local tail
local function look_back()
  tail = {true}
  return true
end

-- Redisson's own wait for each waiter, in ms. Native waiters write deadlines as Redisson would, so
-- that its clients leave them alone.
local REDISSON_WAIT = 300000
-- The batch size of a search, and the most batches.
local LOOK, LOOKS = 64, 64
-- Half of the offset in the deadline of a waiter set aside (see `queue_fair`).
local SET_ASIDE = 2e15

-- The arrival time in a note.
local function arrival(note)
  return tonumber(string.match(note, '^%d+'))
end

-- Notes when a waiter arrived, and another library's waiter that was ahead then, if any.
local function note_arrival(owner, arrived, theirs)
  redis.call('HSET', KEYS[4], '#' .. owner, string.format('%.0f', arrived) .. (theirs and ' ' .. theirs or ''))
end

-- When the waiter at this place of the list arrived: now, but after those ahead and before the next
-- one. So notes grow along the list, even if an earlier server's clock was ahead of this one's.
local function arrival_at(place)
  local from = math.max(place - LOOK, 0)
  local fields = {'!aside'}
  for _, owner in ipairs(redis.call('LRANGE', KEYS[3], from, place + 1)) do
    fields[#fields + 1] = '#' .. owner
  end
  local notes = redis.call('HMGET', KEYS[4], unpack(fields))
  local arrived, own = now, place - from + 2
  for i = 1, own - 1 do
    arrived = math.max(arrived, notes[i] and arrival(notes[i]) + 1 or 0)
  end
  return notes[own + 1] and math.min(arrived, arrival(notes[own + 1]) - 1) or arrived
end

-- Another library's first waiter among the `ahead` first ones, if there is one, and the most such
-- waiters there can be.
local function other_ahead(ahead)
  local other, count = nil, math.max(0, ahead - LOOK)
  for _, before in ipairs(ahead > 0 and redis.call('LRANGE', KEYS[3], 0, math.min(ahead, LOOK) - 1) or {}) do
    if not native(before) then
      other, count = other or before, count + 1
    end
  end
  return other, count
end

-- Puts back one of our waiters that is no longer in the list: Redisson removed it as dead, by a
-- clock that is ahead, or it was set aside. Both happen only to heads, so it belongs before other
-- libraries' waiters and before those of ours that arrived later. Without a note of its arrival it
-- becomes the last. Returns how many are ahead.
local function put_back(owner)
  local note, ahead = redis.call('HGET', KEYS[4], '#' .. owner), 0
  if not note then
    ahead = redis.call('RPUSH', KEYS[3], owner) - 1
    note_arrival(owner, arrival_at(ahead), (other_ahead(ahead)))
    return ahead
  end
  local arrived = arrival(note)
  for _ = 1, LOOKS do
    local owners, fields = redis.call('LRANGE', KEYS[3], ahead, ahead + LOOK - 1), {}
    if not owners[1] then
      break
    end
    -- Ours stand in order of arrival: if the last of these came earlier, all did.
    local last = redis.call('HGET', KEYS[4], '#' .. owners[#owners])
    if last and arrival(last) <= arrived then
      ahead = ahead + #owners
    else
      for i, other in ipairs(owners) do
        fields[i] = '#' .. other
      end
      for i, other in ipairs(redis.call('HMGET', KEYS[4], unpack(fields))) do
        if not other or arrival(other) > arrived then
          redis.call('LINSERT', KEYS[3], 'BEFORE', owners[i], owner)
          return ahead + i - 1
        end
      end
      ahead = ahead + #owners
    end
  end
  return redis.call('RPUSH', KEYS[3], owner) - 1
end

-- Keeps the hash for as long as this place, or longer if others need it. Only the hash may expire:
-- Redisson's two keys never do. Returns whether the hash is new.
local function keep_records(place)
  local ttl = math.max(60000, 2 * place)
  if redis.call('PEXPIRE', KEYS[4], ttl, 'NX') == 1 then
    return true
  end
  redis.call('PEXPIRE', KEYS[4], ttl, 'GT')
  return false
end

-- The place of a waiter that returns: how many are ahead; another library's waiter among them if
-- there is one; its own deadline (0 if it has none); and the most waiters of other libraries ahead.
-- `new` if its record was missing.
local function come_back(owner, place, new)
  keep_records(place)
  -- The record of an old waiter may be lost while its place is not.
  local known = tonumber(redis.call('ZSCORE', KEYS[5], owner) or 0)
  local aside = known >= SET_ASIDE
  if aside then
    known = 0
  end
  local ahead = not aside and (not new or known ~= 0) and redis.call('LPOS', KEYS[3], owner)
  if not ahead then
    ahead = new and redis.call('RPUSH', KEYS[3], owner) - 1 or put_back(owner)
  end
  local theirs, others = other_ahead(ahead)
  return ahead, theirs, known, others
end

-- Puts a waiter that was set aside back into its place. Returns whether it was set aside.
local function rejoin(owner)
  if tonumber(redis.call('ZSCORE', KEYS[5], owner) or 0) < SET_ASIDE then
    return false
  end
  -- The least deadline that it needs; `enter` raises it if the waiter must wait.
  redis.call('ZADD', KEYS[5], string.format('%.0f', now / 1000 + REDISSON_WAIT), owner)
  put_back(owner)
  return true
end

-- The same for a newcomer, whose place is the last. It reads the note of the waiter before it,
-- which searched when it came: the cost of a place must not grow with the queue. It has noted that
-- it arrived now, and corrects that if the last one's note or '!aside' is not earlier.
local function join(owner, place)
  local ahead = redis.call('RPUSH', KEYS[3], owner) - 1
  local before = ahead > 0 and redis.call('LRANGE', KEYS[3], -2, -2)[1]
  local theirs, arrived, notes = before, now, {}
  if before and native(before) then
    notes = redis.call('HMGET', KEYS[4], '#' .. before, '!aside')
    theirs = string.match(notes[1] or '', '^%d+ (.*)$')
    if theirs and not redis.call('ZSCORE', KEYS[5], theirs) then
      -- That one is gone. Another may be further ahead.
      theirs = other_ahead(ahead)
    end
  end
  if notes[1] then
    arrived = math.max(now, arrival(notes[1]) + 1, (notes[2] or 0) + 1)
    -- The waiter before it has given the hash an expiry.
    redis.call('PEXPIRE', KEYS[4], math.max(60000, 2 * place), 'GT')
  elseif not keep_records(place) then
    arrived = arrival_at(ahead)
  end
  if theirs or arrived ~= now then
    note_arrival(owner, arrived, theirs)
  end
  return ahead, theirs, 0, ahead
end

-- Takes a place at the end, or keeps the existing one. `foreign` is 1 if another library's client
-- holds the lock. Returns how many are ahead, and 1 if another library's waiter is among them.
local function enter(owner, kept, foreign, newcomer)
  local place, rest = tonumber(kept), table.concat({ARGV[2], ARGV[7], ARGV[6], ARGV[5], ARGV[11]}, ' ')
  if foreign == 1 then
    -- It took the lock, so its turn has ended and it is alive: forget the notes before it waits
    -- again.
    redis.call('HDEL', KEYS[4], '!turn', '?' .. redis.call('HKEYS', KEYS[1])[1])
  end
  local now_ms = now / 1000
  local record = string.format('%.0f', now_ms + place) .. ' ' .. rest
  local new
  if newcomer then
    new = redis.call('HSET', KEYS[4], owner, record, '#' .. owner, string.format('%.0f', now)) == 2
  else
    new = redis.call('HSET', KEYS[4], owner, record) == 1
  end
  local ahead, theirs, known, others = (new and newcomer and join or come_back)(owner, place, new)
  if new ~= newcomer then
    -- Its note is missing, or is of now, because a newcomer's attempt has run twice.
    note_arrival(owner, arrival_at(ahead), theirs)
  end
  -- Each of Redisson's grants takes one wait off every deadline, so a deadline needs one wait for
  -- each waiter ahead. Every heartbeat renews it, because Redisson removes a head whose deadline
  -- has passed. The deadline of a polling waiter is the end of its place, so that Redisson's
  -- waiters pass a dead one; only grants of Redisson's waiters ahead of it can come before that.
  local polls = ARGV[11] == ''
  local deadline = now_ms + (polls and others * REDISSON_WAIT + place or (ahead + 1) * REDISSON_WAIT)
  if polls or known < deadline then
    redis.call('ZADD', KEYS[5], string.format('%.0f', deadline), owner)
  end
  return ahead, theirs and 1 or 0
end

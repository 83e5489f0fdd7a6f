-- The queue of every kind but the fair lock. Needs `now`; KEYS[3] the queue (sorted set: member ->
-- ticket, the server's time in us when its waiter came); KEYS[4] a hash: owner -> until when it is
-- alive, in ms, once it has sent a heartbeat; '!open' -> until when the lock is left to others, in
-- ms; '!recall' -> see `recall`.
--
-- A member is '<place, ms> <lease, ms> <tokens> <permits> <mode> <length of the owner> <owner>
-- <inbox channel>': all that a grant needs. A waiter is alive from its ticket on for as long as its
-- place. A heartbeat is noted only once an eighth of that has passed (see `enter`), so a waiter
-- that gets the lock earlier has no note to remove. If the server's clock was set back, and a
-- ticket is ahead of it by more than that eighth, only the note counts: waiters that come then get
-- one at once.
--
-- Defines `first`, `line_from`, `set_aside`, `leave`, `give_up`, `parse`, `alive_until`,
-- `ticket_of`, `wake`, `window`, `open_window`.

local function parse(member)
  local place, lease, tokens, permits, mode, length, rest =
    string.match(member, '^(%d+) (%d+) (%d+) (%d+) (%a) (%d+) (.*)$')
  if place then
    return place, lease, tokens, permits, mode, string.sub(rest, length + 2), string.sub(rest, 1, length)
  end
end

-- Until when a waiter is alive, in us, using its note if it has one. Anything that is not a member
-- of this queue is not alive.
local function alive_until(place, ticket, note)
  local by_note = (tonumber(note or 0) or 0) * 1000
  if not place or note and ticket - now >= place * 125 then
    return place and by_note or 0
  end
  return math.max(ticket + place * 1000, by_note)
end

-- Whether a waiter is alive. Reads its note only if its ticket does not tell.
local function alive(place, ticket, owner)
  local by_ticket = alive_until(place, ticket) > now
  if not place or by_ticket and ticket - now < place * 125 then
    return by_ticket
  end
  return alive_until(place, ticket, redis.call('HGET', KEYS[4], owner)) > now
end

-- Removes a waiter from the queue, and its note if it may have one.
local function leave(owner, member)
  local ticket = redis.call('ZSCORE', KEYS[3], member)
  if not ticket then
    return false
  end
  redis.call('ZREM', KEYS[3], member)
  if math.abs(now - ticket) >= parse(member) * 125 then
    redis.call('HDEL', KEYS[4], owner)
  end
  return true
end

-- The members of an owner. Reads the whole queue.
local function members_of(owner)
  local found = {}
  for at = 0, redis.call('ZCARD', KEYS[3]) - 1, 256 do
    for _, member in ipairs(redis.call('ZRANGE', KEYS[3], at, at + 255)) do
      if string.find(member, owner, 1, true) and select(7, parse(member)) == owner then
        found[#found + 1] = member
      end
    end
  end
  return found
end

-- Gives up the place of an owner, if it has one. Searches for it if its member is unknown.
local function give_up(owner, member)
  local members = {member}
  if not member then
    members = members_of(owner)
  end
  if not members[1] or redis.call('ZREM', KEYS[3], unpack(members)) == 0 then
    return false
  end
  redis.call('HDEL', KEYS[4], owner)
  return true
end

-- Added to the ticket of a deaf waiter that is set aside: it stands behind the queue until its next
-- attempt subtracts it again (see `come_back` in `enter`). Tickets stay below this until 2096.
local ASIDE = 4e15

-- The ticket in a score, and whether its waiter is set aside.
local function ticket_of(score)
  score = tonumber(score)
  if score >= ASIDE then
    return score - ASIDE, true
  end
  return score, false
end

-- Removes the dead at the start of these members and scores, up to the first that is alive.
local function remove_dead(entries)
  local places, owners = {}, {}
  for i = 1, #entries / 2 do
    local place, _, _, _, _, _, owner = parse(entries[2 * i - 1])
    places[i], owners[i] = place or false, owner or ''
  end
  if not owners[1] then
    return
  end
  local notes = redis.call('HMGET', KEYS[4], unpack(owners))
  local dead = {}
  for i, place in ipairs(places) do
    local ticket = ticket_of(entries[2 * i])
    if alive_until(place, ticket, notes[i]) > now then
      break
    end
    dead[i] = entries[2 * i - 1]
  end
  if dead[1] then
    redis.call('ZREM', KEYS[3], unpack(dead))
    redis.call('HDEL', KEYS[4], unpack(owners, 1, #dead))
  end
end

-- The first waiter that is alive, after `skip` of them, and its member. Removes the dead before it,
-- up to 64 in each of 16 rounds, because a crowd of dead waiters must not make a script slow. If
-- there is none: nil, nil, and true if the rounds did not suffice or some waiters are set aside.
local function first(skip)
  for _ = 1, 16 do
    local entry = redis.call('ZRANGE', KEYS[3], skip, skip, 'WITHSCORES')
    if not entry[1] then
      return nil
    end
    local place, _, _, _, _, _, owner = parse(entry[1])
    local ticket, aside = ticket_of(entry[2])
    if alive(place, ticket, owner) then
      if aside then
        return nil, nil, true
      end
      return owner, entry[1]
    end
    remove_dead(redis.call('ZRANGE', KEYS[3], skip, skip + 63, 'WITHSCORES'))
  end
  return nil, nil, true
end

-- Up to 64 waiters after `skip` of them: the owner, member, inbox and ticket of each.
local function line_from(skip)
  local entries, found = redis.call('ZRANGE', KEYS[3], skip, skip + 63, 'WITHSCORES'), {}
  for i = 1, #entries, 2 do
    local _, _, _, _, _, inbox, owner = parse(entries[i])
    local ticket, aside = ticket_of(entries[i + 1])
    if owner and not aside then
      found[#found + 1] = {owner, entries[i], inbox, ticket}
    end
  end
  return found
end

-- Sets waiters of `line_from` aside. Removes dead ones that were set aside before; otherwise they
-- would pile up behind a queue that never empties.
local function set_aside(waiters)
  remove_dead(redis.call('ZRANGE', KEYS[3], ASIDE, '+inf', 'BYSCORE', 'LIMIT', 0, 64, 'WITHSCORES'))
  local words = {}
  for i, waiter in ipairs(waiters) do
    words[2 * i - 1], words[2 * i] = waiter[4] + ASIDE, waiter[2]
  end
  redis.call('ZADD', KEYS[3], unpack(words))
end

-- For how long waiters leave the lock to clients that cannot queue, in ms.
local OPEN = 20

-- What is left of that time; nil if it is over. If more than all of it seems left, the server's
-- clock was set back, and it is over.
local function window()
  local left = tonumber(redis.call('HGET', KEYS[4], '!open') or 0) - now / 1000
  if left > 0 and left <= OPEN then
    return math.ceil(left)
  end
end

-- Starts that time.
local function open_window()
  redis.call('HSET', KEYS[4], '!open', string.format('%.0f', now / 1000 + OPEN))
  -- Recent waiters may have left no note here that would expire.
  if redis.call('PTTL', KEYS[4]) == -1 then
    redis.call('PEXPIRE', KEYS[4], 60000)
  end
end

-- This queue holds only this library's waiters.
local function wake()
  return false
end

-- Direct hand-off: what became free goes to those first in the queue, and they are told.
-- Needs `publish`; `first`, `parse`, `call`, `leave` of the queue; `exclusive`, `letters`, `standing`, `take` of the kind;
-- `reserve`.
-- Defines `hand_on`, `say`.

-- Tells a waiter's process something about that waiter: a token is a grant, 0 says: look.
local function say(inbox, word, owner)
  return redis.pcall(publish, inbox, word .. ' ' .. owner)
end

-- Whether a waiter can be handed something: certainly not if nobody listens to its inbox on this server. That is counted
-- before anything is said: what is said here is also heard on this server's replicas, and whoever listens there
-- would believe a grant that is not made because it was not counted. It is told that it was passed over instead ('d'),
-- and knows then that it listens in the wrong place.
-- A command in lower case says that those who listen on other nodes hear it and cannot be counted.
local function listens(inbox, owner)
  if publish == 'publish' then
    return true
  end
  local counts = redis.pcall('PUBSUB', publish == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', inbox)
  -- Who may not ask that counts those who hear a word without a meaning.
  local listeners = counts[2] or say(inbox, '?', owner)
  if listeners == 0 then
    say(inbox, 'd', owner)
  end
  return listeners ~= 0
end

-- Grants what is free to the first waiters that can have it. Call it when something is free.
-- Returns 'empty' if nobody (else) is in the way, 'self' if it is the turn of `self`, 'busy' if somebody else got it
-- all or waits for more than is free; and how many were granted.
--
-- A waiter that certainly does not listen (its connection is gone, perhaps its process) is passed over but keeps its
-- place: if it lives, it comes back. Another library's waiter (of a fair lock) is never granted to: it is called, and
-- the lock is left free for it.
--
-- A token is published last, when its waiter is the holder.
local function hand_on(self)
  local skip, granted = 0, 0
  for _ = 1, 64 do
    local owner, record = first(skip)
    if not owner then
      return 'empty', granted
    end
    if owner == self then
      return 'self', granted
    end
    local _, lease, tokens, permits, mode, inbox = parse(record or '')
    if mode and not string.find(letters, mode, 1, true) then
      -- Waits for another kind of this name, and is told so when it looks.
      skip = skip + 1
    elseif record then
      permits = tonumber(permits)
      if not exclusive and standing(owner, mode, permits) ~= 0 then
        return 'busy', granted
      end
      if listens(inbox, owner) then
        local token = reserve(math.max(1, tonumber(tokens)), 0)
        leave(owner)
        take(owner, lease, mode, permits)
        say(inbox, string.format('%.0f', token), owner)
        granted = granted + 1
        if exclusive then
          return 'busy', granted
        end
      else
        skip = skip + 1
      end
    elseif call(owner, self) then
      return 'busy', granted
    else
      skip = skip + 1
    end
  end
  -- Enough for one script. The next one is told to look, and goes on from here.
  local owner, record = first(skip)
  if record then
    say(select(6, parse(record)), '0', owner)
  end
  return 'busy', granted
end

-- Direct hand-off: what became free is granted to the first waiters in the queue, and their processes are told.
-- Ordinary releases of `lock` and `mutex` take the fast path instead (`fast_head`, `fast_publish`).
-- Needs `publish`; `first`, `parse`, `wake`, `leave` of the queue; `exclusive`, `letters`, `status`, `take` of the kind;
-- `reserve`.
-- Defines `hand_off`, `say`.

-- Publishes a message about a waiter to its process: a token is a grant, 0 asks the waiter to check for itself.
local function say(inbox, word, owner)
  return redis.pcall(publish, inbox, word .. ' ' .. owner)
end

-- Whether a waiter can be granted something: not if nobody listens to its inbox on this server. Listeners are counted
-- before anything is published: messages also reach this server's replicas, and a client that is subscribed there
-- would rely on a grant that is not made because it was not counted. It is told that it was passed over instead ('d'),
-- which also tells it that it is subscribed on the wrong server.
-- A publish command in lower case means that listeners on other nodes receive it and cannot be counted.
local function listens(inbox, owner)
  if publish == 'publish' then
    return true
  end
  local counts = redis.pcall('PUBSUB', publish == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', inbox)
  -- Without the right to ask, count the receivers of a message without meaning.
  local listeners = counts[2] or say(inbox, '?', owner)
  if listeners == 0 then
    say(inbox, 'd', owner)
  end
  return listeners ~= 0
end

-- Grants what is free to the first waiters that can have it. Call it when something is free.
-- Returns 'empty' if no (other) waiter is left, 'self' if `self` is next, 'busy' if another waiter got everything or waits
-- for more than is free; how many were granted; and the record of `self`, if it is next.
--
-- A waiter that does not listen (its connection is gone, perhaps its process) is passed over but keeps its
-- place: if it is alive, it will check again. Another library's waiter (of a fair lock) is never granted anything: it is
-- woken, and the lock is left free for it.
--
-- A token is published last, when its waiter is the holder already.
local function hand_off(self)
  local skip, granted = 0, 0
  for _ = 1, 64 do
    local owner, record = first(skip)
    if not owner then
      return 'empty', granted
    end
    if owner == self then
      return 'self', granted, record
    end
    local _, lease, tokens, permits, mode, inbox = parse(record or '')
    if mode and not string.find(letters, mode, 1, true) then
      -- It waits for another kind of this name, and gets an error when it checks.
      skip = skip + 1
    elseif record then
      permits = tonumber(permits)
      if not exclusive and status(owner, mode, permits) ~= 0 then
        return 'busy', granted
      end
      if listens(inbox, owner) then
        local token = reserve(math.max(1, tonumber(tokens)), 0)
        leave(owner, record)
        take(owner, lease, mode, permits)
        say(inbox, string.format('%.0f', token), owner)
        granted = granted + 1
        if exclusive then
          return 'busy', granted
        end
      else
        skip = skip + 1
      end
    elseif wake(owner, self) then
      return 'busy', granted
    else
      skip = skip + 1
    end
  end
  -- Enough for one script. The next waiter is asked to check, which goes on from here.
  local owner, record = first(skip)
  if record then
    say(select(6, parse(record)), '0', owner)
  end
  return 'busy', granted
end

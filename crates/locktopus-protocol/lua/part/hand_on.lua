-- Direct hand-off: what became free goes to those first in the queue, and they are told.
-- Needs `first`, `parse`, `push`, `call`, `leave` of the queue; `exclusive`, `standing`, `take` of the kind; `reserve`.
-- Defines `hand_on`.

-- Grants what is free to the first waiters that can have it. Call it when something is free.
-- Returns 'empty' if nobody (else) is in the way, 'self' if it is the turn of `self`, 'busy' if somebody else got it
-- all or waits for more than is free; and how many were granted.
--
-- A waiter that certainly does not listen (its connection is gone, perhaps its process) is passed over but keeps its
-- place: if it lives, it comes back. Another library's waiter (of a fair lock) is never granted to: it is called, and
-- the lock is left free for it.
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
    if record then
      local _, lease, tokens, permits, mode, inbox = parse(record)
      permits = tonumber(permits)
      if not exclusive and standing(owner, mode, permits) ~= 0 then
        return 'busy', granted
      end
      local token = reserve(math.max(1, tonumber(tokens)), 0)
      if push(inbox, token, owner) then
        leave(owner)
        take(owner, lease, mode, permits)
        granted = granted + 1
        if exclusive then
          return 'busy', granted
        end
      else
        skip = skip + 1
      end
    elseif call(owner) then
      return 'busy', granted
    else
      skip = skip + 1
    end
  end
  -- Enough for one script. The next one is told to look, and goes on from here.
  local owner, record = first(skip)
  if record then
    push(select(6, parse(record)), 0, owner)
  end
  return 'busy', granted
end

-- Direct hand-off: grants what became free to the first waiters in the queue and notifies their
-- processes. Ordinary releases of `lock` and `mutex` take the fast path instead (`fast_head`,
-- `fast_publish`). Needs `publish`, `channel`; `parse`, `wake`, `leave` of the queue; `say`,
-- `next_waiter`; `exclusive`, `letters`, `status`, `take` of the kind; `keep_for`, `reserve`.
-- Defines `room_for`, `hand_off`.

-- Like `status` of the kind, but also 2 if there is no room beside what is kept for waiters ahead.
-- A writer has no room beside readers.
local function room_for(owner, mode, permits, kept)
  local code, remaining, foreign = status(owner, mode, permits)
  if code == 0 and kept > 0 and (mode == 'w' or status(owner, mode, permits + kept) ~= 0) then
    return 2, -1
  end
  return code, remaining, foreign
end

-- Grants what is free to the first waiters that can have it. Call it when something is free. `self`
-- is the waiter that is checking, and `inbox` its channel. Returns 'empty' if no (other) waiter is
-- left, 'self' if `self` is next, 'busy' if another waiter got everything or waits for more than is
-- free; how many waiters got grants; how many permits are kept for polling waiters; and the record
-- of `self`, if it is next.
--
-- It passes over a waiter that does not listen (its connection is gone, perhaps its process), even
-- one that waits for more than is free (see `next_waiter`), and a waiter for more permits than
-- exist. It keeps room for a polling waiter until that one checks or its place ends; waiters behind
-- it get the rest, which is nothing if only one can hold the lock. It never grants to another
-- library's waiter (of a fair lock), but wakes it and leaves the lock free for it.
--
-- A token is published last, once its waiter is the holder.
local function hand_off(self, inbox)
  local skip, granted, kept = 0, 0, 0
  while skip < 64 and granted < 64 do
    local owner, record, more = next_waiter(skip, self)
    if more then
      -- The checking waiter continues from here, or else any waiter that hears the channel.
      if inbox and inbox ~= '' then
        say(inbox, '0', self)
      elseif channel and channel ~= '' then
        redis.pcall(publish, channel, '0')
      end
      return 'busy', granted, kept
    end
    if not owner then
      return 'empty', granted, kept
    end
    if owner == self then
      return 'self', granted, kept, record
    end
    local _, lease, tokens, permits, mode, to = parse(record or '')
    local of_kind = record and string.find(letters, mode, 1, true)
    local code = of_kind and not exclusive and room_for(owner, mode, tonumber(permits), kept) or 0
    if not record then
      if wake(owner, self) then
        return 'busy', granted, kept
      end
      skip = skip + 1
    elseif not of_kind or code == 5 then
      -- It waits for another kind of this name or for more permits than exist, and gets an error
      -- when it checks.
      skip = skip + 1
    elseif code ~= 0 or to == '' and (exclusive or mode == 'w') then
      if turns == 'timed' and (granted > 0 or not self) then
        -- Permits of this kind are not released: this waiter must check when the next ones return.
        say(to, '0', owner)
      end
      return 'busy', granted, kept
    elseif to == '' then
      kept = kept + permits
      skip = skip + 1
    else
      keep_for(lease)
      local token = reserve(math.max(1, tonumber(tokens)), 0)
      leave(owner, record)
      take(owner, lease, mode, tonumber(permits))
      say(to, string.format('%.0f', token), owner)
      granted = granted + 1
      if exclusive then
        return 'busy', granted, kept
      end
    end
  end
  -- Enough for one script. The next waiter checks and continues from here; but not if this script
  -- granted nothing, because its check would end the same way.
  local owner, record = next_waiter(skip, self)
  if record and granted > 0 then
    say(select(6, parse(record)), '0', owner)
  end
  return 'busy', granted, kept
end

-- Detects a queue that outlived its lock and belongs to another kind of the same name. Needs
-- `letters` of the kind, `parse` of the queue. Defines `queue_of_other_kind`.
local WAITING = {x = 'lock', m = 'mutex', f = 'fair_lock', r = 'rw_lock', w = 'rw_lock', s = 'semaphore',
  p = 'permit_semaphore', t = 'rate_limiter'}

-- The kind that the first waiter, with this record, waits for, if it is another kind.
local function queue_of_other_kind(record)
  local letter = record and select(5, parse(record))
  return letter and not string.find(letters, letter, 1, true) and 'what waiters want as a ' .. WAITING[letter] or nil
end

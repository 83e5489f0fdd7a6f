-- A mutex shared with a library whose waiters are woken: rings their bell whenever the mutex becomes free. Releases and
-- evictions are told how: ARGV[8] is what to say on the channel instead of '0', ARGV[9] a list to put a one into, in
-- which waiters block; either may be empty.
-- Redefines `drop` and `announcement` of the mutex.

-- How long a one stays in the list if nobody waits for it, in ms.
local RINGS = 1000

local just_drop = drop

drop = function(owner)
  if not just_drop(owner) then
    return false
  end
  if ARGV[9] and ARGV[9] ~= '' then
    redis.call('DEL', ARGV[9])
    redis.call('LPUSH', ARGV[9], 1)
    redis.call('PEXPIRE', ARGV[9], RINGS)
  end
  return true
end

announcement = function()
  return ARGV[8] and ARGV[8] ~= '' and ARGV[8] or '0'
end

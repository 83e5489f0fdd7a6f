-- A mutex shared with a library whose waiters expect a notification whenever the mutex becomes
-- free. For releases and evictions, ARGV[8] is the message to publish on the channel instead of
-- '0', and ARGV[9] a list to push a one to, which waiters block on; either may be empty. Redefines
-- `drop` and `announcement` of the mutex.

-- How long a one stays in the list if no waiter takes it, in ms.
local KEPT = 1000

local just_drop = drop

drop = function(owner)
  if not just_drop(owner) then
    return false
  end
  if ARGV[9] and ARGV[9] ~= '' then
    redis.call('DEL', ARGV[9])
    redis.call('LPUSH', ARGV[9], 1)
    redis.call('PEXPIRE', ARGV[9], KEPT)
  end
  return true
end

announcement = function()
  return ARGV[8] and ARGV[8] ~= '' and ARGV[8] or '0'
end

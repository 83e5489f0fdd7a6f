#!lua flags=allow-oom
-- Releases a lock kept as Redisson keeps its RLock, and rings the bell for those who wait.
--
-- KEYS  1 the lock (hash)
-- ARGV  1 owner   2 PUBLISH or SPUBLISH   3 channel
-- Reply {status, receivers}
--       1 released    0 not held by this owner (nothing was done)
--       receivers: how many heard it, -1 if the message could not be sent
--
-- HDEL removes the key with its only field, and runs even when the server is out of memory.
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
  return {0, 0}
end
local receivers = redis.pcall(ARGV[2], ARGV[3], '0')
if type(receivers) ~= 'number' then
  receivers = -1
end
return {1, receivers}

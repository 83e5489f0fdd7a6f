#!lua flags=allow-oom
-- Releases a lock kept as one plain string: compare and delete.
--
-- KEYS  1 the lock (string)
-- ARGV  1 owner   2 PUBLISH or SPUBLISH, or '' to tell nobody   3 channel
-- Reply {status, receivers}
--       1 released    0 not held by this owner (nothing was done)
--       receivers: how many heard it, -1 if the message could not be sent
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return {0, 0}
end
redis.call('DEL', KEYS[1])
if ARGV[2] == '' then
  return {1, 0}
end
local receivers = redis.pcall(ARGV[2], ARGV[3], '0')
if type(receivers) ~= 'number' then
  receivers = -1
end
return {1, receivers}

-- Leaves a lock kept as in Redisson's RLock to a placeholder owner instead of releasing it. No one
-- is notified: the lock expires like that of a dead holder.
--
-- KEYS  1 the lock (hash)
-- ARGV  1 owner   2 placeholder owner   3 for how long in ms
-- Reply 1 left to it, by this script or by an earlier run of it    0 not held by this owner
local held = redis.pcall('HMGET', KEYS[1], ARGV[1], ARGV[2])
if held.err then
  return string.find(held.err, '^WRONGTYPE') and 0 or held
end
if not held[1] then
  return held[2] and 1 or 0
end
-- If the script stops anywhere below, the lock still expires in time.
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('HSET', KEYS[1], ARGV[2], 1)
redis.call('HDEL', KEYS[1], ARGV[1])
return 1

-- Leaves a lock kept as a plain string to a placeholder owner instead of releasing it. No one is
-- notified: the lock expires like that of a dead holder.
--
-- KEYS  1 the lock (string)
-- ARGV  1 owner   2 placeholder owner   3 for how long in ms
-- Reply 1 left to it, by this script or by an earlier run of it    0 not held by this owner
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then
  return string.find(holder.err, '^WRONGTYPE') and 0 or holder
end
if holder ~= ARGV[1] then
  return holder == ARGV[2] and 1 or 0
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1

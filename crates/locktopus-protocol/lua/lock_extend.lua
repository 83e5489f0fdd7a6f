-- Extends several locks kept as Redisson keeps its RLock. Never shortens a lease, never creates a lock.
--
-- KEYS  1..n the locks (hashes)
-- ARGV  1 lease in ms   2..n+1 their owners
-- Reply one number for each key
--       1 extended    0 the lock is gone    -1 somebody else holds it, or the name is used for
--       something else by now    -2 the server refused to look
local answers = {}
for i, key in ipairs(KEYS) do
  local owned = redis.pcall('HEXISTS', key, ARGV[i + 1])
  if type(owned) ~= 'number' then
    answers[i] = string.find(owned.err, '^WRONGTYPE') and -1 or -2
  elseif owned == 1 then
    -- 'GT' leaves a key without expiry alone: somebody persisted it, which must not make it immortal.
    if redis.call('PEXPIRE', key, ARGV[1], 'GT') == 0 and redis.call('PTTL', key) == -1 then
      redis.call('PEXPIRE', key, ARGV[1])
    end
    answers[i] = 1
  else
    answers[i] = -redis.call('EXISTS', key)
  end
end
return answers

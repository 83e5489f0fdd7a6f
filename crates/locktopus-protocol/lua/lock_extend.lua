-- Extends several locks kept as Redisson keeps its RLock. Never shortens a lease, never creates a lock.
--
-- KEYS  1..n the locks (hashes)
-- ARGV  1 lease in ms   2..n+1 their owners
-- Reply one number for each key
--       1 extended    0 the lock is gone    -1 somebody else holds it    -2 the key is no hash
local answers = {}
for i, key in ipairs(KEYS) do
  local owned = redis.pcall('HEXISTS', key, ARGV[i + 1])
  if type(owned) ~= 'number' then
    answers[i] = -2
  elseif owned == 1 then
    redis.call('PEXPIRE', key, ARGV[1], 'GT')
    answers[i] = 1
  else
    answers[i] = -redis.call('EXISTS', key)
  end
end
return answers

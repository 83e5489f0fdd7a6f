-- Extends the holds of several writers of read-write locks. Never shortens a hold, never creates one.
--
-- KEYS  1..n the locks (hashes)
-- ARGV  1 lease in ms   2..n+1 the writers
-- Reply one number for each
--       1 extended    0 the lock is gone    -1 somebody else holds it    -2 the server refused to look
local answers = {}
for i, key in ipairs(KEYS) do
  local writes = redis.pcall('HEXISTS', key, ARGV[i + 1] .. ':write')
  if type(writes) ~= 'number' then
    answers[i] = string.find(writes.err, '^WRONGTYPE') and -1 or -2
  elseif writes == 1 then
    if redis.call('PTTL', key) < tonumber(ARGV[1]) then
      redis.call('PEXPIRE', key, ARGV[1])
    end
    answers[i] = 1
  else
    answers[i] = -redis.call('EXISTS', key)
  end
end
return answers

-- Extends the holds of several readers of read-write locks. Never shortens a hold, never creates one.
--
-- KEYS  of each: the lock (hash)   the reader's own expiry (string)
-- ARGV  1 lease in ms   2..n+1 the readers
-- Reply one number for each
--       1 extended    0 the hold is gone    -2 the server refused to look
local answers = {}
for i = 1, #ARGV - 1 do
  local key, own = KEYS[2 * i - 1], KEYS[2 * i]
  local reads = redis.pcall('HEXISTS', key, ARGV[i + 1])
  if type(reads) ~= 'number' then
    answers[i] = string.find(reads.err, '^WRONGTYPE') and 0 or -2
  elseif reads == 1 and redis.call('EXISTS', own) == 1 then
    for _, name in ipairs({own, key}) do
      if redis.call('PTTL', name) < tonumber(ARGV[1]) then
        redis.call('PEXPIRE', name, ARGV[1])
      end
    end
    answers[i] = 1
  else
    answers[i] = 0
  end
end
return answers

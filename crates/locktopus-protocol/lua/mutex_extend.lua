-- Extends several locks kept as plain strings. Never shortens a lease, never creates a lock.
--
-- KEYS  1..n the locks (strings)
-- ARGV  1 lease in ms   2..n+1 their owners
-- Reply n if all were extended, else one number for each key
--       1 extended    0 the lock is gone    -1 another owner holds it, or the name is now used for
--       something else    -2 the server refused to read it
local call, pcall, keys, owners, lease = redis.call, redis.pcall, KEYS, ARGV, ARGV[1]
-- Many are extended with an absolute expiry: given a duration, a server computes the instant for
-- each key and rewrites the command with it.
local till
if #keys >= 8 then
  local time = call('TIME')
  till = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + lease)
end
local answers
for i = 1, #keys do
  local key, answer = keys[i], 1
  local holder = pcall('GET', key)
  if holder == owners[i + 1] then
    -- 'GT' ignores a key without expiry: if someone persisted it, the lock must not become
    -- immortal.
    local moved
    if till then
      moved = call('PEXPIREAT', key, till, 'GT')
    else
      moved = call('PEXPIRE', key, lease, 'GT')
    end
    if moved == 0 and call('PTTL', key) == -1 then
      call('PEXPIRE', key, lease)
    end
  elseif type(holder) == 'table' then
    answer = string.find(holder.err, '^WRONGTYPE') and -1 or -2
  else
    answer = holder and -1 or 0
  end
  if answer ~= 1 and not answers then
    answers = {}
    for before = 1, i - 1 do
      answers[before] = 1
    end
  end
  if answers then
    answers[i] = answer
  end
end
return answers or #keys

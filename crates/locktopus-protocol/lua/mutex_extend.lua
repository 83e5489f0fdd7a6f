-- Extends several locks kept as plain strings. Never shortens a lease, never creates a lock.
--
-- KEYS  1..n the locks (strings)
-- ARGV  1 lease in ms   2..n+1 their owners
-- Reply n if all were extended, else one number for each key
--       1 extended    0 the lock is gone    -1 somebody else holds it, or the name is used for
--       something else by now    -2 the server refused to look
local call, pcall, keys, owners, lease = redis.call, redis.pcall, KEYS, ARGV, ARGV[1]
-- Many are extended until an instant: of a span a server makes an instant for each key, and writes
-- the command anew with it.
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
    -- 'GT' leaves a key without expiry alone: somebody persisted it, which must not make it
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

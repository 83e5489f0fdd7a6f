-- Extends the holds of several writers of read-write locks. Never shortens a hold, never creates
-- one.
--
-- KEYS  1..n the locks (hashes)
-- ARGV  1 lease in ms   2..n+1 the writers
-- Reply one number for each
--       1 extended    0 the lock is gone    -1 another owner holds it, or this owner only reads
--       -2 the server refused to read it
local now
local function after(lease)
  if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return now + lease
end

local answers = {}
for i, key in ipairs(KEYS) do
  local field = ARGV[i + 1] .. ':write'
  local writes = redis.pcall('HGET', key, field)
  -- A writer that also reads may write until then, however long the key lives.
  local ends = type(writes) == 'string' and tonumber(string.match(writes, '^%d+ (%d+)$'))
  if type(writes) == 'table' then
    answers[i] = string.find(writes.err, '^WRONGTYPE') and -1 or -2
  elseif not writes or ends and ends < after(0) then
    answers[i] = -redis.call('EXISTS', key)
  else
    if ends and ends < after(ARGV[1]) then
      redis.call('HSET', key, field, string.format('1 %.0f', after(ARGV[1])))
    end
    if redis.call('PTTL', key) < tonumber(ARGV[1]) then
      redis.call('PEXPIRE', key, ARGV[1])
    end
    answers[i] = 1
  end
end
return answers

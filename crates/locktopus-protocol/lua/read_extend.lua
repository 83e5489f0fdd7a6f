-- Extends the holds of several readers of read-write locks. Never shortens a hold, never creates
-- one.
--
-- KEYS  of each: the lock (hash)   the reader's own expiry (string)
-- ARGV  1 lease in ms   2..n+1 the readers
-- Reply one number for each
--       1 extended    0 the hold is gone    -2 the server refused to read it
local now
local function is_over(ends)
  if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return ends < now
end

local answers = {}
for i = 1, #ARGV - 1 do
  local key, own = KEYS[2 * i - 1], KEYS[2 * i]
  local holds = redis.pcall('HMGET', key, ARGV[i + 1], ARGV[i + 1] .. ':write')
  if holds.err then
    answers[i] = string.find(holds.err, '^WRONGTYPE') and 0 or -2
  elseif holds[1] and redis.call('EXISTS', own) == 1 then
    local ends = holds[2] and tonumber(string.match(holds[2], '^%d+ (%d+)$'))
    if ends and is_over(ends) then
      -- It no longer writes. Other libraries' readers learn that here if no one else checks.
      redis.call('HDEL', key, ARGV[i + 1] .. ':write')
      redis.call('HSET', key, 'mode', 'read')
    end
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

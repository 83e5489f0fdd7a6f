-- Extends the leases of several acquisitions of expiring permits. Never shortens or creates one.
--
-- KEYS  of each: the permits that are held (sorted set: sixteen raw bytes -> server time in ms)
-- ARGV  1 lease in ms   then of each: first permit   number of permits
-- Reply one number for each
--       1 extended    0 the lease has expired    -2 the server refused to read it
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local answers = {}
for i, key in ipairs(KEYS) do
  local owner, permits = ARGV[2 * i], tonumber(ARGV[2 * i + 1])
  local score = redis.pcall('ZSCORE', key, owner)
  if type(score) == 'table' and score.err then
    answers[i] = string.find(score.err, '^WRONGTYPE') and 0 or -2
  elseif score and tonumber(score) > now then
    for number = 0, permits - 1 do
      local permit = string.sub(owner, 1, 14) .. string.char(math.floor(number / 256), number % 256)
      redis.call('ZADD', key, 'XX', 'GT', math.ceil(now) + ARGV[1], permit)
    end
    answers[i] = 1
  else
    answers[i] = 0
  end
end
return answers

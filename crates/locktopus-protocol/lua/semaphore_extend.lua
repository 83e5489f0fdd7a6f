-- Extends the leases of several holders of semaphores. Never shortens a lease, never creates one.
--
-- KEYS  of each: the holders (sorted set: '<permits> <owner>' -> server time in ms)
-- ARGV  1 lease in ms   then of each: owner   permits
-- Reply one number for each
--       1 extended    0 the lease has expired    -2 the server refused to read it
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local answers = {}
for i, key in ipairs(KEYS) do
  local member = ARGV[2 * i + 1] .. ' ' .. ARGV[2 * i]
  local score = redis.pcall('ZSCORE', key, member)
  if type(score) == 'table' and score.err then
    answers[i] = string.find(score.err, '^WRONGTYPE') and 0 or -2
  elseif score and tonumber(score) > now then
    redis.call('ZADD', key, 'XX', 'GT', math.ceil(now) + ARGV[1], member)
    answers[i] = 1
  else
    answers[i] = 0
  end
end
return answers

-- The server's clock, read at most once in a script: some servers freeze it while a script runs, others do not.
-- Defines `now` (us; 0 until read) and `read_clock`.
local now = 0
local function read_clock()
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- The server's clock, read at most once per script: some servers freeze it while a script runs,
-- others do not, and two readings could lead to contradicting decisions. Defines `time` (as from
-- TIME; nil until read), `now` (us; 0 until read) and `read_clock`.
local time
local now = 0
local function read_clock()
  if not time then
    time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
  end
end

-- The server's clock, read at most once per script: some servers freeze it while a script runs,
-- others do not. Defines `time` (as from TIME), `now` (us), `late`. Needs ARGV[4].
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local late = ARGV[4] ~= '0' and now > ARGV[4] + 0

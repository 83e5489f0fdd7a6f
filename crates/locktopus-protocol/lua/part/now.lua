-- The server's clock, read at most once per script: some servers freeze it while a script runs,
-- others do not. Defines `time` (as from TIME), `now` (us), `late`. Needs ARGV[4]. ARGV.time is the
-- time that an earlier member of a batch has read, if it is shared (see `fast_free`).
local time = ARGV.time or redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local late = ARGV[4] ~= '0' and now > ARGV[4] + 0

-- Fast path of acquiring, before any other part: the lock is free and has no waiters. Skipped if
-- the process of a newcomer already listens to this lock, because others had it a moment ago.
-- Defines `wanted` (how many tokens); nil if the fast path does not apply. In a batch (ARGV.time is
-- false) the other members use this reading of the clock.
if ARGV.time == false then
  ARGV.time = time
end
local wanted = KEYS[3] and not late and not ARGV[13] and ARGV[7] ~= '0' and ARGV[8] == '0'
    and redis.call('EXISTS', KEYS[1], KEYS[3]) == 0 and ARGV[7] or nil

-- Fast path of acquiring, before anything else is even defined: nobody holds the lock and nobody
-- waits for it. Not looked at for a newcomer whose process listens to this lock already: others had
-- it a moment ago. Defines `wanted` (how many tokens); nil if the fast path does not apply.
local wanted = KEYS[3] and not late and not ARGV[13] and ARGV[7] ~= '0' and ARGV[8] == '0'
    and redis.call('EXISTS', KEYS[1], KEYS[3]) == 0 and ARGV[7] or nil

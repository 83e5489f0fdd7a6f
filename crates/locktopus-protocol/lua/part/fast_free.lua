-- The usual case of taking a lock, before anything else is even defined: nobody has it and nobody waits for it.
-- Defines `wanted`; nil where the case is not usual.
local wanted = KEYS[3] and not late and not ARGV[13] and ARGV[7] ~= '0' and ARGV[8] == '0'
    and redis.call('EXISTS', KEYS[1], KEYS[3]) == 0 and ARGV[7] or nil

-- The usual case of releasing a lock, before anything else is even defined: nobody waits for it, and nothing is noted
-- beside it. Defines `released`. HDEL removes the key with its only field, and runs even when the server is out of
-- memory.
local released = redis.call('HDEL', KEYS[1], ARGV[1]) == 1
if released and (not KEYS[3] or redis.call('EXISTS', KEYS[3], KEYS[4]) == 0) then
  local receivers = redis.pcall(publish, channel, '0')
  return type(receivers) == 'number' and receivers or -1
end

-- The usual case of releasing a mutex, before anything else is even defined: nobody waits for it, and nothing is noted
-- beside it. Defines `released`.
local released = redis.call('GET', KEYS[1]) == ARGV[1]
if released then
  redis.call('DEL', KEYS[1])
  if publish == '' then
    return 0
  end
  if not KEYS[3] or redis.call('EXISTS', KEYS[3], KEYS[4]) == 0 then
    local receivers = redis.pcall(publish, channel, '0')
    return type(receivers) == 'number' and receivers or -1
  end
end

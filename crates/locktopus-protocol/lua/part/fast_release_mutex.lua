-- Fast path of releasing a mutex, before anything else is even defined: nobody waits for it, and
-- there is no recall note. Not looked at first where somebody probably waits: then the head of the
-- queue is. Defines `released`.
local holder = redis.pcall('GET', KEYS[1])
local released = holder == ARGV[1]
if released then
  redis.call('DEL', KEYS[1])
  if publish == '' then
    return 0
  end
  if ARGV[8] ~= '1' and (not KEYS[3] or redis.call('EXISTS', KEYS[3], KEYS[4]) == 0) then
    local receivers = redis.pcall(publish, channel, '0')
    return type(receivers) == 'number' and receivers or -1
  end
end
-- A key of another type is not held by this owner, who may still have a place in the queue.
if type(holder) == 'table' and not string.find(holder.err, '^WRONGTYPE') then
  return holder
end

-- Fast path of releasing a mutex, before any other part: there are no waiters and no recall note.
-- If others probably wait, the head of the queue is checked instead. Defines `released`.
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
-- This owner does not hold a key of another type, but may have a place in the queue.
if type(holder) == 'table' and not string.find(holder.err, '^WRONGTYPE') then
  return holder
end

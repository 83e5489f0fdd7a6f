-- Fast path of releasing a lock, before any other part: there are no waiters and no recall note. If
-- others probably wait, the head of the queue is checked instead. Defines `released`. HDEL removes
-- the key with its only field, and runs even when the server is out of memory.
local dropped = redis.pcall('HDEL', KEYS[1], ARGV[1])
local released = dropped == 1
if released and ARGV[8] ~= '1' and (not KEYS[3] or redis.call('EXISTS', KEYS[3], KEYS[4]) == 0) then
  local receivers = redis.pcall(publish, channel, '0')
  return type(receivers) == 'number' and receivers or -1
end
-- This owner does not hold a key of another type, but may have a place in the queue.
if type(dropped) == 'table' and not string.find(dropped.err, '^WRONGTYPE') then
  return dropped
end

-- Fast path of releasing a lock, before anything else is even defined: nobody waits for it, and
-- there is no recall note. Not looked at first where somebody probably waits: then the head of the
-- queue is. Defines `released`. HDEL removes the key with its only field, and runs even when the
-- server is out of memory.
local dropped = redis.pcall('HDEL', KEYS[1], ARGV[1])
local released = dropped == 1
if released and ARGV[8] ~= '1' and (not KEYS[3] or redis.call('EXISTS', KEYS[3], KEYS[4]) == 0) then
  local receivers = redis.pcall(publish, channel, '0')
  return type(receivers) == 'number' and receivers or -1
end
-- A key of another type is not held by this owner, who may still have a place in the queue.
if type(dropped) == 'table' and not string.find(dropped.err, '^WRONGTYPE') then
  return dropped
end

-- Reads the count of a latch. Writes nothing, so it works when the server is out of memory.
--
-- KEYS  1 the count   2 the key that names the kind of the number
--       3, 4 the holders of semaphores' permits
-- ARGV  none
-- Reply {count or '', 0}
--       error WRONGKIND: the name is in use as another kind
read_clock()
if counted_as('latch', KEYS[2], KEYS[3], KEYS[4]) == 'other' then
  return kind_conflict(KEYS[2])
end
return {tonumber(redis.call('GET', KEYS[1]) or '') or '', 0}

-- Reads the count of a latch. Writes nothing, so it goes on when the server is out of memory.
--
-- KEYS 1 the count 2 the key that says which kind the number belongs to 3, 4 who holds permits of
-- semaphores ARGV none Reply {count or '', 0}
--       error WRONGKIND: the name is in use as another kind
read_clock()
if counted_as('latch', KEYS[2], KEYS[3], KEYS[4]) == 'other' then
  return kind_conflict(KEYS[2])
end
return {tonumber(redis.call('GET', KEYS[1]) or '') or '', 0}

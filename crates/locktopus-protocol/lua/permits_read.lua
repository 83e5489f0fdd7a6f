-- Reads the number of free permits of a permit semaphore. Writes nothing, so it works when the
-- server is out of memory.
--
-- KEYS  as for `counter`, without the answer
-- ARGV  none
-- Reply {value or '', 0}
--       error WRONGKIND: the name is in use as another kind
read_clock()
if other() then
  return kind_conflict(KEYS[6])
end
local value = tonumber(redis.call('GET', KEYS[1]) or '')
if value then
  -- Expired permits count as free even before a script takes them back.
  value = value + #redis.call('ZRANGE', KEYS[5], '-inf', math.floor(now / 1000), 'BYSCORE')
end
return {value or '', 0}

-- Reads the state of a lock of any kind.
--
-- KEYS  as for acquire
-- ARGV  none
-- Reply {holders {owner, mode, holds, remaining lease in ms (-1 no expiry)} ..., last token or '',
--       waiters {owner, mode, permits, how long its place is kept in ms (-1 unknown), how long it
--       has waited in ms (negative: unknown)} ...,
--       free permits or '', server time in us}
--       error WRONGKIND: the name is in use as another kind
read_clock()
if other() then
  return kind_conflict(KEYS[6])
end
return {
  holders(),
  KEYS[2] and redis.call('GET', KEYS[2]) or '',
  waiters(),
  available(),
  now,
}

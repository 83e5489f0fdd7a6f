-- Writes something meaningless, so that `WAIT` covers everything before it: newer servers wait only
-- for the offset of the connection's own last write, which may be older than the write in question.
--
-- KEYS  1 any key
-- ARGV  1 how long to keep it in ms
-- Reply OK
return redis.call('SET', KEYS[1], 1, 'PX', ARGV[1])

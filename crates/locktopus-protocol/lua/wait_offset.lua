-- Writes something that does not matter, so that what was written before it has an offset in the replication stream that
-- `WAIT` waits for: newer servers wait only for a connection's own last write, which may be older than what is asked about.
--
-- KEYS  1 the mark
-- ARGV  1 how long to keep it in ms
-- Reply OK
return redis.call('SET', KEYS[1], 1, 'PX', ARGV[1])

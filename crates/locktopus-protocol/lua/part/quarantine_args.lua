-- Takes what quarantine needs off the end of the arguments, so that everything else finds its own where it always is.
--
-- KEYS  last: the record of the slot (hash: history -> replication id of the server, until -> server time in ms until which
--       nothing is granted, lease -> the longest lease in ms)
-- ARGV  last but one: the longest lease there is in ms   last: '<replication id>=<ms>', for how long the client has seen
--       this slot under that id, or ''
local record = table.remove(KEYS)
local seen = table.remove(ARGV)
local longest = tonumber(table.remove(ARGV))

-- Takes the arguments of the quarantine off the end, so that the positions of all others stay the
-- same.
--
-- KEYS  last: the record of the slot (hash: history -> replication id of the server,
--       until -> server time in ms until which it grants nothing,
--       lease -> the longest lease in ms,
--       epoch -> the highest that sentinels gave their primary, if any)
-- ARGV  last but one: the longest allowed lease in ms
--       last: '<replication id>=<ms>', how long the client has seen this slot under that id, or '';
--       then '@<epoch>', if it knows the sentinels' epoch
local record = table.remove(KEYS)
local seen = table.remove(ARGV)
local longest = tonumber(table.remove(ARGV))

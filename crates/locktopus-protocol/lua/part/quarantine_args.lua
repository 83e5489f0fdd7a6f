-- Takes the arguments of the quarantine off the end, so that the positions of all others stay the
-- same.
--
-- KEYS last: the record of the slot (hash: history -> replication id of the server, until -> server
-- time in ms until which
--       nothing is granted, lease -> the longest lease in ms, epoch -> the highest that sentinels gave their primary, if any)
-- ARGV last but one: the longest lease there is in ms last: '<replication id>=<ms>', for how long
-- the client has seen
--       this slot under that id, or '', and behind it '@<epoch>', if the client knows sentinels that say it
local record = table.remove(KEYS)
local seen = table.remove(ARGV)
local longest = tonumber(table.remove(ARGV))

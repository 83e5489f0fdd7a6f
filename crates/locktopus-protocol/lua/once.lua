-- Begins the function that a batch calls for each of its members: their script follows as it is, and
-- `together` ends the function. Defines `once`, whose KEYS and ARGV are those of one member.
local function once(KEYS, ARGV)

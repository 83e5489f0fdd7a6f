-- Begins the function that runs the script once, for one member of a batch. The text of the script
-- follows, and `together` ends the function. Defines `once`, which takes the KEYS and ARGV of the
-- member.
local function once(KEYS, ARGV)

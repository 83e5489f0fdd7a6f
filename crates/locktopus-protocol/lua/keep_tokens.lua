-- Keeps the last fencing tokens of several locks for longer. Never for less long, and never creates
-- a token.
--
-- KEYS  1..n the tokens (strings)
-- ARGV  1..n for how long to keep each in ms
-- Reply how many of them are now kept for longer
local longer = 0
for i, key in ipairs(KEYS) do
  longer = longer + redis.call('PEXPIRE', key, ARGV[i], 'GT')
end
return longer

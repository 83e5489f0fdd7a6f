-- Runs the script before it once for each member of a batch, in one call. If a member fails, the
-- others run all the same. Needs `once`, whose text it ends.
--
-- KEYS the keys of the first member, then those of the second, ...
-- ARGV of each member: how many keys it has, how many arguments, and its arguments
-- Reply the reply of each member in order, nil if it failed; then the place (from 0) and the error
--       of each member that failed
end

local replies, failures = {}, {}
local key, arg = 0, 0
while ARGV[arg + 1] do
  local last_key, last_arg = key + ARGV[arg + 1], arg + 2 + ARGV[arg + 2]
  local ran, reply = pcall(once, {unpack(KEYS, key + 1, last_key)}, {unpack(ARGV, arg + 3, last_arg)})
  local failure = not ran and reply or type(reply) == 'table' and reply.err
  if failure then
    failures[#failures + 1] = #replies
    failures[#failures + 1] = failure
  end
  replies[#replies + 1] = not failure and reply or false
  key, arg = last_key, last_arg
end
for _, said in ipairs(failures) do
  replies[#replies + 1] = said
end
return replies

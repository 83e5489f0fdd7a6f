-- Runs the script before it once for each member of a batch, in one call. If a member fails, the
-- others run all the same. Needs `once`, whose text it ends. All members have the same number of
-- keys and of arguments. They share the table of the arguments, so the script must not change it;
-- with ARGV.time they may share what one of them reads from the clock (`fast_free`).
--
-- KEYS the keys of the first member, then those of the second, ...
-- ARGV 1 how many members   2 the places of the arguments that differ, as '1 4 '
--       then all arguments of the first member, and of each further one those in these places
-- Reply the reply of each member in order, nil if it failed; then the place (from 0) and the error
--       of each member that failed
end

local count, own = tonumber(ARGV[1]), {}
for place in string.gmatch(ARGV[2], '%d+') do
  own[#own + 1] = tonumber(place)
end
local each, arg = #KEYS / count, #ARGV - (count - 1) * #own
local args = {unpack(ARGV, 3, arg)}
args.time = false
local replies, failures = {}, {}
for member = 1, count do
  if member > 1 then
    for _, place in ipairs(own) do
      arg = arg + 1
      args[place] = ARGV[arg]
    end
  end
  local ran, reply = pcall(once, {unpack(KEYS, each * (member - 1) + 1, each * member)}, args)
  local failure = not ran and reply or type(reply) == 'table' and reply.err
  if failure then
    failures[#failures + 1] = member - 1
    failures[#failures + 1] = failure
  end
  replies[member] = not failure and reply or false
end
for _, said in ipairs(failures) do
  replies[#replies + 1] = said
end
return replies

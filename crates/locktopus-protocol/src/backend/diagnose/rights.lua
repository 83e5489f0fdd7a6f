#!lua flags=no-writes
-- Whether this user may send each of some commands. Writes nothing: a server looks at rights before it refuses a write.
--
-- ARGV  for each command the number of its words, then its words
-- Reply one word for each: `may`; `absent`, the server does not have it; `command`, it is not permitted; `place`, it is
--       permitted, but not for this key or channel
local verdicts, at = {}, 1
while ARGV[at] do
  local count = tonumber(ARGV[at])
  local words = {unpack(ARGV, at + 1, at + count)}
  at = at + count + 1
  local reply = redis.pcall(unpack(words))
  local text = type(reply) == 'table' and reply.err or ''
  local says = function(piece) return string.find(text, piece, 1, true) end
  local verdict = 'may'
  if says('Unknown Redis command') then
    verdict = 'absent'
  elseif says('not allowed from script') then
    if not redis.acl_check_cmd(unpack(words)) then
      verdict = redis.acl_check_cmd(words[1]) and 'place' or 'command'
    end
  elseif says('executing the script') or says('ACL failure') then
    verdict = (says(' mentioned') or says(' access a ')) and 'place' or 'command'
  end
  verdicts[#verdicts + 1] = verdict
end
return verdicts

#!lua flags=no-writes
-- Asks whether this user may send each of some commands. A server checks rights before it refuses a
-- write, so nothing is written. A permitted command does not run at all, and adds no line to the
-- server's log of refusals.
--
-- ARGV  the number of keys, then the keys; the number of channels, then the channels; how many
--       commands locks need; for each command, the needed ones first, the number of its words, then
--       its words: `K` stands for a key, `C` for a channel
-- Reply a word for each command: `may`; `absent`, the server does not have it; `command`, it is not
--       permitted; `place`, it is permitted, but not for this key or channel. Then, for each key
--       and each channel, `may`, or `place` if no command is permitted there
local at = 1
local take = function()
  local count = tonumber(ARGV[at])
  local words = {unpack(ARGV, at + 1, at + count)}
  at = at + count + 1
  return words
end
local places = {K = take(), C = take()}
local needed = tonumber(ARGV[at])
at = at + 1
local open, shut, partly, verdicts = {}, {}, {}, {}

-- Finds out why a command is refused by sending it. Servers without `acl_check_cmd` get all
-- commands.
local why = function(words)
  local reply = redis.pcall(unpack(words))
  local text = type(reply) == 'table' and reply.err or ''
  local says = function(piece) return string.find(text, piece, 1, true) end
  if says('Unknown Redis command') then
    return 'absent'
  elseif says('not allowed from script') then
    if redis.acl_check_cmd(unpack(words)) then
      return 'may'
    end
    return redis.acl_check_cmd(words[1]) and 'place' or 'command'
  elseif says('executing the script') or says('ACL failure') then
    return (says(' mentioned') or says(' access a ')) and 'place' or 'command'
  end
  return 'may'
end

while ARGV[at] do
  local words, kind, slot = take(), nil, nil
  for index, word in ipairs(words) do
    if places[word] then
      kind, slot = places[word], index
    end
  end
  local verdict, known = nil, false
  for _, place in ipairs(kind or {''}) do
    if slot then words[slot] = place end
    local may
    known, may = pcall(redis.acl_check_cmd, unpack(words))
    if known and may then
      verdict, open[place] = 'may', true
    else
      shut[place] = known
    end
  end
  local first = kind and kind[1] or ''
  if slot then words[slot] = first end
  if not verdict and known and #verdicts >= needed and open[first] then
    -- Most users do not need it; not sending it keeps the server's log of refusals short.
    verdict = 'command'
  end
  verdict = verdict or why(words)
  verdicts[#verdicts + 1] = verdict
  -- A user may have read access to a key without write access.
  partly[first] = partly[first] or (verdict == 'place' and #verdicts <= needed)
end
for _, kind in ipairs({places.K, places.C}) do
  for _, place in ipairs(kind) do
    local refused = partly[place] or (shut[place] and not open[place])
    verdicts[#verdicts + 1] = refused and 'place' or 'may'
  end
end
return verdicts

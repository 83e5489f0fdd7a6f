-- Ends every hold of a lock of any kind, fences its tokens, and hands it off.
--
-- KEYS  as for acquire
-- ARGV  1 PUBLISH or SPUBLISH, or '' to notify no one   2 channel
--       3 how long to keep the token in ms, 0 = forever   4 1 if the kind has tokens, else 0
--       8, 9 how to notify another library's waiters (some mutexes)
-- Reply {token up to which all are fenced, or 0; the owners that held it ...}
--       error WRONGKIND: the name is in use as another kind, and nothing was done
read_clock()
if other() then
  return kind_conflict(KEYS[6])
end
if publish ~= '' then
  recall()
end
-- The evicted holders may use their tokens for the rest of their lease.
keep_for(redis.call('PTTL', KEYS[1]))
local owners = clear()
local fence = 0
if ARGV[4] == '1' then
  if redis.call('PTTL', KEYS[2]) == -1 then
    keep = '0' -- Java's RFencedLock counts from the last token, which it keeps for ever.
  end
  fence = reserve(1, 0)
end
local handed = 0
if publish ~= '' then
  if KEYS[3] and first(0) then
    handed = select(2, hand_off(nil))
  end
  local word = announcement(handed)
  if word then
    redis.pcall(publish, ARGV[2], word)
  end
end
table.insert(owners, 1, fence)
return owners

-- Takes several locks and mutexes of one slot, all or nothing. Never queues and never overtakes a
-- queue.
--
-- KEYS  of each member: lock, last fencing token, queue, waiters (as many as it has)
-- ARGV  1 how long to keep tokens in ms, 0 = forever
--       2 latest server time in us at which this may run, 0 = no limit   3 PUBLISH or SPUBLISH
--       then of each member: how many keys   l (lock) or m (mutex)   owner   lease in ms
--       fencing tokens   smallest token
-- Reply {status, value, server time in us, ...}
--       1 granted, value = 0; then the first token of each member, or 0
--       0 not available, value = the remaining lease that blocks it in ms, -1 = no expiry; then the
--         member's index, from 0
--       2 too late, value = 0: nothing was done
--       error WRONGKIND <index>: this member's name is in use as another kind, and nothing was done
--
-- `all` are the script's keys. For the parts, KEYS is filled with those of one member at a time.
read_clock()
local limit = tonumber(ARGV[2])
if limit > 0 and now > limit then
  return {2, 0, now}
end

local members = {}
local used = 0
for at = 4, #ARGV, 6 do
  local count = tonumber(ARGV[at])
  local member = {kind = ARGV[at + 1] == 'l' and lock or mutex, owner = ARGV[at + 2], lease = ARGV[at + 3],
    tokens = tonumber(ARGV[at + 4]), floor = tonumber(ARGV[at + 5]), keys = {}}
  for i = 1, count do
    member.keys[i] = all[used + i]
  end
  used = used + count
  members[#members + 1] = member
end

local function choose(member)
  for i = 1, 4 do
    KEYS[i] = member.keys[i]
  end
end

for index, member in ipairs(members) do
  choose(member)
  local code, remaining = member.kind.status(member.owner)
  if code == 2 then
    recall()
    return {0, remaining, now, index - 1}
  end
  if code == 4 then
    return kind_conflict(nil, index - 1)
  end
  if code == 0 and KEYS[3] then
    local head, _, more = next_waiter(0)
    if head or more then
      return {0, -1, now, index - 1}
    end
  end
  member.mine = code == 1
end

-- All tokens first: everything that can fail does so before a lock is written.
local reply = {1, 0, now}
for index, member in ipairs(members) do
  choose(member)
  local token = 0
  if member.tokens > 0 then
    token = (member.mine and reserved or reserve)(member.tokens, member.floor)
  end
  reply[3 + index] = token
end
for _, member in ipairs(members) do
  choose(member)
  if member.mine then
    member.kind.extend_hold(member.owner, member.lease)
  else
    member.kind.take(member.owner, member.lease)
  end
end
return reply

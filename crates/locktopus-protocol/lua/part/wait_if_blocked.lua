-- Finds what blocks the lock and waits for it, before the parts that only granting needs. Needs
-- `late`, `status`, `kind_conflict`, `recall`, `look_back`, `enter`; KEYS and ARGV of acquire.
-- Defines `owner`, `lease`, `mode`, `permits`, `tokens`, `floor`, `newcomer`, `wait`, and `code`,
-- `remaining`, `foreign` as `status` returns them.
local owner, lease, mode, permits = ARGV[1], ARGV[2], ARGV[5], tonumber(ARGV[6])
local tokens, floor = tonumber(ARGV[7]), tonumber(ARGV[8])
-- Most attempts that must wait are their owner's first, and many of those get the lock before a
-- second. So a first attempt skips what only later ones need. No grant was pushed to this owner
-- before, so every token is a new one.
local newcomer = ARGV[14] == '1'

if late then
  return {2, 0, now}
end

-- Only the next waiter needs to know when the blocking lease ends.
local code, remaining, foreign

local function wait(remaining, foreign)
  if code == 5 then
    -- Permits that do not exist are not worth waiting for.
    return redis.error_reply('TOOFEW ' .. string.format('%.0f', remaining))
  end
  if not ARGV[10] or ARGV[10] == '' then
    return {0, remaining, now}
  end
  local ahead, others = enter(owner, ARGV[10], foreign, newcomer)
  if remaining == -1 and ahead == 0 and tail and tail[1] then
    -- `status` skipped the remaining lease, because it expected waiters ahead.
    remaining = redis.call('PTTL', KEYS[1])
  end
  local last = newcomer and 0 or tonumber(redis.call('GET', KEYS[2]) or 0) or 0
  return {3, remaining, now, ahead, last, math.max(foreign or 0, others or 0)}
end

code, remaining, foreign = status(owner, mode, permits, newcomer and KEYS[3] and look_back())
-- Expired permits may be too few for this attempt and enough for waiters ahead.
if (code == 2 or code == 5) and not came_back then
  local answer = wait(remaining, foreign)
  -- The first waiter has sent the recall. If waiters ahead were passed over since, their heartbeats
  -- and this owner's send another.
  if not newcomer or answer[4] ~= 1 then
    recall()
  end
  return answer
end
if code == 4 then
  return kind_conflict(KEYS[6])
end

-- What blocks the lock, and waiting for it, before anything is defined that only granting needs.
-- Needs `late`, `status`, `kind_conflict`, `recall`, `enter`; KEYS and ARGV of acquire. Defines `owner`, `lease`, `mode`, `permits`,
-- `tokens`, `floor`, `wait`, and `code`, `remaining`, `foreign` as `status` returns them.
local owner, lease, mode, permits = ARGV[1], ARGV[2], ARGV[5], tonumber(ARGV[6])
local tokens, floor = tonumber(ARGV[7]), tonumber(ARGV[8])

if late then
  return {2, 0, now}
end

local function wait(remaining, foreign)
  if not ARGV[10] or ARGV[10] == '' then
    return {0, remaining, now}
  end
  local rest = table.concat({lease, ARGV[7], ARGV[6], mode, ARGV[11]}, ' ')
  local ahead, others = enter(owner, tonumber(ARGV[10]), rest, foreign)
  return {3, remaining, now, ahead, tonumber(redis.call('GET', KEYS[2]) or 0) or 0, math.max(foreign or 0, others or 0)}
end

local code, remaining, foreign = status(owner, mode, permits)
-- Expired permits may be too few for this one and enough for waiters ahead.
if code == 2 and not came_back then
  recall()
  return wait(remaining, foreign)
end
if code == 4 then
  return kind_conflict(KEYS[6])
end

#!lua
-- Takes a lock kept as one plain string, as SET key value NX PX does.
--
-- KEYS  1 the lock (string)   2 its last fencing token (string); absent for a single-key mutex
-- ARGV  1 owner   2 lease in ms   3 how long to keep the token in ms, 0 = for ever
--       4 latest server time in us at which this may run, 0 = no limit
-- Reply {status, value, server time in us}
--       1 granted, value = token, 0 without a token key  (also for a repeated attempt of the holder)
--       0 held by another, value = its remaining lease in ms, -1 = no expiry
--       2 too late, value = 0: nothing was done
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local limit = tonumber(ARGV[4])
if limit > 0 and now > limit then
  return {2, 0, now}
end

local holder = redis.call('GET', KEYS[1])
local repeated = holder == ARGV[1]
if holder and not repeated then
  return {0, redis.call('PTTL', KEYS[1]), now}
end

if repeated then
  if redis.call('PEXPIRE', KEYS[1], ARGV[2], 'GT') == 0 and redis.call('PTTL', KEYS[1]) == -1 then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
  local given = KEYS[2] and tonumber(redis.call('GET', KEYS[2]) or 0) or 0
  if given > 0 or not KEYS[2] then
    return {1, given, now}
  end
end

-- The token first: if a later command fails, a number is skipped, which does no harm. One command reads
-- the last token and writes the usual next one; only a clock that is behind takes a second.
local token = 0
if KEYS[2] then
  token = now
  local text = string.format('%.0f', now)
  local last
  if ARGV[3] == '0' then
    last = redis.call('SET', KEYS[2], text, 'GET')
  else
    last = redis.call('SET', KEYS[2], text, 'PX', ARGV[3], 'GET')
  end
  local number = tonumber(last or 0)
  if not number or not (number < 9007199254740991) then -- also refuses nan
    redis.call('SET', KEYS[2], last, 'KEEPTTL')
    return redis.error_reply('BADTOKEN the token key does not hold a number below 2^53 - 1')
  end
  if number >= now then
    token = number + 1
    redis.call('SET', KEYS[2], string.format('%.0f', token), 'KEEPTTL')
  end
end
if not repeated then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return {1, token, now}

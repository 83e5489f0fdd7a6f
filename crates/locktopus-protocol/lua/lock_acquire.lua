#!lua
-- Takes a lock kept as Redisson keeps its RLock: a hash with one field, the owner.
--
-- KEYS  1 the lock (hash)   2 its last fencing token (string)
-- ARGV  1 owner   2 lease in ms   3 how long to keep the token in ms, 0 = for ever
--       4 latest server time in us at which this may run, 0 = no limit
-- Reply {status, value, server time in us}
--       1 granted, value = token      (also when the owner holds it already: a repeated attempt)
--       0 held by another, value = its remaining lease in ms, -1 = no expiry
--       2 too late, value = 0: nothing was done
--
-- Whatever can be refused is refused before the lock is written, so an error leaves no lock behind.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local limit = tonumber(ARGV[4])
if limit > 0 and now > limit then
  return {2, 0, now}
end

local remaining = redis.call('PTTL', KEYS[1])
local repeated = false
if remaining ~= -2 then
  repeated = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
  if not repeated then
    return {0, remaining, now}
  end
end

if repeated then
  if redis.call('PEXPIRE', KEYS[1], ARGV[2], 'GT') == 0 and redis.call('PTTL', KEYS[1]) == -1 then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
  local given = tonumber(redis.call('GET', KEYS[2]) or 0) or 0
  if given > 0 then
    return {1, given, now}
  end
end

-- The token first: if a later command fails, a number is skipped, which does no harm. One command reads
-- the last token and writes the usual next one; only a clock that is behind takes a second.
local token = now
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
if not repeated then
  redis.call('HSET', KEYS[1], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return {1, token, now}

-- Fast path: reserves the tokens, in straight code, because defining a function would cost every script. The token is the
-- server's clock, if the last token is below it.
-- Needs `time`, `now`, `keep`, KEYS[2], and `wanted` (how many tokens; nil if the fast path does not apply). Defines
-- `fast_token`, the first of them; nil if the slow path has to be taken.
local fast_token
local tail = wanted and time[2] + wanted - 1
if tail and tail < 1000000 then
  -- The last of the tokens: seconds followed by six digits of microseconds are its decimal text, with no formatting.
  local text = time[1] .. string.sub(tail + 1000000, 2)
  local last
  if keep == '0' then
    last = redis.call('SET', KEYS[2], text, 'GET')
  else
    last = redis.call('SET', KEYS[2], text, 'PX', keep, 'GET')
  end
  local number = tonumber(last or 0)
  if number and number + wanted < 9007199254740992 then -- also refuses nan
    fast_token = now
    if number >= now then
      fast_token = number + 1
      redis.call('SET', KEYS[2], string.format('%.0f', number + wanted), 'KEEPTTL')
    end
  else
    -- Not a number to count from: put it back, and take the slow path, which reports it.
    redis.call('SET', KEYS[2], last, 'KEEPTTL')
  end
end

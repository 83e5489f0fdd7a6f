-- Fast path: reserves the tokens, in straight code, because defining a function would cost every
-- script. The last of the tokens is the server's clock, if the last token given is below them all:
-- its decimal text is what TIME answered, with no formatting. Needs `time`, `now`,
-- `keep`, KEYS[2], and `wanted` (how many tokens; nil if the fast path does not apply). Defines
-- `fast_token`, the first of them; nil if the slow path has to be taken.
local fast_token
if wanted then
  local text = time[1] .. (#time[2] == 6 and time[2] or string.sub(time[2] + 1000000, 2))
  local last
  if keep == '0' then
    last = redis.call('SET', KEYS[2], text, 'GET')
  else
    last = redis.call('SET', KEYS[2], text, 'PX', keep, 'GET')
  end
  local number = tonumber(last or 0)
  if number and number + wanted < 9007199254740992 then -- also refuses nan
    fast_token = now - wanted + 1
    if number >= fast_token then
      fast_token = number + 1
      redis.call('SET', KEYS[2], string.format('%.0f', number + wanted), 'KEEPTTL')
    end
  else
    -- Not a number to count from: put it back, and take the slow path, which reports it.
    redis.call('SET', KEYS[2], last, 'KEEPTTL')
  end
end

-- Fast path: reserves the tokens, in straight code, because defining a function would slow down
-- every script. If the last token given is below all of them, the last of the new ones is the
-- server's clock: its decimal text comes from TIME, without formatting. Needs `time`, `now`,
-- `keep`, KEYS[2], and `wanted` (how many tokens; nil if the fast path does not apply). Defines
-- `fast_token`, the first of them; nil if the slow path must run.
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
    -- Not a number to count from: put it back. The slow path reports it.
    redis.call('SET', KEYS[2], last, 'KEEPTTL')
  end
end

-- The token of the usual case, straight on, because a function would cost every script: the server's clock, where the
-- last token is behind it.
-- Needs `time`, `now`, `keep`, KEYS[2], and `wanted` (how many tokens; nil where the case is not usual). Defines
-- `usual_token`, the first of them; nil where the long way must be gone.
local usual_token
local tail = wanted and time[2] + wanted - 1
if tail and tail < 1000000 then
  -- The last of the tokens: the seconds and six digits of microseconds are what the number looks like, without
  -- formatting it.
  local text = time[1] .. string.sub(tail + 1000000, 2)
  local last
  if keep == '0' then
    last = redis.call('SET', KEYS[2], text, 'GET')
  else
    last = redis.call('SET', KEYS[2], text, 'PX', keep, 'GET')
  end
  local number = tonumber(last or 0)
  if number and number + wanted < 9007199254740992 then -- also refuses nan
    usual_token = now
    if number >= now then
      usual_token = number + 1
      redis.call('SET', KEYS[2], string.format('%.0f', number + wanted), 'KEEPTTL')
    end
  else
    -- That is no number to count on from: put it back, and go the long way, which says so.
    redis.call('SET', KEYS[2], last, 'KEEPTTL')
  end
end

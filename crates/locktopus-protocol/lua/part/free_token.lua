-- The token for the usual case of taking a lock, before anything else is even defined: nobody has it and nobody waits for it.
-- Defines `free_token`; nil where the case is not usual. Straight on, because a function would cost every script.
local free_token
local tail = time[2] + ARGV[7] - 1
if KEYS[3] and not late and not ARGV[13] and ARGV[7] ~= '0' and tail < 1000000 and ARGV[8] == '0'
    and redis.call('EXISTS', KEYS[1], KEYS[3]) == 0 then
  -- The last of the tokens asked for: the seconds and six digits of microseconds are what the number looks like,
  -- without formatting it.
  local text = time[1] .. string.sub(tail + 1000000, 2)
  local last
  if keep == '0' then
    last = redis.call('SET', KEYS[2], text, 'GET')
  else
    last = redis.call('SET', KEYS[2], text, 'PX', keep, 'GET')
  end
  local number = tonumber(last or 0)
  if number and number + ARGV[7] < 9007199254740992 then -- also refuses nan
    free_token = now
    if number >= now then
      free_token = number + 1
      redis.call('SET', KEYS[2], string.format('%.0f', number + ARGV[7]), 'KEEPTTL')
    end
  else
    -- That is no number to count on from: put it back, and go the long way, which says so.
    redis.call('SET', KEYS[2], last, 'KEEPTTL')
  end
end

-- Fencing tokens: max(last + 1, server time in us), so that they grow even if the last one was
-- lost. Needs `now`, `keep` (how long to keep the last token in ms, '0' = forever), KEYS[2] the
-- last token given (string). Defines `keep_for`, `reserve`, `reserved`.

-- From the next reservation on, keeps the last token for at least twice this lease, in ms: a clock
-- that is set back must not lead to smaller tokens while a holder relies on its grant.
local function keep_for(lease)
  if keep ~= '0' and 2 * lease > keep + 0 then
    keep = 2 * lease
  end
end

-- Reserves `count` tokens, the first not below `floor`, and returns the first. One command reads
-- the last token and writes the next; a second is needed only if the clock is behind the last
-- token.
local function reserve(count, floor)
  local token = math.max(now, floor)
  local text = string.format('%.0f', token + count - 1)
  local last
  if keep == '0' then
    last = redis.call('SET', KEYS[2], text, 'GET')
  else
    last = redis.call('SET', KEYS[2], text, 'PX', keep, 'GET')
  end
  local number = tonumber(last or 0)
  if not number or not (number + count < 9007199254740992) then -- also refuses nan
    redis.call('SET', KEYS[2], last, 'KEEPTTL')
    error({err = 'BADTOKEN the token key does not hold a number far enough below 2^53'})
  end
  if number >= token then
    token = number + 1
    redis.call('SET', KEYS[2], string.format('%.0f', token + count - 1), 'KEEPTTL')
  end
  return token
end

-- The first token of the holder's grant again, raised to `floor` and no further: the nodes of a
-- quorum that store one token must agree on it, even if their clocks differ. Reserves again if the
-- last token was lost.
local function reserved(count, floor)
  local first = (tonumber(redis.call('GET', KEYS[2]) or 0) or 0) - count + 1
  if first <= 0 then
    return reserve(count, floor)
  end
  if first < floor then
    first = floor
    redis.call('SET', KEYS[2], string.format('%.0f', first + count - 1), 'KEEPTTL')
  end
  return first
end

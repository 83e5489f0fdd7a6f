-- Lists and clears a hold kept as one plain string. Defines `holders`, `clear`, `available`.

-- {owner, mode, holds, remaining lease in ms (-1: no expiry)} of every holder.
local function holders()
  local owner = redis.call('GET', KEYS[1])
  if not owner then
    return {}
  end
  return {{owner, 'x', 1, redis.call('PTTL', KEYS[1])}}
end

-- Ends every hold and returns the owners.
local function clear()
  local owner = redis.call('GET', KEYS[1])
  if not owner then
    return {}
  end
  drop(owner)
  return {owner}
end

local function available()
  return ''
end

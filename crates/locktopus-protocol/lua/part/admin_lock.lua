-- Lists and clears a hold kept as in Redisson's RLock. Defines `holders`, `clear`, `available`.

-- {owner, mode, holds, remaining lease in ms (-1: no expiry)} of every holder.
local function holders()
  local fields = redis.call('HGETALL', KEYS[1])
  if not fields[1] then
    return {}
  end
  return {{fields[1], 'x', tonumber(fields[2]) or 0, redis.call('PTTL', KEYS[1])}}
end

-- Ends every hold and returns the owners.
local function clear()
  local owners = redis.call('HKEYS', KEYS[1])
  redis.call('DEL', KEYS[1])
  return owners
end

local function available()
  return ''
end

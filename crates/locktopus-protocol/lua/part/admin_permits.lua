-- Looking at and clearing permits kept as Redisson keeps its RPermitExpirableSemaphore.
-- Defines `holders`, `clear`, `available`, `held`.

-- {id, mode, 1, remaining lease in ms (-1: no expiry)} of the first thousand permits.
local function holders()
  reap()
  local found = {}
  local entries = redis.call('ZRANGE', KEYS[5], 0, 999, 'WITHSCORES')
  for i = 1, #entries, 2 do
    local score = tonumber(entries[i + 1])
    local left = score >= 922337203685477 and -1 or math.max(0, math.ceil(score - now / 1000))
    found[#found + 1] = {entries[i], 'p', 1, left}
  end
  return found
end

-- How many permits are held.
local function held()
  return redis.call('ZCARD', KEYS[5])
end

-- Takes back every permit and returns the ids.
local function clear()
  local ids = redis.call('ZRANGE', KEYS[5], 0, -1)
  give(#ids)
  redis.call('DEL', KEYS[5])
  return ids
end

local function available()
  return tonumber(redis.call('GET', KEYS[1]) or '') or ''
end

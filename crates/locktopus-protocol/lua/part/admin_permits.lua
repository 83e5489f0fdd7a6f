-- Lists and clears permits kept as in Redisson's RPermitExpirableSemaphore. Defines `holders`,
-- `clear`, `available`, `held`. Reading takes back no expired permits: that would require waking
-- the waiters, and an inspection wakes none.

-- {id, mode, 1, remaining lease in ms (-1: no expiry)} of the first thousand unexpired permits.
local function holders()
  local found = {}
  local from = '(' .. math.floor(now / 1000)
  local entries = redis.call('ZRANGE', KEYS[5], from, '+inf', 'BYSCORE', 'LIMIT', 0, 1000, 'WITHSCORES')
  for i = 1, #entries, 2 do
    local score = tonumber(entries[i + 1])
    local left = score >= 922337203685477 and -1 or math.max(0, math.ceil(score - now / 1000))
    found[#found + 1] = {entries[i], 'p', 1, left}
  end
  return found
end

-- Takes back every permit and returns the ids.
local function clear()
  local ids = redis.call('ZRANGE', KEYS[5], 0, -1)
  give(#ids)
  redis.call('DEL', KEYS[5])
  return ids
end

-- The free permits, including expired ones not yet taken back; '' if there is no semaphore.
local function available()
  local free = tonumber(redis.call('GET', KEYS[1]) or '')
  return free and free + #redis.call('ZRANGE', KEYS[5], '-inf', math.floor(now / 1000), 'BYSCORE') or ''
end

-- Lists and clears permits kept as in Redisson's RSemaphore. Defines `holders`, `clear`,
-- `available`, `held`. Reading takes back no expired permits: that would require waking the
-- waiters, and an inspection wakes none.

-- {owner, mode, permits, remaining lease in ms} of the first thousand unexpired holders.
local function holders()
  local found = {}
  local from = '(' .. math.floor(now / 1000)
  local entries = redis.call('ZRANGE', KEYS[5], from, '+inf', 'BYSCORE', 'LIMIT', 0, 1000, 'WITHSCORES')
  for i = 1, #entries, 2 do
    local permits, owner = string.match(entries[i], '^(%d+) (.*)$')
    found[#found + 1] = {owner, 'p', tonumber(permits), math.max(0, math.ceil(entries[i + 1] - now / 1000))}
  end
  return found
end

-- Takes back every permit and returns the owners.
local function clear()
  local owners = {}
  for i, entry in ipairs(redis.call('ZRANGE', KEYS[5], 0, -1)) do
    owners[i] = string.match(entry, '^%d+ (.*)$')
  end
  give(held())
  redis.call('DEL', KEYS[5])
  return owners
end

-- The free permits, including expired ones not yet taken back; '' if there is no semaphore.
local function available()
  local free = tonumber(redis.call('GET', KEYS[1]) or '')
  if not free then
    return ''
  end
  for _, entry in ipairs(redis.call('ZRANGE', KEYS[5], '-inf', math.floor(now / 1000), 'BYSCORE')) do
    free = free + tonumber(string.match(entry, '^%d+'))
  end
  return free
end

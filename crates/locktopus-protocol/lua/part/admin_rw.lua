-- Lists and clears holds kept as in Redisson's RReadWriteLock. Needs `now`, `own_end`,
-- `timeout_key`. Defines `holders`, `clear`, `available`.

-- {owner, mode, holds, remaining lease in ms (-1: no expiry)} of every holder, except holds whose
-- own expiry has passed.
local function holders()
  local found = {}
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    local writer = string.match(fields[i], '^(.*):write$')
    if writer then
      local ends = own_end(fields[i + 1])
      local left = ends and ends - math.floor(now / 1000) or redis.call('PTTL', KEYS[1])
      if not ends or left >= 0 then
        found[#found + 1] = {writer, 'w', tonumber(string.match(fields[i + 1], '^%d+')) or 0, left}
      end
    elseif fields[i] ~= 'mode' then
      local left = -2
      for hold = 1, tonumber(fields[i + 1]) or 0 do
        left = math.max(left, redis.call('PTTL', timeout_key(fields[i], hold)))
      end
      if left ~= -2 then
        found[#found + 1] = {fields[i], 'r', tonumber(fields[i + 1]) or 0, left}
      end
    end
  end
  return found
end

-- Ends every hold and returns the owners.
local function clear()
  local owners = {}
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if field ~= 'mode' then
      redis.call('DEL', timeout_key(field))
      owners[#owners + 1] = string.match(field, '^(.*):write$') or field
    end
  end
  redis.call('DEL', KEYS[1])
  return owners
end

local function available()
  return ''
end

-- Looking at the waiting queue of every kind but the fair lock. Needs `now`, `parse`. Defines `waiters`.

-- {owner, mode, permits, how long its place is kept in ms} of the first thousand, in order, without the dead.
local function waiters()
  local found = {}
  if not KEYS[3] then
    return found
  end
  local owners = redis.call('ZRANGE', KEYS[3], 0, 999)
  local records = owners[1] and redis.call('HMGET', KEYS[4], unpack(owners)) or {}
  for i, owner in ipairs(owners) do
    local until_ms, _, _, permits, mode = parse(records[i] or '')
    local left = until_ms and math.floor(tonumber(until_ms) - now / 1000) or 0
    if left > 0 then
      found[#found + 1] = {owner, mode, tonumber(permits), left}
    end
  end
  return found
end

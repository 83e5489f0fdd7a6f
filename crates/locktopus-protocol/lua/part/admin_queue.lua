-- Lists the queue of every kind but the fair lock. Needs `now`, `parse`, `alive_until`,
-- `ticket_of`. Defines `waiters`.

-- {owner, mode, permits, how long its place is kept in ms, how long it has waited in ms (negative:
-- unknown)} of the first thousand, in order, without the dead. Waiters set aside come last.
local function waiters()
  local found = {}
  local entries = KEYS[3] and redis.call('ZRANGE', KEYS[3], 0, 999, 'WITHSCORES') or {}
  for i = 1, #entries, 2 do
    local place, _, _, permits, mode, _, owner = parse(entries[i])
    local note = owner and redis.call('HGET', KEYS[4], owner)
    local ticket = ticket_of(entries[i + 1])
    local left = math.floor((alive_until(place, ticket, note) - now) / 1000)
    if owner and left > 0 then
      found[#found + 1] = {owner, mode, tonumber(permits), left, math.floor((now - ticket) / 1000)}
    end
  end
  return found
end

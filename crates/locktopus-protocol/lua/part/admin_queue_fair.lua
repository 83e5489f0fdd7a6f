-- Lists the queue of the fair lock. Needs `now`, `parse`, `set_aside_first`. Defines `waiters`.

-- {owner, mode, permits, how long its place is kept in ms (-1: unknown), how long it has waited in
-- ms (negative: unknown)} of the first thousand, in order, without dead native waiters. Waiters set
-- aside come last.
local function waiters()
  local found = {}
  local owners = redis.call('LRANGE', KEYS[3], 0, 999)
  for _, owner in ipairs((set_aside_first(1000 - #owners))) do
    owners[#owners + 1] = owner
  end
  for _, owner in ipairs(owners) do
    local record = redis.call('HGET', KEYS[4], owner)
    if record then
      local left = math.floor(tonumber((parse(record))) - now / 1000)
      local note = redis.call('HGET', KEYS[4], '#' .. owner) or ''
      local arrived = tonumber(string.match(note, '^%d+')) or now + 1
      if left > 0 then
        found[#found + 1] = {owner, 'x', 1, left, math.floor((now - arrived) / 1000)}
      end
    elseif string.sub(owner, 15, 23) ~= '8c70-a705' then
      found[#found + 1] = {owner, 'x', 1, -1, -1}
    end
  end
  return found
end

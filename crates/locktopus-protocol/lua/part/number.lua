-- Tells apart the kinds that are stored as one number. A key beside the number names the kind, and
-- for permits how many there are and how many of them were drained: '<kind> <all> <drained>'.
-- Redisson writes no such key; then the holders of permits tell, and in doubt the number counts as
-- the requested kind. Needs `wrong_type`, `now`. Defines `counted_as`.

-- Whether this sorted set of deadlines has holders of permits.
local function counts_holders(key)
  local found = redis.pcall('ZRANGE', key, '(' .. math.floor(now / 1000), '+inf', 'BYSCORE', 'LIMIT', 0, 1)
  return not wrong_type(found) and found[1] ~= nil
end

-- 'ours' if KEYS[1] is a number of this kind, 'other' if the name is in use as something else,
-- 'none' if it is free. Then how many permits there are and how many of them were drained, if
-- recorded. `kind_key` names the kind of the number, the other keys are where other kinds keep
-- their holders.
local function counted_as(kind, kind_key, ...)
  local value = redis.pcall('GET', KEYS[1])
  if wrong_type(value) or value and not (#value < 18 and string.find(value, '^%-?%d+$')) then
    return 'other'
  end
  local said = value and redis.call('GET', kind_key)
  if said then
    local word, all, drained = string.match(said, '^(%S+) ?(%-?%d*) ?(%d*)$')
    return word == kind and 'ours' or 'other', tonumber(all), tonumber(drained)
  end
  for _, key in ipairs({...}) do
    if counts_holders(key) then
      return 'other'
    end
  end
  return value and 'ours' or 'none'
end

-- Keeping apart the kinds that are one number: a key beside it says which kind it is, and of a
-- semaphore how many permits there are and how many of them were drained: '<kind> <all> <drained>'.
-- Redisson writes none; then the holders of permits tell, and what cannot be told is assumed to be
-- of the requested kind. Needs `wrong_type`, `now`. Defines `counted_as`.

-- Whether anybody holds permits in this sorted set of deadlines.
local function counts_holders(key)
  local found = redis.pcall('ZRANGE', key, '(' .. math.floor(now / 1000), '+inf', 'BYSCORE', 'LIMIT', 0, 1)
  return not wrong_type(found) and found[1] ~= nil
end

-- 'ours' if KEYS[1] is a number of this kind, 'other' if the name is in use as something else,
-- 'none' if it is free. Then how many permits there are and how many of them were drained, if that
-- was written. `kind_key` says which kind the number is, the others are where other kinds keep
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

-- The reply if a name is in use as another kind. Needs `wrong_type`. Defines `kind_conflict`.

-- 'WRONGKIND <index in the group, from 0> <kind found>'. `kind_key` is the key beside a number that
-- says which kind it belongs to.
local function kind_conflict(kind_key, index, word)
  local text = not word and redis.pcall('GET', KEYS[1])
  if word then
    -- Known already.
  elseif not text then
    word = kind_key and 'a semaphore whose number is gone' or 'nothing'
  elseif not wrong_type(text) then
    if #text < 18 and string.find(text, '^%-?%d+$') then
      word = kind_key and string.match(redis.call('GET', kind_key) or '', '^%S+') or 'a number (semaphore, permit_semaphore or latch)'
    else
      word = string.sub(text, 15, 23) == '8c70-a705' and 'mutex' or 'a text'
    end
  else
    local fields = redis.pcall('HKEYS', KEYS[1])
    word = 'something that is no lock'
    if not wrong_type(fields) then
      local owner = fields[1]
      if redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
        word = 'rw_lock'
      elseif #fields == 1 and string.sub(owner, 15, 23) == '8c70-a705' then
        word = string.byte(owner, -1) % 2 == 1 and 'fair_lock' or 'lock'
      elseif #fields == 1 and string.find(owner, '^[%x-]+:%-?%d+$') then
        word = 'lock or fair_lock'
      end
    end
  end
  return redis.error_reply(string.format('WRONGKIND %d %s', index or 0, word))
end

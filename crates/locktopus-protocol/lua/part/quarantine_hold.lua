-- Puts the lock of a kind under quarantine. Needs `guarded`, `held_back`, `standing`, `first`.
-- Redefines `standing` and `first`: while nothing may be granted there is nobody to hand anything on to.
standing = guarded(standing)

local first_of_queue = first
first = function(skip)
  if held_back() ~= 0 then
    return nil
  end
  return first_of_queue(skip)
end

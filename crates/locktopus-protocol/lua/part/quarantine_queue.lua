-- Puts the queue of a lock under quarantine. Needs `held_back`, `first`. Redefines `first`: while
-- nothing may be granted, there is no next waiter.
local first_of_queue = first
first = function(skip)
  if held_back() ~= 0 then
    return nil
  end
  return first_of_queue(skip)
end

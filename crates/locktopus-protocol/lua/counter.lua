-- Changes the number of permits of a semaphore or a rate limiter, and hands off what became free.
--
-- KEYS  1 the free permits (number)   2 the last fencing token   3 the queue   4 the waiters
--       5 the holders   6 the key that names the kind of the number
--       7 the holders of the other kind   8 the answer to this operation, if it ran before
-- ARGV  1 init, resize, add, drain or delete   2 a number   3 PUBLISH or SPUBLISH   4 channel
--       5 how long to keep the answer in ms   6 how long to keep the token in ms, 0 = forever
--       7 the period in ms (init and resize of a rate limiter)
-- Reply {value afterwards (for drain: how many were taken) or '', 1 if something changed}
--       error WRONGKIND: the name is in use as another kind, and nothing was done
local done = redis.call('GET', KEYS[8])
if done then
  local value, changed = string.match(done, '^(%S*) (%d)$')
  return {tonumber(value) or '', tonumber(changed)}
end
read_clock()
if other() then
  return kind_conflict(KEYS[6])
end
local theirs = used_as() == 'none' and queue_of_other_kind(select(2, first(0)))
if theirs then
  return kind_conflict(nil, 0, theirs)
end
reap()

local action, number = ARGV[1], tonumber(ARGV[2])
local before = tonumber(redis.call('GET', KEYS[1]) or '')
local after, answer = before, nil
-- If the number is gone, its holders keep their permits: those are not free, and return when they
-- are released.
if action == 'resize' or not before and (action == 'init' or action == 'add') then
  after, all, drained = number - held(), number, tonumber(ARGV[7] or 0)
elseif action == 'add' then
  after = before + number
  if all then
    -- Drained permits come back first.
    local back = math.min(drained, math.max(0, number))
    all, drained = all + number - back, drained - back
  end
elseif action == 'drain' then
  answer = math.max(0, before or 0)
  if answer > 0 and status('', 'p', answer) ~= 0 then
    answer = 0 -- Under quarantine nothing can be drained.
  end
  after = before and before - answer
  if KIND == 'permit_semaphore' then
    all = all or before and before + held() -- All of its holders are on record.
  end
  drained = (drained or 0) + answer
elseif action == 'delete' then
  after = nil
end

local changed = after ~= before
if after and (changed or action == 'resize') then
  redis.call('SET', KEYS[1], string.format('%.0f', after), 'KEEPTTL')
  local ttl = redis.call('PTTL', KEYS[1])
  local mark = all and string.format('%s %.0f %.0f', KIND, all, drained) or KIND
  if ttl > 0 then
    redis.call('SET', KEYS[6], mark, 'PX', ttl)
  else
    redis.call('SET', KEYS[6], mark)
  end
  used = 'ours'
  if turns == 'timed' then
    reap() -- Shortens what would stay away longer than the new period.
  end
elseif action == 'delete' then
  redis.call('DEL', KEYS[1], KEYS[5], KEYS[6])
end
answer = answer or after
redis.call('SET', KEYS[8], string.format('%s %d', answer and string.format('%.0f', answer) or '', changed and 1 or 0),
  'PX', ARGV[5])
-- With a smaller total, free permits may go to waiters behind one that wants more. With another
-- period, the first waiter must check sooner.
if (changed or came_back or action == 'resize') and after and (after > 0 or turns == 'timed') then
  if first(0) then
    hand_off(nil)
  end
  local word = announcement(0)
  if word then
    redis.pcall(publish, ARGV[4], word)
  end
end
return {answer or '', changed and 1 or 0}

-- Changes the count of a latch kept as in Redisson's RCountDownLatch.
--
-- KEYS  1 the count (number; none when it is open)   2 the key that names the kind of the number
--       3, 4 the holders of semaphores' permits   5 the answer to this operation, if it ran before
-- ARGV  1 init, count_down or delete   2 a number   3 PUBLISH or SPUBLISH   4 channel
--       5 how long to keep the answer in ms
-- Reply {count afterwards or '', 1 if something changed}
--       error WRONGKIND: the name is in use as another kind, and nothing was done
local done = redis.call('GET', KEYS[5])
if done then
  local value, changed = string.match(done, '^(%S*) (%d)$')
  return {tonumber(value) or '', tonumber(changed)}
end
read_clock()
if counted_as('latch', KEYS[2], KEYS[3], KEYS[4]) == 'other' then
  return kind_conflict(KEYS[2])
end

local action = ARGV[1]
local before = tonumber(redis.call('GET', KEYS[1]) or '')
local after, word = before, nil
if action == 'init' and not before then
  after, word = tonumber(ARGV[2]), '1'
  redis.call('SET', KEYS[1], ARGV[2])
  redis.call('SET', KEYS[2], 'latch')
elseif action == 'count_down' and before then
  after = before - 1
  if after > 0 then
    redis.call('SET', KEYS[1], string.format('%.0f', after), 'KEEPTTL')
  else
    after, word = nil, '0'
    redis.call('DEL', KEYS[1], KEYS[2])
  end
elseif action == 'delete' and before then
  -- As the end of a count: at any other word, Redisson's waiters go on waiting.
  after, word = nil, '0'
  redis.call('DEL', KEYS[1], KEYS[2])
end

local changed = after ~= before and 1 or 0
local answer = after or (action == 'count_down' and 0) or ''
redis.call('SET', KEYS[5], (answer ~= '' and string.format('%.0f', answer) or '') .. ' ' .. changed, 'PX', ARGV[5])
if word then
  redis.pcall(publish, ARGV[4], word)
end
return {answer, changed}

-- Releases a lock of any kind, or gives up a place in its queue. Hands off what became free, or
-- announces it.
--
-- KEYS  as for acquire
-- ARGV  1 owner   2 mode   3 permits   4 PUBLISH or SPUBLISH, or '' to notify no one   5 channel
--       6 how long to keep the token in ms, 0 = forever   7 channel of the clients that can queue
--       8, 9 how to notify another library's waiters (some mutexes); for other kinds 8: 1 = others
--       probably wait, which only changes the order of checks
--       To find the place of an attempt without a search, all as in the attempt:
--       10 how long the place is kept in ms   11 lease in ms   12 tokens   13 inbox channel
-- Reply if released, the receivers: how many heard the announcement, or how many got a grant; -1 if
--       publishing failed. {0}: not held by this owner (at most a place in the queue was given up).
--       A plain number: before a server sends a table, it looks up a dozen field names in it.
local owner, mode, permits = ARGV[1], ARGV[2], tonumber(ARGV[3])
local channel = ARGV[5]

-- Whether this release is for clients that cannot queue (`turns`: false = never, true = if the lock
-- is free, 'counted' = if any permit is free). Other libraries' waiters only hear announcements,
-- and hand-offs announce nothing. So one hand-off in sixteen is announced instead, if such clients
-- listen.
local function turn_of_others()
  if not turns or now % 16 ~= 0 or (turns ~= 'counted' and redis.call('EXISTS', KEYS[1]) == 1) then
    return false
  end
  if publish == 'publish' then
    return true -- Listeners on other nodes cannot be counted.
  end
  local question = publish == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
  local answer = redis.pcall('PUBSUB', question, channel, ARGV[7])
  return answer[2] ~= nil and answer[2] > answer[4]
end

if released == nil then
  if turns == 'counted' then
    read_clock() -- These leases expire by it.
  end
  released = drop(owner, mode, permits)
end
if publish == '' then
  return released and 0 or {0}
end
local handed, free = 0, released or came_back
if KEYS[3] then
  local place = ARGV[10] and table.concat({ARGV[10], ARGV[11], ARGV[12], ARGV[3], mode, #owner, owner, ARGV[13]}, ' ')
  if not released and give_up(owner, place) then
    -- If something is free, the waiters behind this one were not woken. If the state cannot be
    -- read, nothing is granted.
    read_clock()
    free = true
    if exclusive then
      local fine, code = pcall(status, owner)
      free = fine and code == 0
    end
  end
  if free and (ARGV[8] == '1' or redis.call('EXISTS', KEYS[3]) == 1) then
    read_clock()
    if released and turn_of_others() then
      local head, record = next_waiter(0)
      if head then
        open_window()
        say(select(6, parse(record)), '0', head)
      end
    else
      handed = select(2, hand_off(nil))
    end
  elseif released then
    forget_recall()
  end
end
local word = free and announcement(handed, mode)
local receivers = word and redis.pcall(publish, channel, word)
if not released then
  return {0}
end
if not word then
  return handed
end
return type(receivers) == 'number' and receivers or -1

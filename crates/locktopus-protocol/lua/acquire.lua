-- Takes a lock of any kind, or a place in its queue.
--
-- KEYS  1 lock   2 its last fencing token   3 its queue   4 its waiters   then keys of the kind
--       (a mutex shared with other libraries has no queue: 1 and 2, or 1 alone)
-- ARGV  1 owner   2 lease in ms   3 how long to keep the token in ms, 0 = forever
--       4 latest server time in us at which this may run, 0 = no limit   5 mode   6 permits
--       7 fencing tokens to reserve, 0 = none   8 smallest token   9 PUBLISH or SPUBLISH
--       10 how long to keep a place in the queue in ms, absent or '' = do not queue
--       11 inbox channel, '' = this waiter polls
--       12 channel (fair lock and semaphores)
--       13 1 = if granted, send a recall to the inbox when others want the lock
--       14 1 = first attempt of this owner, and it needs no exact position in the queue
--       15 absent, or the inbox (or '') that an earlier attempt of this owner may have queued with
-- Reply server time in us: granted. It is also the first token if the attempt wanted any; then it
--       is early by at most as many us as the attempt wanted tokens. Otherwise
--       {status, value, server time in us, ...}
--       1 granted, value = first token or 0 (also if the owner holds the lock: a repeated attempt)
--       0 not available, value = the remaining lease that blocks it in ms, -1 = no expiry
--       2 too late, value = 0: nothing was done
--       3 queued, value as for 0; how many are ahead; the last token given; 1 if another library's
--         client holds the lock, or is ahead (fair lock). With ARGV[14]: just 1 if any are ahead,
--         then value = -1, and no token
--       error WRONGKIND: the name is in use as another kind, and nothing was done
--       error TOOFEW <permits in all, -1 = no number>: the attempt wants more permits than exist
--
-- Everything that can fail does so before the lock is written, so an error leaves no lock behind.
-- The reply is a plain number if possible: before a server sends a table, it looks up a dozen field
-- names in it.
local function granted(token)
  return (tokens == 0 or token == now) and now or {1, token, now}
end

if code == 1 then
  extend_hold(owner, lease, mode, permits)
  return granted(tokens > 0 and reserved(tokens, floor) or 0)
end
local nobody = tail and tail[1] == nil
tail = nil -- The last waiter may get the lock now.
local queues = ARGV[10] and ARGV[10] ~= ''

-- The head of the queue. First puts this attempt's waiter back into its place if it was set aside.
local function look_at_line()
  local head, place, more = first(0)
  if queues and (head or more) and head ~= owner and rejoin(owner) then
    return first(0)
  end
  return head, place, more
end

if code == 2 or code == 5 then
  if KEYS[3] and look_at_line() then
    hand_off(owner, ARGV[11])
  end
  return wait(remaining, foreign)
end
local behind = false
local head, place, more, turn, granted_to, kept, mine
if KEYS[3] and code == 0 and not nobody then
  head, place, more = look_at_line()
end
if head then
  local theirs = queue_of_other_kind(place)
  if theirs then
    return kind_conflict(nil, 0, theirs)
  end
  local left = window()
  if left then
    return wait(left)
  end
  turn, granted_to, kept, mine = hand_off(owner, ARGV[11])
  if turn == 'busy' or granted_to > 0 or kept > 0 then
    code, remaining, foreign = room_for(owner, mode, permits, kept)
    if turn == 'busy' or code == 2 then
      return wait(remaining or -1, foreign)
    end
  end
  behind = turn == 'self' and not exclusive
end
-- Even if the search met too many dead waiters to find this attempt's place, it leaves the queue.
if turn == 'self' or (head or more) and queues then
  leave(owner, mine or place_of(owner))
end

-- Writes the token and the recall note first: if a later command fails, a token is skipped and a
-- note has no reader, which is harmless.
local token = tokens > 0 and reserve(tokens, floor) or 0
if ARGV[13] == '1' then
  note_recall(owner, lease, ARGV[11])
end
take(owner, lease, mode, permits)
if behind then
  -- Waiters further back may fit too, and were not woken.
  hand_off(nil)
end
return granted(token)

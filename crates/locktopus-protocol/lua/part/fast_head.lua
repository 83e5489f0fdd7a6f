-- Fast path of the hand-off, before what only other cases need is defined: the head of the queue is alive and listens on
-- this server, and this release is not for clients that cannot queue (see release). The head is taken out at once, which is
-- one command instead of two; `fast_publish` puts it back if it is not granted the lock here.
-- Needs `released`, `read_clock`, `channel`. Defines `head`, `ticket`, `head_lease`, `head_inbox`, `wanted` (how many tokens);
-- `wanted` is nil if the fast path does not apply.
local head, ticket, head_lease, head_inbox, wanted
if released and KEYS[3] and publish ~= '' then
  read_clock()
  if now % 16 ~= 0 then
    local popped = redis.call('ZPOPMIN', KEYS[3])
    head, ticket = popped[1], popped[2]
    if not head and redis.call('EXISTS', KEYS[4]) == 0 then
      local receivers = redis.pcall(publish, channel, '0')
      return type(receivers) == 'number' and receivers or -1
    end
  end
  local record = head and redis.call('HGET', KEYS[4], head)
  if record then
    local until_ms, lease, tokens, mode, inbox = string.match(record, '^(%d+) (%d+) (%d+) %d+ (%a) (.*)$')
    if until_ms and until_ms * 1000 > now and mode == ARGV[2] then
      -- Counted before anything is granted or published: see `listens` in hand_off, which also handles those who do not listen.
      local counts = publish ~= 'publish'
        and redis.pcall('PUBSUB', publish == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', inbox)
      if not counts or (counts[2] or 0) ~= 0 then
        head_lease, head_inbox, wanted = lease, inbox, math.max(1, tonumber(tokens))
      end
    end
  end
end

-- Fast path of the hand-off, before the parts that only other cases need. It applies if the head of
-- the queue is alive and listens on this server, and this release is not for clients that cannot
-- queue (see `release`). It pops the head at once, which is one command instead of two;
-- `fast_publish` puts it back if it gets no grant here. The members are those of `queue`, whose
-- ASIDE is written out here. Needs `released`, `read_clock`, `channel`, `keep`, which it raises.
-- Defines `member`, `ticket`, `head`, `head_place`, `head_lease`, `head_inbox`, `wanted` (how many
-- tokens); `wanted` is nil if the fast path does not apply.
local member, ticket, head, head_place, head_lease, head_inbox, wanted
if released and KEYS[3] and publish ~= '' then
  read_clock()
  local popped = redis.call('ZPOPMIN', KEYS[3])
  member, ticket = popped[1], popped[2]
  if not member and redis.call('EXISTS', KEYS[4]) == 0 then
    local receivers = redis.pcall(publish, channel, '0')
    return type(receivers) == 'number' and receivers or -1
  end
  if member then
    local place, lease, tokens, mode, length, rest = string.match(member, '^(%d+) (%d+) (%d+) %d+ (%a) (%d+) (.*)$')
    head_place = place
    if mode == ARGV[2] and ticket + 0 < 4e15 then
      head, head_inbox = string.sub(rest, 1, length), string.sub(rest, length + 2)
      local age = now - ticket
      local alive = age < place * 1000
      if not alive or age <= -place * 125 then
        local note = redis.call('HGET', KEYS[4], head)
        if note then
          alive = note * 1000 > now
        end
      end
      -- One release in sixteen may be for others. Listeners are counted before anything is granted
      -- or published: see `count` in `next_waiter`, which also handles heads that do not listen.
      local turn, counts = now % 16 == 0, nil
      if alive and publish ~= 'publish' then
        local question = publish == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
        if turn then
          counts = redis.pcall('PUBSUB', question, head_inbox, channel, ARGV[7])
          turn = (counts[4] or 1) > (counts[6] or 0)
        else
          counts = redis.pcall('PUBSUB', question, head_inbox)
        end
      end
      if alive and head_inbox ~= '' and not turn and (not counts or (counts[2] or 0) ~= 0) then
        head_lease, wanted = lease, math.max(1, tonumber(tokens))
        -- Like `keep_for` in `token`.
        if keep ~= '0' and 2 * lease > keep + 0 then
          keep = 2 * lease
        end
      end
    end
  end
end

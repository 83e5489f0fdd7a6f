-- The usual case of handing on, before what only other cases need is defined: the first of the queue is alive and listens to
-- this server, and it is not the turn of those who cannot queue (see release).
-- Needs `released`, `read_clock`. Defines `heir`, `heir_lease`, `heir_inbox`, `wanted`; `wanted` is nil where the case is not
-- usual.
local heir, heir_lease, heir_inbox, wanted
if released and KEYS[3] and publish ~= '' then
  read_clock()
  heir = now % 16 ~= 0 and redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  local record = heir and redis.call('HGET', KEYS[4], heir)
  if record then
    local until_ms, lease, tokens, mode, inbox = string.match(record, '^(%d+) (%d+) (%d+) %d+ (%a) (.*)$')
    if until_ms and until_ms * 1000 > now and mode == ARGV[2] then
      -- Counted before anything is given or said: see the long way, which also knows what to do with those who do not listen.
      local counts = publish ~= 'publish'
        and redis.pcall('PUBSUB', publish == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', inbox)
      if not counts or (counts[2] or 0) ~= 0 then
        heir_lease, heir_inbox, wanted = lease, inbox, math.max(1, tonumber(tokens))
      end
    end
  end
end

#!lua flags=allow-oom
-- Reads a lock kept as Redisson keeps its RLock.
--
-- KEYS  1 the lock (hash)   2 its last fencing token (string)
-- Reply {owner or '', holds, remaining lease in ms (-1 no expiry, -2 free), last token or ''}
local fields = redis.call('HGETALL', KEYS[1])
return {
  fields[1] or '',
  tonumber(fields[2] or 0) or 0,
  redis.call('PTTL', KEYS[1]),
  redis.call('GET', KEYS[2]) or '',
}

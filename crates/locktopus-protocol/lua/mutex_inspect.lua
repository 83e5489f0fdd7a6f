#!lua flags=allow-oom
-- Reads a lock kept as one plain string.
--
-- KEYS  1 the lock (string)   2 its last fencing token (string); absent for a single-key mutex
-- Reply {owner or '', holds, remaining lease in ms (-1 no expiry, -2 free), last token or ''}
local holder = redis.call('GET', KEYS[1])
local token = KEYS[2] and redis.call('GET', KEYS[2])
return {holder or '', holder and 1 or 0, redis.call('PTTL', KEYS[1]), token or ''}

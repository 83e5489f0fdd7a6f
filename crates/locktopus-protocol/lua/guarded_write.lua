-- Writes or deletes a key for the holder of a lock, unless a later holder has written it.
--
-- KEYS  1 the key to write   2 its fence (hash: lock, token, holder)
-- ARGV  1 kind:name of the lock   2 fencing token   3 id of the holder, '' = unknown
--       4 how long to keep the fence after this in ms, 0 = forever
--       5 SET or DEL   6 value   7 how long the value lives in ms, 0 = forever
-- Reply {status, newest token, kind:name of the lock in the fence}
--        1 written    0 a later holder has written    -1 another holder with this token has written
--       -2 another lock protects the key. Unless the status is 1, nothing was done.
--
-- The fence is written first: if a later command fails, older holders are already shut out, and
-- this one may retry.
local token = tonumber(ARGV[2])
if not token or not (token >= 1 and token < 9007199254740992) then -- also refuses nan
  return redis.error_reply('BADTOKEN nothing was written: the token is not a number from 1 to 2^53 - 1')
end
local fence = redis.pcall('HMGET', KEYS[2], 'lock', 'token', 'holder')
local foreign = fence.err and string.find(fence.err, '^WRONGTYPE')
if fence.err and not foreign then
  return fence
end
local lock, newest, holder = fence[1], tonumber(fence[2] or 0), fence[3]
if lock or fence[2] or foreign then
  if not lock or not newest or not (newest >= 1 and newest < 9007199254740992) then
    return redis.error_reply('BADTOKEN nothing was written: the fence of this key is not one, or somebody changed it')
  end
  if lock ~= ARGV[1] then
    return {-2, newest, lock}
  end
  if token < newest then
    return {0, newest, lock}
  end
end
local known = lock and token == newest and holder and holder ~= ''
if known and ARGV[3] ~= '' and holder ~= ARGV[3] then
  return {-1, newest, lock}
end

local text = string.format('%.0f', token)
redis.call('HSET', KEYS[2], 'lock', ARGV[1], 'token', text, 'holder', known and holder or ARGV[3])
if ARGV[4] == '0' then
  redis.call('PERSIST', KEYS[2])
elseif not lock then
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
else
  -- Never sooner than an earlier write wanted.
  redis.call('PEXPIRE', KEYS[2], ARGV[4], 'GT')
end
if ARGV[5] == 'DEL' then
  redis.call('DEL', KEYS[1])
elseif ARGV[7] == '0' then
  redis.call('SET', KEYS[1], ARGV[6])
else
  redis.call('SET', KEYS[1], ARGV[6], 'PX', ARGV[7])
end
return {1, token, ARGV[1]}

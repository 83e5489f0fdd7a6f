-- The usual case of taking a lock, before anything else is even defined: nobody has it and nobody waits for it.
if not late and ARGV[7] == '1' and ARGV[8] == '0' and redis.call('EXISTS', KEYS[1], KEYS[3]) == 0 then
  -- The seconds and six digits of microseconds: what the number looks like, without formatting it.
  local text = time[1] .. string.sub(time[2] + 1000000, 2)
  local last
  if keep == '0' then
    last = redis.call('SET', KEYS[2], text, 'GET')
  else
    last = redis.call('SET', KEYS[2], text, 'PX', keep, 'GET')
  end
  if (tonumber(last or 0) or now) < now then
    redis.call('HSET', KEYS[1], ARGV[1], 1)
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return {1, now, now}
  end
  -- The clock is behind the last token, or that is no number: put it back and go the long way.
  redis.call('SET', KEYS[2], last, 'KEEPTTL')
end

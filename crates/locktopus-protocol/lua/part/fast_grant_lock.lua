-- Fast path: grants a lock to the head of the queue.
if fast_token then
  redis.call('HSET', KEYS[1], head, '1')
  redis.call('PEXPIRE', KEYS[1], head_lease)
end

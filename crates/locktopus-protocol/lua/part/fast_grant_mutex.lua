-- Fast path: grants a mutex to the head of the queue.
if fast_token then
  redis.call('SET', KEYS[1], head, 'PX', head_lease)
end

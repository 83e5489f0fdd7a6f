"""The Python half of with_redis_py: python3 counter.py redis://127.0.0.1:6379"""

import sys
import time

import redis

store = redis.Redis.from_url(sys.argv[1])
store.ping()
print("connected", flush=True)
for _ in range(50):
    # A blocked redis-py polls every `sleep` seconds. It does not renew its lease of `timeout`
    # seconds.
    with store.lock("orders", timeout=30, sleep=0.002):
        seen = int(store.get("orders:counter") or 0)
        time.sleep(0.001)  # the work
        store.set("orders:counter", seen + 1)
        store.rpush("orders:turns", "python")
    time.sleep(0.001)  # other work

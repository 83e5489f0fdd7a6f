"""redis-py does what it is told, line by line: see neighbour_libraries/worker.rs for the conversation."""

import os
import queue
import sys
import threading

import redis
from redis.exceptions import LockError

lines = queue.Queue()


def read():
    for line in sys.stdin:
        lines.put(line)
    # Whoever wrote them is gone: the process ends, whatever it waits for.
    os._exit(0)


threading.Thread(target=read, daemon=True).start()
store = redis.Redis.from_url(lines.get().strip())
held = None


def take(name, lease, **how):
    global held
    # A lease of 0 is none: redis-py's own default.
    held = store.lock(name, timeout=int(lease) / 1000 or None, sleep=0.005)
    if not held.acquire(**how):
        raise LockError("busy")
    return held.local.token.decode()


def owned():
    if not held.owned():
        raise LockError("not owned")


COMMANDS = {
    "acquire": take,
    "try": lambda name, lease: take(name, lease, blocking=False),
    "try-for": lambda name, lease, wait: take(name, lease, blocking_timeout=int(wait) / 1000),
    "extend": lambda lease: held.extend(int(lease) / 1000, replace_ttl=True),
    "reacquire": lambda: held.reacquire(),
    "owned": owned,
    "release": lambda: held.release(),
}

print("ok", redis.__version__, flush=True)
while True:
    line = lines.get()
    verb, *words = line.split()
    try:
        value = COMMANDS[verb](*words)
        print(f"ok {value}" if isinstance(value, str) else "ok", flush=True)
    except LockError as refused:
        print("no", type(refused).__name__, refused, flush=True)

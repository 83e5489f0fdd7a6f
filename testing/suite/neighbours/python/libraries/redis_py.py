"""redis-py itself, of the system."""

from inspect import signature

import redis
from redis.exceptions import LockError
from redis.lock import Lock


class Library:
    version = redis.__version__
    refusals = LockError

    def __init__(self, store):
        self.store = store
        self.held = None
        self.commands = {
            "acquire": self.take,
            "try": lambda name, lease: self.take(name, lease, blocking=False),
            "try-for": lambda name, lease, wait: self.take(name, lease, blocking_timeout=int(wait) / 1000),
            "extend": lambda lease: self.held.extend(int(lease) / 1000, replace_ttl=True),
            "reacquire": lambda: self.held.reacquire(),
            "owned": self.owned,
            "release": lambda: self.held.release(),
            "defaults": self.defaults,
        }

    def take(self, name, lease, **how):
        # A lease of 0 means none: redis-py's own default.
        self.held = self.store.lock(name, timeout=int(lease) / 1000 or None, sleep=0.005)
        if not self.held.acquire(**how):
            raise LockError("busy")
        return self.held.local.token.decode()

    def defaults(self):
        settings = signature(Lock.__init__).parameters
        return " ".join(f"{name}={settings[name].default}" for name in ["timeout", "sleep", "blocking", "blocking_timeout"])

    def owned(self):
        if not self.held.owned():
            raise LockError("not owned")

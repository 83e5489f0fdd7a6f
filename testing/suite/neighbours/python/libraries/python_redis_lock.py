"""python-redis-lock itself."""

from importlib.metadata import version

import redis_lock

from . import Refused, must, whole_seconds


class Library:
    version = version("python-redis-lock")
    refusals = (Refused, redis_lock.NotAcquired, redis_lock.NotExpirable)

    def __init__(self, store):
        self.store = store
        self.held = None
        self.commands = {
            "acquire": self.acquire,
            "acquire-blocking": self.acquire_blocking,
            "try": self.attempt,
            "extend": lambda lease: self.held.extend(whole_seconds(lease)),
            "release": lambda: self.held.release(),
        }

    def new(self, name, lease):
        self.held = redis_lock.Lock(self.store, name, expire=whole_seconds(lease))

    def acquire(self, name, lease):
        """Polls every second: the end of a lease wakes no waiter."""
        self.new(name, lease)
        while not self.held.acquire(timeout=1):
            pass
        return self.held.id

    def acquire_blocking(self, name, lease):
        """By default it tries again when woken, or after the length of its own lease."""
        self.new(name, lease)
        # So that the test can see that it waits.
        self.store.client_setname(name)
        must(self.held.acquire(), "busy")
        return self.held.id

    def attempt(self, name, lease):
        self.new(name, lease)
        must(self.held.acquire(blocking=False), "busy")
        return self.held.id

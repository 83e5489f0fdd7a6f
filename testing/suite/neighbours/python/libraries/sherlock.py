"""sherlock itself."""

from importlib.metadata import version

from sherlock import LockException, LockTimeoutException, RedisLock

from . import Refused, must, whole_seconds

NAMESPACE = "app"


class Library:
    version = version("sherlock")
    refusals = (Refused, LockException, LockTimeoutException)

    def __init__(self, store):
        self.store = store
        self.held = None
        self.commands = {
            "acquire": lambda name, lease: self.take(name, whole_seconds(lease), True),
            "try": lambda name, lease: self.take(name, whole_seconds(lease), False),
            "try-without-expiry": lambda name: self.take(name, None, False),
            "extend": self.extend,
            "release": lambda: self.held.release(),
        }

    def take(self, name, expire, wait):
        how = {"expire": expire, "timeout": 600, "retry_interval": 0.005}
        self.held = RedisLock(name, namespace=NAMESPACE, client=self.store, **how)
        must(self.held.acquire(blocking=wait), "busy")
        value = self.store.get(f"{NAMESPACE}_{name}")
        return value.decode() if value else "nothing is there"

    def extend(self, _lease):
        """By the lease of the acquisition."""
        must(self.held.renew(), "not held")

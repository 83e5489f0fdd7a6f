"""pottery's Redlock itself, on one server."""

from importlib.metadata import version

from pottery import ExtendUnlockedLock, Redlock, ReleaseUnlockedLock, TooManyExtensions

from . import Refused, must


class Library:
    version = version("pottery")
    refusals = (Refused, ExtendUnlockedLock, ReleaseUnlockedLock, TooManyExtensions)

    def __init__(self, store):
        self.store = store
        self.held = None
        self.commands = {
            "acquire": lambda name, lease: self.take(name, lease, True),
            "try": lambda name, lease: self.take(name, lease, False),
            # By the lease that the lock was taken for.
            "extend": lambda _lease: self.held.extend(),
            "release": lambda: self.held.release(),
        }

    def take(self, name, lease, wait):
        self.held = Redlock(key=name, masters={self.store}, auto_release_time=int(lease) / 1000)
        must(self.held.acquire(blocking=wait), "busy")
        return self.store.get(self.held.key).decode()

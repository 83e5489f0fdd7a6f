"""pottery's Redlock itself, on one server or several."""

from importlib.metadata import version

from pottery import ExtendUnlockedLock, Redlock, ReleaseUnlockedLock, TooManyExtensions

from . import Refused, must


class Library:
    version = version("pottery")
    refusals = (Refused, ExtendUnlockedLock, ReleaseUnlockedLock, TooManyExtensions)

    def __init__(self, *stores):
        self.stores = stores
        self.held = None
        self.commands = {
            "acquire": lambda name, lease: self.take(name, lease, True),
            "try": lambda name, lease: self.take(name, lease, False),
            # By the lease of the acquisition.
            "extend": lambda _lease: self.held.extend(),
            "release": lambda: self.held.release(),
        }

    def take(self, name, lease, wait):
        self.held = Redlock(key=name, masters=set(self.stores), auto_release_time=int(lease) / 1000)
        must(self.held.acquire(blocking=wait), "busy")
        # A minority of servers may not have it yet.
        values = [store.get(self.held.key) for store in self.stores]
        return next(value for value in values if value).decode()

"""The lock libraries that worker.py knows: each has a class with its commands and what it refuses with."""


class Refused(Exception):
    """The answer is no, where a library says so by a value."""


def must(done, why):
    if not done:
        raise Refused(why)


def whole_seconds(milliseconds):
    """A lease of a library that counts in seconds."""
    seconds, rest = divmod(int(milliseconds), 1000)
    if rest:
        raise ValueError(f"{milliseconds} ms are not whole seconds")
    return seconds

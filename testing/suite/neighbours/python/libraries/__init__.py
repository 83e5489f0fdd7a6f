"""The lock libraries of worker.py: each has a class with its commands and its refusals."""


class Refused(Exception):
    """A refusal, for libraries that return one as a value."""


def must(done, why):
    if not done:
        raise Refused(why)


def whole_seconds(milliseconds):
    """A lease for a library that counts in seconds."""
    seconds, rest = divmod(int(milliseconds), 1000)
    if rest:
        raise ValueError(f"{milliseconds} ms are not whole seconds")
    return seconds

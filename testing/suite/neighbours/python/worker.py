"""Executes commands for a lock library, line by line, as neighbour_libraries/worker.rs describes.

The first argument names the library; a second one is the folder where pip installed requirements.txt.
"""

import importlib
import os
import queue
import sys
import threading

sys.path[1:1] = sys.argv[2:3]

import redis

lines = queue.Queue()


def read():
    for line in sys.stdin:
        lines.put(line)
    # The test is gone, so the process exits even while it waits.
    os._exit(0)


def answer(library, words):
    verb, *rest = words
    try:
        value = library.commands[verb](*rest)
    except library.refusals as refused:
        return f"no {type(refused).__name__} {refused}".replace("\n", " ")
    return f"ok {value}" if isinstance(value, str) else "ok"


threading.Thread(target=read, daemon=True).start()
# No timeout, because a blocking wait on a list may be long.
stores = [redis.Redis.from_url(url, socket_timeout=None) for url in lines.get().split()]
library = importlib.import_module(f"libraries.{sys.argv[1]}").Library(*stores)
print("ok", library.version, flush=True)
while True:
    print(answer(library, lines.get().split()), flush=True)

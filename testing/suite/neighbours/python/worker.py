"""A lock library does what it is told, line by line: see neighbour_libraries/worker.rs for the conversation.

The first argument names the library; a second one is the folder in which pip put what requirements.txt says.
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
    # Whoever wrote them is gone: the process ends, whatever it waits for.
    os._exit(0)


def answer(library, words):
    verb, *rest = words
    try:
        value = library.commands[verb](*rest)
    except library.refusals as refused:
        return f"no {type(refused).__name__} {refused}".replace("\n", " ")
    return f"ok {value}" if isinstance(value, str) else "ok"


threading.Thread(target=read, daemon=True).start()
# A wait for a list may be longer than answers usually take.
stores = [redis.Redis.from_url(url, socket_timeout=None) for url in lines.get().split()]
library = importlib.import_module(f"libraries.{sys.argv[1]}").Library(*stores)
print("ok", library.version, flush=True)
while True:
    print(answer(library, lines.get().split()), flush=True)

"""A stdio server without a will of its own: what it reads goes to the test that holds its strings, which says what it
writes, and when and how it ends. Runs on the standard library alone; `tests/stdio/puppets.py` is the hand.

To the test, a JSON line each: {"pid": ...} first, {"line": "..."} for each line read, {"eof": true}.
From the test: {"out": text} to standard output, {"err": text}, {"exit": code}, {"kill": signal}.
"""

import json
import os
import signal
import socket
import sys
import threading

hand = socket.create_connection(("127.0.0.1", int(os.environ["PUPPET_PORT"])))


def tell(**what: object) -> None:
    hand.sendall(json.dumps(what).encode() + b"\n")


def read() -> None:
    for line in sys.stdin.buffer:
        tell(line=line.decode())
    tell(eof=True)


if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
tell(pid=os.getpid())
if "deaf" not in sys.argv:
    threading.Thread(target=read, daemon=True).start()
for order in hand.makefile("rb"):
    match json.loads(order):
        case {"out": text}:
            sys.stdout.buffer.write(text.encode())
            sys.stdout.buffer.flush()
        case {"err": text}:
            sys.stderr.buffer.write(text.encode())
            sys.stderr.buffer.flush()
        case {"exit": code}:
            os._exit(code)
        case {"kill": number}:
            os.kill(os.getpid(), number)

"""Ends a child process of the demo with its parent, however the parent ends.

The parent holds the other end of the child's standard input and never writes to it: the end of that input means that
the parent is gone, even where it was killed and could not say so.
"""

import os
import signal
import sys
import threading
import time
from typing import Final

GRACE_S: Final = 10
"""Longer than any shutdown of the demo's children takes; whoever still runs then hangs."""


def hold() -> None:
    """Starts watching; from then on this process ends soon after its standard input does."""
    threading.Thread(target=_watch, daemon=True, name="leash").start()


def _watch() -> None:
    while os.read(sys.stdin.fileno(), 1):  # unbuffered: a buffered reader would be locked when this process exits
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(1)

"""A port that stays free until a test takes it, and whenever the test lets go of it for a while.

The system hands out its own choices (a listener's port 0, a connection's near end) from a range that begins at 32768 on
Linux and at 49152 elsewhere; a port below is nobody's, whatever runs beside.
"""

import random
import socket

FIRST, END = 10240, 32768
"""Above what well-known servers listen on; below what the system chooses from."""


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, and that no connection gets by chance."""
    while True:
        port = random.randrange(FIRST, END)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the ends of old connections don't matter
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port

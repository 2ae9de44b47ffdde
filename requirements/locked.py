"""Runs one command while holding a file lock, so that two `make` at the same time build an environment once.

Usage: python locked.py LOCK_FILE COMMAND [ARGUMENT ...]

Waits for the lock without bound, says so once, and answers with the command's own exit code. Standard library only:
it runs before any environment exists. Knows nothing of what the command does.
"""

import fcntl
import subprocess
import sys
from pathlib import Path


def main() -> int:
    lock_path, command = Path(sys.argv[1]), sys.argv[2:]
    lock_path.parent.mkdir(parents=True, exist_ok=True)
    with lock_path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another make that holds {lock_path}", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

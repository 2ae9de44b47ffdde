"""The gateway as a child process of the demo: `mcp-front-door serve`, which ends with its parent (`leash.py`).

python -m gateway.demo.front -c FILE
"""

import sys

from gateway import cli
from gateway.demo import leash

if __name__ == "__main__":
    leash.hold()
    sys.exit(cli.main(["serve", *sys.argv[1:]]))

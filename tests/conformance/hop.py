"""What the suite runs as the client of a client scenario: an official client, and between it and the server a gateway.

Usage: hop.py ERA LOG [--gateway COMMAND] URL. The suite adds the URL of its test server. The gateway is started before
that server and the client, held to ERA, is given the gateway's URL; without --gateway it is given the server's own.
Exits as the client does. All of it stays in the suite's process group, which the caller ends as a whole.
"""

import argparse
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import suite
from servers import StartError, gateway_before

CLIENT = Path(__file__).with_name("client.mjs")
# sse-retry, the longest, takes about 2 s; well below the suite's own limit, so that the client's words are kept.
CLIENT_LIMIT_S = 20.0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("era", choices=("modern", "legacy"))
    parser.add_argument("log", type=Path)
    parser.add_argument("--gateway")
    parser.add_argument("url")
    options = parser.parse_args()
    with ExitStack() as stack:
        url = options.url
        if options.gateway:
            try:
                url = stack.enter_context(gateway_before(url, options.gateway, options.log, own_group=False))
            except StartError as error:
                print(error, file=sys.stderr)
                return 1
        try:
            return subprocess.run(
                [suite.NODE, CLIENT, options.era, url], check=False, timeout=CLIENT_LIMIT_S
            ).returncode
        except subprocess.TimeoutExpired:
            print(f"the client was cut off after {CLIENT_LIMIT_S:.0f} s", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())

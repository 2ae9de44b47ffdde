"""The exit codes of the command line, as `docs/commands.md` lists them."""

from typing import Final

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
CANNOT_LISTEN: Final = 3
UPSTREAM_FAILED: Final = 4
INTERRUPTED: Final = 130

MEANINGS: Final = {
    OK: "done; for serve, stdio and demo: ended by SIGTERM or Ctrl-C; for stdio also: its host has gone",
    FAILED: "an error of the program itself",
    USAGE: "the command line, the configuration or the body for strip is wrong, or the demo's extra is not installed",
    CANNOT_LISTEN: "the address to listen on is taken or not this machine's",
    UPSTREAM_FAILED: "the upstream could not be reached, refused, or is no MCP server",
    INTERRUPTED: "interrupted by Ctrl-C before it was done",
}

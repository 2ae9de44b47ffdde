"""A sample server on the official SDK: the ferries and tides of a made-up harbour. Served with sessions only."""

from typing import Final

from mcp.server.mcpserver import Context, MCPServer

_FERRIES: Final = {"Ostend": ["06:40", "13:10", "19:25"], "Calais": ["07:15", "11:45", "18:00"], "Texel": ["09:30"]}
FIRST_TIDE_MIN: Final = 5 * 60 + 17
TIDE_DELAY_MIN: Final = 50
"""The moon is that much later every day."""

server = MCPServer(
    "harbour",
    title="Harbour office",
    version="1.0.0",
    instructions="Times are local. Ask for the tides before you plan a crossing.",
    log_level="WARNING",
)


@server.tool()
def ferries(port: str) -> list[str]:
    """Departures of today's ferries to a port."""
    if port not in _FERRIES:
        raise ValueError(f"no ferry goes to {port}; try {', '.join(_FERRIES)}")
    return _FERRIES[port]


@server.tool()
async def tides(days: int, ctx: Context) -> str:
    """High water of the next days, worked out day by day."""
    for day in range(days):
        await ctx.report_progress(day + 1, days, f"day {day + 1}")
    minutes = [(FIRST_TIDE_MIN + day * TIDE_DELAY_MIN) % (24 * 60) for day in range(days)]
    return ", ".join(f"{minute // 60:02}:{minute % 60:02}" for minute in minutes)


@server.resource("harbour://board", mime_type="text/plain")
def board() -> str:
    """The departure board."""
    return "\n".join(f"{port:8}{'  '.join(times)}" for port, times in _FERRIES.items())


@server.prompt()
def crossing(port: str) -> str:
    """Plan a crossing."""
    return f"Plan a crossing to {port}: the next ferry, and whether the tide allows it."

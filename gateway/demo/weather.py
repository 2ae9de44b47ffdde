"""A sample server on the official SDK: the weather of made-up days. Served for 2026-07-28 only."""

from typing import Final

from mcp.server.mcpserver import Context, MCPServer

_SKIES: Final = {"Lisbon": "sunny, 24 °C", "Bergen": "rain, 9 °C", "Nairobi": "clouds, 21 °C"}

server = MCPServer(
    "weather",
    title="Weather office",
    version="1.0.0",
    instructions="Forecasts are invented; take an umbrella anyway.",
    log_level="WARNING",
)


@server.tool()
def sky(city: str) -> str:
    """The weather in a city right now."""
    if city not in _SKIES:
        raise ValueError(f"no station in {city}; try {', '.join(_SKIES)}")
    return f"{city}: {_SKIES[city]}"


@server.tool()
async def tour(ctx: Context) -> list[str]:
    """The weather everywhere, station by station."""
    reports = []
    for number, city in enumerate(_SKIES, start=1):
        await ctx.report_progress(number, len(_SKIES), city)
        reports.append(f"{city}: {_SKIES[city]}")
    return reports


@server.resource("weather://stations", mime_type="text/plain")
def stations() -> str:
    """Where the stations are."""
    return "\n".join(_SKIES)


@server.prompt()
def packing(city: str) -> str:
    """What to pack."""
    return f"Look at the sky over {city} and say what to pack for three days."

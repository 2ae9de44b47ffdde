"""What an upstream may see of the gateway: its own era and nothing of the other, but for one probe.

Found with `server/discover` (2026-07-28, basic/versioning), so a legacy upstream may see that once. An upstream that
says it is modern may still speak sessions too, so it may see one `initialize` when the first legacy client comes.
"""

from tests.matrix.stages import VERSION
from tests.matrix.tap import Exchange

PREFIX = "io.modelcontextprotocol/"
ONLY_MODERN_HEADERS = ("mcp-method", "mcp-name")
ONLY_MODERN_META = (PREFIX + "protocolVersion", PREFIX + "logLevel")
# clientInfo and clientCapabilities may stay in a legacy request's _meta: old servers ignore unknown keys
REMOVED = {"initialize", "notifications/initialized", "ping", "logging/setLevel"}


def is_modern(exchange: Exchange) -> bool:
    return (
        exchange.headers.get("mcp-protocol-version") == VERSION["modern"]
        or any(header in exchange.headers for header in ONLY_MODERN_HEADERS)
        or any(header.startswith("mcp-param-") for header in exchange.headers)
        or any(key in exchange.meta for key in ONLY_MODERN_META)
    )


def offences_of_legacy(exchanges: list[Exchange], *, sessions: bool) -> list[str]:
    """What a legacy upstream should not have seen. `sessions`: it issues ids and wants them back."""
    modern = [exchange for exchange in exchanges if is_modern(exchange)]
    found = [f"more than a probe: {exchange}" for exchange in modern if exchange.rpc_method != "server/discover"]
    if len(modern) > 1:
        found.append(f"{len(modern)} probes")
    issued = {exchange.response_headers.get("mcp-session-id") for exchange in exchanges} - {None}
    for exchange in exchanges:
        if exchange in modern or exchange.rpc_method == "initialize":
            continue
        if exchange.headers.get("mcp-protocol-version") != VERSION["legacy"]:
            found.append(f"another version than the negotiated one: {exchange}")
        session = exchange.headers.get("mcp-session-id")
        if sessions and session not in issued:
            found.append(f"a session that this upstream did not issue: {exchange}")
        if not sessions and session is not None:
            found.append(f"a session id, which this upstream never issued: {exchange}")
    return found


def offences_of_modern(exchanges: list[Exchange]) -> list[str]:
    """What a modern-only upstream should not have seen."""
    initializes = [exchange for exchange in exchanges if exchange.rpc_method == "initialize"]
    found = [f"{len(initializes)} times initialize"] if len(initializes) > 1 else []
    for exchange in exchanges:
        if "mcp-session-id" in exchange.headers:
            found.append(f"a session id: {exchange}")
        if exchange in initializes:
            continue
        if exchange.method != "POST":
            found.append(f"a method of sessions: {exchange}")
        if exchange.headers.get("mcp-protocol-version") != VERSION["modern"]:
            found.append(f"another version's header: {exchange}")
        elif exchange.meta.get(PREFIX + "protocolVersion") != VERSION["modern"]:
            found.append(f"another version in _meta: {exchange}")
        if exchange.rpc_method in REMOVED:
            found.append(f"a method that 2026-07-28 removed: {exchange}")
        if exchange.headers.get("mcp-method") != exchange.rpc_method:
            found.append(f"no Mcp-Method or a wrong one: {exchange}")
    return found


def offences(upstream: str, exchanges: list[Exchange]) -> list[str]:
    """What `upstream` should not have seen among `exchanges`, one line each; empty where all is well."""
    if upstream == "modern-only":
        return offences_of_modern(exchanges)
    return offences_of_legacy(exchanges, sessions=upstream != "sessionless")

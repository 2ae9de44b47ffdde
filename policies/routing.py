"""Which route a request comes in by, and which of its upstreams takes it: by value, nothing is fetched or remembered.

Source: the operator's settings; the headers that rules match are those of 2026-07-28
basic/transports/streamable-http, decoded. Whether such a header tells the truth is checked elsewhere, before anything
is allowed on its word; what an upstream is, and whether it is well, is not known here.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from policies.settings import Timeouts, Upstream
from policies.settings_edge import ToolTimeouts
from policies.settings_routes import Match, Route, Rule

_WILDCARD: Final = "*."


def find_route(routes: Iterable[Route], host: str, path: str) -> Route | None:
    """The route of a request by its `Host` header and its path without the query, which may be that of HTTP+SSE, or lie
    below that of a route to an LLM API.

    A path with a final slash and without are the same endpoint, unless each has a route of its own. Where several
    routes have the path, the one that names the host wins, then the longest `*.` pattern, then one without a host; of
    those with the same host, the one with the longest path.
    """
    name = host_name(host)
    bare = _bare(path)
    best: tuple[tuple[int, int, bool], Route] | None = None
    for route in routes:
        paths = [one for one in (route.path, route.http_sse) if one is not None and _bare(one) == bare]
        if not paths and route.provider is not None and path.startswith(_folder(route.path)):
            paths = [route.path]
        closeness = _closeness(route.host, name) if paths else None
        if closeness is None:
            continue
        rank = (closeness, len(_bare(paths[0])), path in paths)
        if best is None or rank > best[0]:
            best = (rank, route)
    return best[1] if best is not None else None


def below(route: Route, path: str) -> str:
    """What of `path`, at which this route was found, comes after the route's own: empty, or a path with a slash."""
    folder = _folder(route.path)
    return path[len(folder) - 1 :] if path.startswith(folder) and path != folder else ""


def is_http_sse(route: Route, path: str) -> bool:
    """Whether `path`, at which this route was found, is that of HTTP+SSE."""
    return route.http_sse is not None and _bare(route.http_sse) == _bare(path) and route.path != path


def host_name(authority: str) -> str:
    """The host of a `Host` header in lower case, without port and final dot; IPv6 keeps its brackets."""
    host = authority.strip().lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].removesuffix(".")


def synthesised_info(route: Route) -> dict[str, str]:
    """The serverInfo of a route whose upstream gives none: its path, the one name that it has in public."""
    return {"name": route.path.strip("/") or "mcp", "version": "unknown"}


def _bare(path: str) -> str:
    return path.removesuffix("/") or "/"


def _folder(path: str) -> str:
    return path.removesuffix("/") + "/"


def _closeness(pattern: str | None, name: str) -> int | None:
    """How exactly a route's host (lower case) fits: 0 for any host, more for more letters, None for not at all."""
    if pattern is None:
        return 0
    if pattern.startswith(_WILDCARD):
        suffix = pattern[1:]
        return len(pattern) if name.endswith(suffix) and name != suffix else None
    return 2 * len(pattern) + 1 if name == pattern else None


def choose_upstream(route: Route, method: str, name: str | None, param: Callable[[str], str | None]) -> str | None:
    """The name of the upstream for a request: of the first rule that matches, else the default.

    `name` is what `Mcp-Name` says, decoded, None without one; `param` gives the decoded value of `Mcp-Param-` plus its
    argument, or None. Values are compared case-sensitively. None only where the settings leave no default.
    """
    if route.upstream is not None:
        return route.upstream
    rule = rule_for(route, method, name, param)
    return route.rules[rule].upstream if rule is not None else route.default


def rule_for(route: Route, method: str, name: str | None, param: Callable[[str], str | None]) -> int | None:
    """The index of the first rule that takes a request, None where none does."""
    return next((at for at, rule in enumerate(route.rules) if _takes(rule, method, name, param)), None)


def _takes(rule: Rule, method: str, name: str | None, param: Callable[[str], str | None]) -> bool:
    return (
        _matches(rule.method, method)
        and _matches(rule.name, name)
        and all(_matches(match, param(header)) for header, match in rule.params.items())
    )


def _matches(match: Match | None, value: str | None) -> bool:
    """Whether a condition holds; none always does, and one about a missing value never."""
    if match is None:
        return True
    if value is None:
        return False
    if match.value is not None:
        return value == match.value
    if match.prefix is not None:
        return value.startswith(match.prefix)
    return match.glob is not None and _glob(match.glob).fullmatch(value) is not None


def timeouts_for(upstream: Upstream, method: str, name: str | None) -> Timeouts:
    """The time-outs of a call: those of the first pattern in `tools` that its name fits, else the upstream's."""
    found = own_timeouts(upstream, method, name)
    if found is None:
        return upstream.timeouts
    return upstream.timeouts.model_copy(update=found.model_dump(exclude_none=True))


def own_timeouts(upstream: Upstream, method: str, name: str | None) -> ToolTimeouts | None:
    """What is configured for the calls of this very tool, if anything is."""
    if not upstream.tools or method != "tools/call" or name is None:
        return None
    return next((theirs for pattern, theirs in upstream.tools.items() if _glob(pattern).fullmatch(name)), None)


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    # The standard translation takes linear time on any value (it never backs up over a `*`); brackets are no sets here.
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]")))

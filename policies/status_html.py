"""The status page: the members of `/status.json` (`policies/status.py`) as HTML that needs no script to be read.

Each part stands by an id of its own, so that a page that is open can be given those that have changed. The curves are
SVG in the page itself: no style attribute and no script, which the page's Content-Security-Policy would refuse.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from policies.markup import Child, Markup, element, joined
from policies.mcp import Json

_WIDTH: Final = 180
_HEIGHT: Final = 36

_SHOWN: Final = {
    "supported": "·",
    "negotiated": "✓",
    "degraded": "!",
    "unavailable": "✗",
}
"""A sign beside each word: a colour alone tells nothing to those who do not see it."""

_NUMBERS: Final = {
    "requests_in_flight": "requests under way",
    "streams": "open streams",
    "sessions_opened": "sessions opened",
    "sessions_ended": "sessions ended by their client",
    "exchanges_kept": "calls kept for sessions",
    "calls_parked": "calls that wait for their client",
    "cache_entries": "answers kept here",
    "cache_bytes": "bytes of those",
    "cache_saved_bytes": "bytes the cache has given",
}
"""What each number is called on the page."""

_KINDS: Final = {
    "refused": "refused",
    "connection": "connection to a server",
    "call": "call to a server",
}


def page(told: Json) -> str:
    """The whole page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", "mcp-front-door: status"),
        element("link", rel="icon", href="/status/icon.svg", type="image/svg+xml"),
        element("link", rel="stylesheet", href="/status/page.css"),
        element("script", type="module", src="/status/page.mjs"),
    )
    written = parts(told)
    titles = [(name, title) for name, (title, _) in _PARTS.items() if title]
    links = [element("li", element("a", title, href=f"#{name}-title")) for name, title in titles]
    body = element(
        "body",
        element("a", "To the content", href="#content", class_="skip"),
        element(
            "header",
            element("h1", "mcp-front-door"),
            element("div", written["state"], id="state"),
            element("p", element("span", id="live", role="status"), element("button", id="pause", hidden=True)),
            element("nav", element("ul", *links), aria_label="Parts of this page"),
        ),
        element("main", *(_section(name, title, written[name]) for name, title in titles), id="content", tabindex=-1),
        element(
            "footer",
            element("p", "The same as ", element("a", "JSON", href="/status.json"), ". Times are UTC."),
        ),
    )
    return "<!doctype html>\n" + element("html", head, body, lang="en") + "\n"


def parts(told: Json) -> dict[str, Markup]:
    """The parts of the page, by their ids."""
    return {name: write(told) for name, (_, write) in _PARTS.items()}


def _section(name: str, title: str, written: Markup) -> Markup:
    heading = element("h2", title, id=f"{name}-title")
    return element("section", heading, element("div", written, id=name), aria_labelledby=f"{name}-title")


def _state(told: Json) -> Markup:
    process = told["process"]
    status = told["status"]
    who = f"version {told['version'] or 'unknown'}, one process"
    if process["kind"] == "supervisor":
        who = (
            f"version {told['version'] or 'unknown'}, the supervisor of {process['workers']} workers; "
            f"{process['answered']} have said what follows, which is their sum"
        )
    store = told["store"]
    kept = "no store" if not store["shared"] else f"store {'up' if store['up'] else 'down'}"
    return element(
        "p",
        _badge(status, good=status == "ready"),
        " ",
        _badge(kept, good=store["up"]),
        f" {who}, since {process['since']}",
    )


def _upstreams(told: Json) -> Markup:
    columns = ("Upstream", "State", "Speaks", "Server", "Endpoints", "Calls, last minute", "Time, last 5 minutes")
    return _table(columns, (_upstream(upstream) for upstream in told["upstreams"]), "No upstream is configured.")


def _upstream(upstream: Json) -> Sequence[Child]:
    server, calls = upstream["server"], upstream["calls"]
    open_there = [f"{name}: {upstream[name]}" for name in ("sessions", "leases", "streams") if upstream[name]]
    failed = f", {calls['failed']} failed" if calls["failed"] else ""
    took = (f"mean {calls['mean_ms']} ms", f"slowest {calls['slowest_ms']} ms") if calls["calls"] else ()
    transport = f"by {upstream['transport']}" if upstream["transport"] != "auto" else None
    return (
        element("strong", upstream["name"]),
        _badge(upstream["state"], good=upstream["state"] == "up"),
        _lines(" and ".join(upstream["eras"]) or "not known yet", upstream["version"], transport),
        _lines(server["name"] or "says no name", server["version"]),
        _lines(*(_endpoint(endpoint) for endpoint in upstream["endpoints"]), ", ".join(open_there)),
        _lines(f"{calls['calls']}{failed}", *took),
        _curve(upstream["name"], upstream["latency"]["points"]),
    )


def _endpoint(endpoint: Json) -> Markup:
    about = f"{endpoint['requests']} under way" if endpoint["in_service"] else "fails or is left out"
    return joined(element("code", endpoint["label"]), f" {about}")


def _curve(name: str, points: Sequence[Json]) -> Markup:
    """Means as a line, which breaks where nothing was called, and slots with failures as marks."""
    top = max((point["mean_ms"] for point in points if point["mean_ms"] is not None), default=0.0)
    if not top and not any(point["failed"] for point in points):
        return element("span", "no calls", class_="quiet")
    step = _WIDTH / max(1, len(points) - 1)
    runs: list[list[tuple[float, float]]] = [[]]
    marks: list[Markup] = []
    for index, point in enumerate(points):
        at = round(index * step, 1)
        if point["failed"]:
            marks.append(element("rect", x=str(at - 1), y="0", width="2", height=_HEIGHT, class_="failed"))
        if point["mean_ms"] is None:
            runs.append([])
        else:
            runs[-1].append((at, round(_HEIGHT - 2 - point["mean_ms"] / (top or 1.0) * (_HEIGHT - 4), 1)))
    failed = sum(point["failed"] for point in points)
    said = f"Mean time of calls to {name}: at most {top} ms, {failed} failed"
    return element(
        "svg",
        element("title", said),
        *marks,
        *(_line(run) for run in runs if run),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        width=_WIDTH,
        height=_HEIGHT,
        role="img",
    )


def _line(run: Sequence[tuple[float, float]]) -> Markup:
    if len(run) == 1:
        return element("circle", cx=str(run[0][0]), cy=str(run[0][1]), r="1.5", class_="point")
    return element("polyline", points=" ".join(f"{x},{y}" for x, y in run), class_="mean")


def _hosts(told: Json) -> Markup:
    rows = [
        (element("strong", upstream["name"]), profile, *map(_layer, layers))
        for upstream in told["upstreams"]
        for profile, layers in upstream["hosts"].items()
    ]
    names: Iterable[str] = ()
    for upstream in told["upstreams"]:
        for layers in upstream["hosts"].values():
            names = [layer["layer"] for layer in layers]
    return _table(("Upstream", "Profile", *names), rows, "Nothing is known of hosts yet.")


def _layer(layer: Json) -> Child:
    state = element("span", f"{_SHOWN[layer['state']]} {layer['state']}", class_=f"layer {layer['state']}")
    return _lines(state, layer["detail"])


def _routes(told: Json) -> Markup:
    rows = []
    for route in told["routes"]:
        rules = [joined(rule["when"], " → ", element("strong", rule["upstream"])) for rule in route["rules"]]
        rest = joined("everything else → " if rules else "", element("strong", route["upstream"]))
        also = (
            f"HTTP+SSE at {route['http_sse']}" if route["http_sse"] else None,
            f"apps: {route['apps']}" if route["apps"] else None,
            None if route["cache"] else "never from the cache",
            "anonymous callers" if route["anonymous"] else None,
        )
        ceiling = route["profile"] or "as declared"
        rows.append((element("code", route["address"]), _lines(*rules, rest), ceiling, _lines(*also)))
    return _table(("Route", "Leads to", "Profile", "Also"), rows, "No route is configured.")


def _numbers(told: Json) -> Markup:
    is_on, numbers = told["cache"]["on"], told["numbers"]
    shown = [name for name in _NUMBERS if name in numbers and (is_on or not name.startswith("cache_"))]
    found = [(_NUMBERS[name], numbers[name]) for name in shown]
    found += [(f"cache: {outcome}", count) for outcome, count in sorted(told["cache"]["requests"].items())]
    terms = [element("div", element("dt", label), element("dd", f"{count:,}")) for label, count in found]
    off = None if is_on else element("p", "The cache is off.", class_="quiet")
    return joined(element("dl", *terms), off)


def _errors(told: Json) -> Markup:
    rows = [
        (error["at"], _KINDS.get(error["kind"], error["kind"]), element("code", error["code"]), *_where(error))
        for error in told["errors"]
    ]
    return _table(("Last", "What", "Code", "Upstream or route", "Times"), rows, "None since the start.")


def _where(error: Json) -> tuple[str, str]:
    return error["upstream"] or error["route"] or "none", f"{error['count']:,}"


# what all of them are made of


def _table(columns: Sequence[str], rows: Iterable[Sequence[Child]], empty: str) -> Markup:
    """Each cell knows the name of its column, by which it is read where a screen is too narrow for a table."""
    body = [
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(element("td", cell, data_label=column) for column, cell in zip(columns[1:], row[1:], strict=True)),
        )
        for row in rows
    ]
    if not body:
        return element("p", empty, class_="quiet")
    head = element("tr", *(element("th", column, scope="col") for column in columns))
    return element("table", element("thead", head), element("tbody", *body))


def _lines(*texts: str | None) -> Markup | None:
    lines = [element("div", text) for text in texts if text]
    return element("div", *lines) if lines else None


def _badge(text: str, *, good: bool) -> Markup:
    return element("span", text, class_="badge good" if good else "badge bad")


_PARTS: Final[Mapping[str, tuple[str, Callable[[Any], Markup]]]] = {
    "state": ("", _state),
    "upstreams": ("Upstreams", _upstreams),
    "hosts": ("Hosts by profile", _hosts),
    "numbers": ("Numbers", _numbers),
    "routes": ("Routes", _routes),
    "errors": ("Recent errors", _errors),
}
"""By its id: the heading of each part, and what writes it."""

"""What would happen to a request, rung by rung: how it is described, and how it is told.

The rungs stand in the order in which they are climbed; the first that refuses is the last that was reached. Nothing of
a caller's is repeated but the names that a client gets back in its own error: no header's value, no argument, no token.
What the rungs decide is not known here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NoReturn

from pydantic import Field, ValidationError

from policies.errors import Rejection
from policies.jsonrpc import dumps
from policies.mcp import Json
from policies.settings_base import Model

RUNGS: Final[Mapping[str, str]] = {
    "head": "one request line and headers that say one thing, within their bounds",
    "host": "Host",
    "origin": "Origin",
    "route": "route by host and path",
    "verb": "HTTP method, Content-Type, Accept",
    "identity": "whose key",
    "size": "coding and size of the body",
    "message": "JSON-RPC",
    "era": "era of this request",
    "drain": "whether new calls are taken",
    "session": "session",
    "envelope": "members of the message, and of _meta",
    "agreement": "headers agree with the body",
    "profile": "what the host can show",
    "authorization": "whether this caller may",
    "upstream": "upstream",
    "cache": "cache",
    "request": "what of the request concerns the upstream",
    "way": "how it goes on",
}
"""Every rung by its name, in order, and what it looks at."""

MAX_BODY_CHARS: Final = 1 << 20
"""Of a body that is described: as much as is read of a description."""

Verdict = Literal["passes", "refused", "not told", "not reached"]
"""`not told`: what it depends on cannot be known without asking an upstream, or the process that serves."""


class Described(Model):
    """A request, as JSON describes it."""

    method: str = Field(default="POST", pattern=r"^[A-Za-z]{1,20}$")
    """The HTTP method."""
    path: str = Field(default="/mcp", max_length=8192, pattern=r"^[/*][!-~]*$")
    """The path, with the query if there is one."""
    host: str | None = Field(default=None, max_length=1024)
    """What `Host` says, unless it stands among the headers; if absent, the first host that is served."""
    headers: Mapping[str, str | tuple[str, ...]] = Field(default={}, max_length=128)
    """Header lines; of a name with several, a list."""
    body: Any = None
    """A text as it is, or any other JSON value, which stands for its JSON text."""
    peer: str = Field(default="127.0.0.1", max_length=64)
    """The address that the connection comes from."""
    client: str | None = Field(default=None, max_length=64)
    """The client whose key came with it, in place of that key."""
    session: str | None = Field(default=None, max_length=4096)
    """A session's id, in place of the header with it; `assumed` for a session that is only thought of."""

    @property
    def raw(self) -> bytes:
        """The body's bytes. Raises ValueError for text that is no Unicode."""
        if self.body is None:
            return b""
        return self.body.encode() if isinstance(self.body, str) else dumps(self.body)

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The header lines that are described."""
        return [
            (n, one) for n, given in self.headers.items() for one in ((given,) if isinstance(given, str) else given)
        ]


def described(value: Any) -> Described:
    """The request that a JSON value describes. Raises ValueError, whose message names the member and no value."""
    try:
        found = Described.model_validate(value)
        size = len(found.raw)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the description"
        raise ValueError(f"{where}: {first['msg'][0].lower()}{first['msg'][1:]}") from None
    except UnicodeEncodeError:
        raise ValueError("body: is no Unicode text") from None
    if size > MAX_BODY_CHARS:
        raise ValueError(f"body: is larger than {MAX_BODY_CHARS} bytes")
    if any(not name.isascii() or any(c in value for c in "\r\n\0") for name, value in found.lines):
        raise ValueError("headers: hold what is no header line")
    return found


@dataclass(frozen=True, slots=True)
class Rung:
    """`facts`: what the verdict rests on, in the operator's own names."""

    name: str
    verdict: Verdict
    said: str = ""
    facts: Json = field(default_factory=dict)

    @property
    def told(self) -> Json:
        more = {"facts": self.facts} if self.facts else {}
        return {"rung": self.name, "verdict": self.verdict, "said": self.said, **more}


@dataclass(frozen=True, slots=True)
class Explanation:
    """`answer`: what the client gets without any upstream being asked, None where one would be. `asks`: the upstream
    that would be asked for this request. `holds`: what applies to the call: transforms, time-outs, retries."""

    rungs: tuple[Rung, ...]
    answer: Json | None = None
    asks: str | None = None
    holds: Json = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        verdicts = [rung.verdict for rung in self.rungs]
        return "refused" if "refused" in verdicts else "not told" if "not told" in verdicts else "passes"

    @property
    def told(self) -> Json:
        by_name = {rung.name: rung for rung in self.rungs}
        return {
            "verdict": self.verdict,
            "asks": self.asks,
            "answer": self.answer,
            "rungs": [by_name.get(name, Rung(name, "not reached")).told for name in RUNGS],
            "holds": self.holds,
        }


class Ended(Exception):
    """The ladder ends here; what there is to tell is in it."""


class Ladder:
    """What is written down while a request climbs. `ident` is the id that its errors name, once it is known;
    `in_session` is whether they are those of a live session."""

    def __init__(self) -> None:
        self.rungs: list[Rung] = []
        self.answer: Json | None = None
        self.asks: str | None = None
        self.holds: Json = {}
        self.ident: str | int | None = None

    def passes(self, name: str, said: str, **facts: Any) -> None:
        self.rungs.append(Rung(name, "passes", said, _without_nothing(facts)))

    def open(self, name: str, said: str, **facts: Any) -> None:
        """It cannot be told here."""
        self.rungs.append(Rung(name, "not told", said, _without_nothing(facts)))

    def refuse(self, name: str, why: Rejection, status: int | None = None) -> NoReturn:
        """Raises `Ended`: the client gets this error, with its own status unless another is given."""
        self.rungs.append(Rung(name, "refused", why.message))
        error: Json = {"code": why.code, "message": why.message}
        if why.data is not None:
            error["data"] = why.data
        self.answer = {"status": why.status if status is None else status, "error": error}
        if self.ident is not None:
            self.answer["id"] = self.ident
        if why.headers:
            self.answer["headers"] = dict(why.headers)
        raise Ended

    def end(self, status: int, said: str) -> NoReturn:
        """Raises `Ended`: the gateway answers by itself, and well."""
        self.answer = {"status": status, "said": said}
        raise Ended

    def finish(self) -> Explanation:
        return Explanation(tuple(self.rungs), self.answer, self.asks, self.holds)


def _without_nothing(facts: Json) -> Json:
    return {name: fact for name, fact in facts.items() if fact is not None}


# for people


def lines(told: Json) -> list[str]:
    """An explanation (`Explanation.told`) as text: a line a rung, what comes of it, what holds."""
    found = [_line(rung) for rung in told["rungs"] if rung["verdict"] != "not reached"]
    missed = [rung["rung"] for rung in told["rungs"] if rung["verdict"] == "not reached"]
    if missed:
        found.append(f"{'not reached':<12}{', '.join(missed)}")
    answer = told["answer"]
    if answer is not None and "error" in answer:
        error = answer["error"]
        found.append(f"answer      HTTP {answer['status']}, error {error['code']}: {error['message']}")
    elif answer is not None:
        found.append(f"answer      HTTP {answer['status']}, {answer['said']}")
    elif told["asks"] is not None:
        found.append(f"asks        {told['asks']}")
    for name, value in told["holds"].items():
        found += [f"{name if at == 0 else '':<12}{one}" for at, one in enumerate(_worded(value))]
    return found


def _line(rung: Json) -> str:
    facts = "; ".join(f"{name} {', '.join(_worded(value))}" for name, value in rung.get("facts", {}).items())
    mark = {"passes": "passes", "refused": "REFUSED", "not told": "?"}[rung["verdict"]]
    return f"{mark:<8}{rung['rung']:<14}{rung['said']}{f' ({facts})' if facts else ''}"


def _worded(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [f"{name} {' '.join(_worded(one))}" for name, one in value.items()]
    if isinstance(value, list | tuple):
        return [" ".join(_worded(one)) for one in value]
    return [
        "yes" if value is True else "no" if value is False else f"{value:g}" if isinstance(value, float) else str(value)
    ]

"""The body of a request: whole, decompressed or as it came, and never more than its bound.

Specification: RFC 9110, sections 8.4, 10.1.1, 15.5.14 and 15.5.16.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import HttpVersion11, web

from gateway.front.http import TooSlow
from policies import coding
from policies.edge import CLOSE
from policies.errors import Rejection
from policies.mcp import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR
from policies.settings import Settings

FULL: Final = Rejection(
    INTERNAL_ERROR,
    "too many large requests are under way; try again",
    http=503,
    headers=(("Retry-After", "1"), *CLOSE),
)

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Bound:
    """How large a body may be, and what sets that. `takes`: whether there is room for so many bytes more of it."""

    max_bytes: int
    setting: str
    takes: Callable[[int], bool] = lambda _: True

    def too_large(self) -> Rejection:
        why = f"the request body is larger than {self.max_bytes} bytes ({self.setting})"
        return Rejection(INVALID_REQUEST, why, http=413)


async def read(request: web.BaseRequest, settings: Settings) -> bytes | Rejection:
    """Of a body that is refused no more is read than shows that it must be."""
    content = coding.coding_of(request.headers.getall("Content-Encoding", ()))
    if content is None:
        accept = (("Accept-Encoding", coding.READABLE),)
        why = f"Content-Encoding must be one of {coding.READABLE}"
        return Rejection(INVALID_REQUEST, why, http=415, headers=accept)
    return await _read(request, settings, content, Bound(settings.limits.max_body_bytes, "limits.max_body_bytes"))


async def read_coded(request: web.BaseRequest, settings: Settings, bound: Bound) -> bytes | Rejection:
    """The same of a body in whatever coding it came in."""
    return await _read(request, settings, "identity", bound)


async def _read(
    request: web.BaseRequest, settings: Settings, content: coding.Coding, bound: Bound
) -> bytes | Rejection:
    if (request.content_length or 0) > bound.max_bytes:
        return bound.too_large()
    refused = want(request)
    if refused is not None:
        return refused
    decoder = coding.Decoder(content) if content != "identity" else None
    pieces: list[bytes] = []
    size = 0
    try:
        async for chunk in request.content.iter_any():
            for piece in decoder.feed(chunk) if decoder is not None else (chunk,):
                size += len(piece)
                if size > bound.max_bytes:
                    return bound.too_large()
                if not bound.takes(len(piece)):
                    return FULL
                pieces.append(piece)
    except (TooSlow, EOFError, web.RequestPayloadError) as error:
        return lost(error, settings)
    except coding.Malformed as error:
        return Rejection(PARSE_ERROR, f"the request body is not {content}: {error}", http=400)
    if decoder is not None and not decoder.complete:
        return Rejection(PARSE_ERROR, f"the request body is not {content}: it ends too soon", http=400)
    return b"".join(pieces)


def lost(error: BaseException, settings: Settings) -> Rejection:
    """Why a body did not arrive."""
    if isinstance(error, TooSlow):
        bound = settings.connections.body_s
        why = f"the request body did not arrive within {bound:g} s and one for each KiB (connections.body_s)"
        return Rejection(INVALID_REQUEST, why, http=408, headers=CLOSE)
    if isinstance(error, EOFError):
        return Rejection(INVALID_REQUEST, "the request ends within its body", http=400, headers=CLOSE)
    return Rejection(INVALID_REQUEST, "the request body is not well-formed HTTP/1.1", http=400, headers=CLOSE)


def want(request: web.BaseRequest) -> Rejection | None:
    """Asks for the body, where the client waits to be asked."""
    expected = request.headers.get("Expect")
    if expected is None or request.version < HttpVersion11:
        return None
    if expected.lower() != "100-continue":
        return Rejection(INVALID_REQUEST, "Expect may be 100-continue only", http=417)
    if request.transport is not None:
        request.transport.write(_CONTINUE)
    return None

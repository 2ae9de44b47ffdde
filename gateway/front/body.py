"""The body of a request: whole, decompressed, and never more than its bound.

Specification: RFC 9110, sections 8.4, 10.1.1, 15.5.14 and 15.5.16.
"""

from typing import Final

from aiohttp import HttpVersion11, web

from gateway.front.http import TooSlow
from policies import coding
from policies.edge import CLOSE
from policies.errors import Rejection
from policies.mcp import INVALID_REQUEST, PARSE_ERROR
from policies.settings import Settings

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


async def read(request: web.BaseRequest, settings: Settings) -> bytes | Rejection:
    """Of a body that is refused no more is read than shows that it must be."""
    max_bytes = settings.limits.max_body_bytes
    content = coding.coding_of(request.headers.getall("Content-Encoding", ()))
    if content is None:
        accept = (("Accept-Encoding", coding.READABLE),)
        why = f"Content-Encoding must be one of {coding.READABLE}"
        return Rejection(INVALID_REQUEST, why, http=415, headers=accept)
    if (request.content_length or 0) > max_bytes:
        return _too_large(max_bytes)
    refused = _continue(request)
    if refused is not None:
        return refused
    decoder = coding.Decoder(content) if content != "identity" else None
    pieces: list[bytes] = []
    size = 0
    try:
        async for chunk in request.content.iter_any():
            for piece in decoder.feed(chunk) if decoder is not None else (chunk,):
                size += len(piece)
                if size > max_bytes:
                    return _too_large(max_bytes)
                pieces.append(piece)
    except TooSlow:
        bound = settings.connections.body_s
        why = f"the request body did not arrive within {bound:g} s and one for each KiB (connections.body_s)"
        return Rejection(INVALID_REQUEST, why, http=408, headers=CLOSE)
    except coding.Malformed as error:
        return Rejection(PARSE_ERROR, f"the request body is not {content}: {error}", http=400)
    except EOFError:
        return Rejection(INVALID_REQUEST, "the request ends within its body", http=400, headers=CLOSE)
    except web.RequestPayloadError:
        return Rejection(INVALID_REQUEST, "the request body is not well-formed HTTP/1.1", http=400, headers=CLOSE)
    if decoder is not None and not decoder.complete:
        return Rejection(PARSE_ERROR, f"the request body is not {content}: it ends too soon", http=400)
    return b"".join(pieces)


def _continue(request: web.BaseRequest) -> Rejection | None:
    """Asks for the body, where the client waits to be asked."""
    expected = request.headers.get("Expect")
    if expected is None or request.version < HttpVersion11:
        return None
    if expected.lower() != "100-continue":
        return Rejection(INVALID_REQUEST, "Expect may be 100-continue only", http=417)
    if request.transport is not None:
        request.transport.write(_CONTINUE)
    return None


def _too_large(max_bytes: int) -> Rejection:
    why = f"the request body is larger than {max_bytes} bytes (limits.max_body_bytes)"
    return Rejection(INVALID_REQUEST, why, http=413)

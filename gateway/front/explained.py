"""`POST /admin/explain`: what would happen to the request that a JSON body describes.

What a description says is in `policies/explanation.py`, how it is told in `gateway/explaining/climb.py`. The listener
has seen to who may ask (`gateway/front/status.py`).
"""

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from policies import jsonrpc
from policies.explanation import Described, described, lines
from policies.mcp import Json

PATH: Final = "/admin/explain"

MAX_BYTES: Final = 1 << 20
"""Of a description. Aiohttp's bound for what is read whole."""

Explain = Callable[[Described], Awaitable[Json | None]]
"""Gives the explanation; None where no worker can give one now."""


async def answer(request: web.BaseRequest, explain: Explain) -> web.StreamResponse:
    """As JSON, or for an `Accept` of `text/plain` as text."""
    if request.method != "POST":
        return web.json_response({"error": "use POST"}, status=405, headers={"Allow": "POST"})
    if "Origin" in request.headers:
        return web.json_response({"error": "not for web pages: there is an Origin"}, status=403)
    if (request.content_length or 0) > MAX_BYTES:
        return _too_large()
    try:
        value = jsonrpc.loads(await request.read())
    except web.HTTPRequestEntityTooLarge:
        return _too_large()
    except ValueError:
        return web.json_response({"error": "the body is no JSON in UTF-8"}, status=400)
    try:
        asked = described(value)
    except ValueError as error:
        return web.json_response({"error": str(error)}, status=400)
    told = await explain(asked)
    if told is None:
        return web.json_response({"error": "no worker has explained it; try again"}, status=503)
    if request.headers.get("Accept", "").strip().startswith("text/plain"):
        return web.Response(text="\n".join(lines(told)) + "\n")
    return web.Response(body=jsonrpc.dumps(told), content_type="application/json")


def _too_large() -> web.Response:
    return web.json_response({"error": f"a description may have {MAX_BYTES} bytes"}, status=413)

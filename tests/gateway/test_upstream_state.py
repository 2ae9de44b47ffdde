"""An upstream's own `requestState`, end to end: whose it is, and where it passes as it is.

Specification: 2026-07-28 basic/patterns/mrtr, Server Requirements.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.gateway.test_keys import CI, OPS, bearer, digest
from tests.gateway_process import GatewayProcess, running
from tests.peers import Call, ModernUpstream
from tests.raw_front import Answer

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]

THEIRS = "state € of the upstream"
ASKING: dict[str, Json] = {"tools/call": {"name": "t"}, "prompts/get": {"name": "t"}, "resources/read": {"uri": "u:t"}}
JSON_ONLY = {"Accept": "application/json"}
CLIENTS = {
    "ci": {"keys": [digest(CI)], "routes": ["/json", "/stream", "/unread", "/passes"]},
    "ops": {"keys": [digest(OPS)], "routes": ["/json", "/stream", "/unread", "/passes"]},
}
ENTRY = {"method": "elicitation/create", "params": {"mode": "form", "message": "m", "requestedSchema": {}}}
DECLINED: Json = {"inputResponses": {"k": {"action": "decline"}}}


class Asking(ModernUpstream):
    """Asks, and is content once its state is back. `streams`: it says something on the way."""

    def __init__(self, *, streams: bool) -> None:
        super().__init__()
        self.streams = streams
        for method in ASKING:
            self.on[method] = self._asked

    async def _asked(self, call: Call) -> Json:
        if self.streams:
            await call.notify("notifications/message", {"level": "info", "data": "requestState"})
        if "requestState" in call.seen.params:
            content: Json = {"content": [], "messages": [], "contents": []}
            return {**content, "seen": call.seen.params["requestState"]}
        return {"resultType": "input_required", "inputRequests": {"k": ENTRY}, "requestState": THEIRS, "x": [1.50]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway() -> AsyncIterator[GatewayProcess]:
    async with Asking(streams=False) as at_once, Asking(streams=True) as streaming:
        behind: dict[str, Any] = {
            "json": at_once,
            "stream": streaming,
            "unread": (at_once, {"verifies_headers": True}),
            "passes": (at_once, {"forward_headers": ["X-Token"]}),
        }
        async with running(behind, clients=CLIENTS) as started:
            yield started


async def asked(
    gateway: GatewayProcess, where: str, headers: dict[str, Any], method: str = "tools/call", **retry: Any
) -> Answer:
    front = gateway.front(f"/{where}")
    return await front.modern(method, {**ASKING[method], **retry}, capabilities={"elicitation": {}}, headers=headers)


@pytest.mark.parametrize("accept", [{}, JSON_ONLY], ids=["both kinds accepted", "only JSON accepted"])
@pytest.mark.parametrize("where", ["json", "stream", "unread"])
async def test_where_the_upstream_cannot_tell_callers_apart_its_state_is_good_for_one(
    gateway: GatewayProcess, where: str, accept: dict[str, str]
) -> None:
    for method in ASKING:
        result = (await asked(gateway, where, bearer(CI) | accept, method)).result
        assert (result["resultType"], result["inputRequests"]) == ("input_required", {"k": ENTRY})
        assert result["x"] == [1.5]
        state = result["requestState"]
        assert THEIRS not in state
        for headers, theirs in ((bearer(OPS), state), (bearer(CI), THEIRS), (bearer(CI), state + "A")):
            refused = await asked(gateway, where, headers | accept, method, requestState=theirs, **DECLINED)
            assert (refused.status, refused.code) == (400, -32602)
            assert "requestState" in refused.error["message"]
        again = await asked(gateway, where, bearer(CI) | accept, method, requestState=state, **DECLINED)
        assert again.result["seen"] == THEIRS


async def test_where_a_callers_own_credential_goes_upstream_the_state_passes_as_it_is(gateway: GatewayProcess) -> None:
    own = bearer(CI) | {"X-Token": "of the caller"}
    assert (await asked(gateway, "passes", own)).result["requestState"] == THEIRS
    assert (await asked(gateway, "passes", own, requestState=THEIRS)).result["seen"] == THEIRS
    # the gateway's key stays here, and nothing else tells this caller from others
    result = (await asked(gateway, "passes", bearer(CI))).result
    assert THEIRS not in result["requestState"]

"""Routes to LLM APIs over time: time-outs, reloads, shutdown, a response that never ends."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.test_reload import serving
from tests.gateway_process import settings
from tests.http_wire import DEADLINE_S
from tests.peers import ModernUpstream
from tests.provider.api import Api, ask, before, message_of, plain_body, raw, result_body
from tests.provider.test_ledger import APPS, BODY, answers
from tests.raw_front import Front
from tests.scripted import Call

PATH = "/llm/anthropic/v1/messages"
JSON = {"Content-Type": "application/json"}
TIMEOUTS = {
    "connect_s": 5,
    "first_byte_s": 0.3,
    "idle_s": 0.3,
    "total_s": 30,
}


async def stays(call: Call) -> bool:
    await call.stay()
    call.close()
    return True


async def begins(call: Call) -> bool:
    await call.stream()
    await call.write(b"data: 1\n\n")
    return await stays(call)


async def goes_on(call: Call) -> bool:
    await call.stream()
    while True:
        await call.write(b"data: 1\n\n")
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("script", "changed", "status"),
    [(stays, {}, 504), (begins, {}, 200), (goes_on, {"total_s": 1}, 200)],
    ids=["no head", "no more of it", "no end"],
)
async def test_an_api_that_takes_too_long_is_given_up(script: Any, changed: dict[str, float], status: int) -> None:
    async with Api("anthropic") as api:
        api.on_http = script
        async with before({"anthropic": api}, provider_settings={"timeouts": TIMEOUTS | changed}) as gateway:
            answer = await ask(gateway, PATH, plain_body("anthropic"))
    assert answer.status == status
    if status == 200:
        assert not answer.ended
    else:
        assert "did not answer in time" in message_of("anthropic", answer)


async def test_an_upload_that_is_slow_is_not_an_api_that_is_silent() -> None:
    async with (
        Api("anthropic") as api,
        before({"anthropic": api}, provider_settings={"timeouts": TIMEOUTS | {"first_byte_s": 1}}) as gateway,
    ):
        head = {"Content-Type": "application/octet-stream", "Content-Length": "8"}
        async with Front(gateway.url + "/llm/anthropic/v1/files").sent("POST", head) as (stream, writer):
            for _ in range(8):
                writer.write(b"x")
                await asyncio.sleep(0.3)
            assert (await stream.until(b"\r\n")).startswith(b"HTTP/1.1 200 ")
        assert api.last.body == b"x" * 8


async def test_a_reload_changes_keys_and_routes_and_no_request_under_way_notices(tmp_path: Path) -> None:
    async with ModernUpstream() as mcp, Api("anthropic") as one, Api("anthropic") as other:
        mcp.on |= answers()

        def content(api: Api, key: str, path: str) -> dict[str, Any]:
            provider = {"dialect": "anthropic", "url": api.url, "key": key}
            routes = [{"path": "/up", "upstream": "up"}, {"path": path, "provider": "api"}]
            return settings({"up": mcp}, providers={"api": provider}, routes=routes)

        async with serving(tmp_path, content(one, "first-key", "/llm/a")) as live:
            go_on = asyncio.Event()

            async def slow(call: Call) -> bool:
                await call.stream()
                await call.write(b"data: 1\n\n")
                await go_on.wait()
                await call.end()
                return True

            one.on_http = slow
            front = Front(live.gateway.url + "/llm/a/v1/messages")
            async with front.open("POST", JSON, raw(plain_body("anthropic"))) as opened:
                assert await opened.read()
                # what was remembered lasts, as this change concerns none of it
                await live.gateway.front("/up").modern("resources/read", {"uri": "ui://a/view"}, capabilities=APPS)
                live.write(content(other, "second-key", "/llm/b"))
                async with asyncio.timeout(DEADLINE_S):
                    while (await ask(live.gateway, "/llm/b/v1/messages", result_body("anthropic", BODY))).status != 200:
                        await asyncio.sleep(0.02)
                assert (await ask(live.gateway, "/llm/a/v1/messages", plain_body("anthropic"))).status == 404
                go_on.set()
                await opened.whole()
            assert one.last.headers.all("x-api-key") == ["first-key"]
            assert other.last.headers.all("x-api-key") == ["second-key"]
            assert b"PLANTED" not in other.last.body
            # without any API nothing is remembered, nor is it later
            live.write(settings({"up": mcp}))
            await live.until_answered("/up", 200)
            async with asyncio.timeout(DEADLINE_S):
                while (await ask(live.gateway, "/llm/b/v1/messages", plain_body("anthropic"))).status != 404:
                    await asyncio.sleep(0.02)
            live.write(content(other, "second-key", "/llm/b"))
            body = result_body("anthropic", BODY)
            async with asyncio.timeout(DEADLINE_S):
                while (await ask(live.gateway, "/llm/b/v1/messages", body)).status != 200:
                    await asyncio.sleep(0.02)
            assert other.last.body == raw(body)


async def test_a_response_under_way_may_end_after_sigterm_and_none_begins() -> None:
    go_on = asyncio.Event()

    async def slow(call: Call) -> bool:
        await call.stream()
        await call.write(b"data: 1\n\n")
        await go_on.wait()
        await call.write(b"data: 2\n\n")
        await call.end()
        return True

    async with Api("anthropic") as api, before({"anthropic": api}, admin="127.0.0.1:0") as gateway:
        api.on_http = slow
        async with Front(gateway.url + PATH).open("POST", JSON, raw(plain_body("anthropic"))) as opened:
            assert await opened.read()
            gateway.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(DEADLINE_S):
                while (await Front(gateway.admin_url + "/readyz").send("GET", {})).status == 200:
                    await asyncio.sleep(0.02)
            go_on.set()
            await opened.whole()
            assert opened.received == b"data: 1\n\ndata: 2\n\n"


async def test_a_large_body_passes_as_it_came_and_is_stripped_beside_others() -> None:
    large = '\u00e9 text with "_meta" and ui:// in it, ' * (500 << 10)
    app = {"type": "resource", "resource": {"uri": "ui://a", "text": "PLANTED" * 1000}}
    async with Api("anthropic") as api, before({"anthropic": api}) as gateway:
        body = raw(result_body("anthropic", large))
        assert len(body) > 16 << 20
        assert (await ask(gateway, PATH, body)).status == 200
        assert api.last.body == body
        mixed = result_body("anthropic", json.dumps({"content": [{"type": "text", "text": large}, app]}))
        slow = asyncio.create_task(ask(gateway, PATH, mixed))
        assert (await ask(gateway, PATH, plain_body("anthropic"))).status == 200
        assert (await slow).status == 200
        assert all(b"PLANTED" not in seen.body for seen in api.requests)
        assert any(len(seen.body) > 16 << 20 for seen in api.requests[1:])


async def test_bodies_that_wait_for_an_api_leave_room_for_so_many(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def waits(call: Call) -> bool:
        await go_on.wait()
        return False

    async with Api("anthropic") as api, before({"anthropic": api}, limits={"max_provider_body_bytes": 1024}) as gateway:
        api.on_http = waits
        body = plain_body("anthropic", "x" * 900)
        asked = [asyncio.create_task(ask(gateway, PATH, body)) for _ in range(16)]
        await api.when(lambda: len(api.requests) == 16)
        refused = await ask(gateway, PATH, body)
        assert (refused.status, refused.headers.get("Retry-After")) == (503, "1")
        assert "too many large requests" in message_of("anthropic", refused)
        go_on.set()
        assert [answer.status for answer in await asyncio.gather(*asked)] == [200] * 16
        assert (await ask(gateway, PATH, body)).status == 200


@pytest.mark.parametrize("keeps", [True, False])
async def test_structured_content_is_sent_or_not_as_the_settings_say(keeps: bool) -> None:
    result = json.dumps({"content": [{"type": "text", "text": "21 degrees"}], "structuredContent": {"figure": 21}})
    given = {} if keeps else {"keep_structured": False}
    async with Api("openai") as api, before({"openai": api}, provider_settings=given) as gateway:
        sent = result_body("openai", result)
        assert (await ask(gateway, "/llm/openai/v1/chat/completions", sent)).status == 200
        assert (api.last.body == raw(sent)) == keeps
        assert b"21 degrees" in api.last.body
        assert (b"figure" in api.last.body) == keeps

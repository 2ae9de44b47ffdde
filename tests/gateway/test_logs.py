"""The log: one form, one place, and nothing in it of what clients and servers say to each other."""

import asyncio
import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from gateway.logs import configure, fields, stray
from tests.gateway.test_keys import bearer, digest
from tests.gateway_process import running
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream
from tests.scripted import Call, Err, Json

MARK = "planted"
KEY = "mfd_planted" + "a" * 36


@pytest.fixture
def own_root() -> Iterator[None]:
    """The root logger as it was, after a test has set it up anew."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


def written(form: str, level: str = "debug") -> tuple[io.StringIO, logging.Logger]:
    stream = io.StringIO()
    configure(level, form, stream)
    return stream, logging.getLogger("gateway.tests")


@pytest.mark.usefixtures("own_root")
def test_a_line_of_json_has_its_members_apart() -> None:
    stream, log = written("json")
    log.info("request of %s", "a", extra=fields(status=200, route="/mcp", session=""))
    line = json.loads(stream.getvalue())
    assert datetime.fromisoformat(line.pop("time")).tzinfo is not None
    assert line == {
        "level": "info",
        "logger": "gateway.tests",
        "message": "request of a",
        "status": 200,
        "route": "/mcp",
    }


@pytest.mark.usefixtures("own_root")
def test_a_line_of_text_is_one_line_whatever_is_in_it() -> None:
    stream, log = written("text")
    log.warning("two\r\nlines", extra=fields(route="/mcp\nforged"))
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARNING gateway\.tests: two\\r\\nlines route=/mcp\\nforged\n",
        stream.getvalue(),
    )


@pytest.mark.usefixtures("own_root")
def test_a_value_that_could_be_taken_for_several_stands_in_quotes() -> None:
    stream, log = written("text")
    log.info("request", extra=fields(name='a tool outcome=ok "x"', route="/mcp", status=200))
    assert stream.getvalue().endswith(r'request name="a tool outcome=ok \"x\"" route=/mcp status=200' + "\n")


@pytest.mark.usefixtures("own_root")
@pytest.mark.parametrize("form", ["text", "json"])
def test_of_an_exception_class_and_place_are_told_and_not_its_words(form: str) -> None:
    stream, log = written(form)
    try:
        try:
            json.loads(f'{{"{MARK}": ')
        except ValueError as error:
            raise RuntimeError(MARK) from error
    except RuntimeError:
        log.exception("failed, id %s", "1f")
    said = stream.getvalue()
    assert MARK not in said.replace("raise RuntimeError(MARK)", "").replace("json.loads(f'{{\"{MARK}\": ')", "")
    assert "failed, id 1f" in said
    assert "Traceback (most recent call last)" in said
    assert said.index("json.decoder.JSONDecodeError") < said.index("builtins.RuntimeError")
    assert "test_logs.py" in said


@pytest.mark.usefixtures("own_root")
def test_what_no_task_has_caught_is_told_without_its_words() -> None:
    stream, _ = written("text")
    words = "".join(["se", "cret"])

    async def fail() -> None:
        raise RuntimeError(words)

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(stray)
        failing = asyncio.ensure_future(fail())
        await asyncio.wait({failing})
        del failing

    asyncio.run(main())
    assert "builtins.RuntimeError" in stream.getvalue()
    assert words not in stream.getvalue()


@pytest.mark.usefixtures("own_root")
def test_what_is_below_the_level_is_not_written_and_libraries_are_heard_from_warning_on() -> None:
    stream, log = written("text", "info")
    log.debug("below")
    logging.getLogger("asyncio").info("chatter")
    logging.getLogger("aiohttp.client").warning("trouble")
    configure("error", "text", stream)
    log.warning("below")
    assert [line.partition(": ")[2] for line in stream.getvalue().splitlines()] == ["trouble"]


async def tool(call: Call) -> Json | Err:
    name = call.seen.params["name"]
    if name.endswith("asks"):
        form = {"message": f"{MARK}-question", "requestedSchema": {"type": "object", "properties": {}}}
        await call.ask("elicitation/create", form)
    if name.endswith("fails"):
        return Err(-32000, f"{MARK}-message", {"detail": f"{MARK}-data"})
    return {"content": [{"type": "text", "text": f"{MARK}-result"}], "structuredContent": {"v": f"{MARK}-result"}}


@pytest.mark.parametrize("form", ["text", "json"])
async def test_nothing_that_is_said_through_the_gateway_is_in_its_log(form: str) -> None:
    async with LegacyUpstream(get_stream=True) as legacy, ModernUpstream() as modern:
        legacy.on["tools/call"] = modern.on["tools/call"] = tool
        credentials: dict[str, Any] = {
            "headers": {"Authorization": f"Bearer {MARK}-own"},
            "forward_headers": ["X-Token"],
        }
        behind: dict[str, Any] = {
            "legacy": (legacy, credentials),
            "modern": (modern, credentials),
            "dead": (ModernUpstream(), {"era": "modern"}),
        }
        behind["dead"][0]._port = 9
        clients = {"ci": {"keys": [digest(KEY)], "routes": [f"/{name}" for name in behind]}}
        async with running(behind, clients=clients, log={"level": "debug", "format": form}) as gateway:
            head = {**bearer(KEY), "X-Token": f"{MARK}-token", "User-Agent": f"{MARK}-agent"}
            for name in behind:
                front = gateway.front(f"/{name}")
                for last in ("works", "fails"):
                    arguments = {"name": f"{MARK}-{last}", "arguments": {f"{MARK}-key": f"{MARK}-value"}}
                    await front.modern("tools/call", arguments, headers=head)
                await front.modern("resources/read", {"uri": f"note://{MARK}"}, headers=head)
                await front.modern(f"{MARK}/method", headers=head)
                await front.modern("tools/list", headers={**head, **bearer(f"{MARK}-wrong")})
                await front.post(f'{{"{MARK}'.encode(), head)
                await front.at(f"/{name}?q={MARK}").modern("tools/list", headers=head)
                await front.at(f"/{MARK}").modern("tools/list", headers=head)
            session = await gateway.front("/legacy").initialize(capabilities={"elicitation": {}}, headers=head)
            async with session.open("tools/call", {"name": f"{MARK}-asks"}) as stream:
                while (message := await stream.message()) is not None and "result" not in message:
                    if "id" in message:
                        content = {"action": "accept", "content": {"field": f"{MARK}-form"}}
                        assert (await session.reply(message["id"], {"result": content})).status == 202
            await session.delete()
            await gateway.stop()
            said = gateway.stderr()
        assert MARK not in said, [line for line in said.splitlines() if MARK in line]
        assert session.id is not None
        assert session.id not in said
        assert said.count("tools/call") >= 5
        requests = [line for line in said.splitlines() if "gateway.front.mcp" in line]
        if form == "json":
            lines = [json.loads(line) for line in said.splitlines()]
            told = next(line for line in lines if line["message"] == "request" and line.get("session"))
            assert told["route"] == "/legacy"
            assert told["client"] == "ci"
            assert told["era"] == "legacy"
            assert len({line["session"] for line in lines if line.get("session")}) == 1
        assert any("_OTHER" in line for line in requests)


async def test_the_gateway_on_standard_input_and_output_logs_in_the_same_form() -> None:
    command = [sys.executable, "-m", "gateway", "stdio", "--upstream", "http://127.0.0.1:1/mcp"]
    pipes = {"stdin": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(*command, **pipes)  # type: ignore[arg-type]
    assert process.stdin is not None
    assert process.stderr is not None
    async with asyncio.timeout(DEADLINE_S):
        line = await process.stderr.readline()
        process.stdin.close()
        await process.wait()
    assert re.fullmatch(rb"\S+Z WARNING gateway\.upstreams\.\w+: .* (does not answer yet|cannot be reached)\n", line)

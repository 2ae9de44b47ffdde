"""`mcp-front-door strip` as a filter between two programs: a body in, a body out, and what was removed by its kind."""

import json
import subprocess
import sys

import pytest

from policies.mcp import Json

TEXT: Json = {"type": "text", "text": "Sunny at ui://."}
APP: Json = {"type": "resource", "resource": {"uri": "ui://x", "text": "planted"}, "_meta": {"a": "planted"}}
CHAT: Json = {"messages": [{"role": "tool", "tool_call_id": "c", "content": json.dumps([TEXT, APP]), "mcp_app": 1}]}


def strip(body: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "gateway", "strip", *arguments]
    return subprocess.run(command, input=body, capture_output=True, timeout=60, check=False)


def test_a_body_comes_out_without_what_was_only_to_be_shown() -> None:
    done = strip(json.dumps(CHAT).encode(), "--dialect", "openai", "-v")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {
        "messages": [{"role": "tool", "tool_call_id": "c", "content": json.dumps([TEXT])}]
    }
    assert done.stderr == b"presentation 1\nresource 1\n"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{ "messages" : [ {"role": "user", "content": "ui:// \\u00e9"} ] }\r\n',
        json.dumps({"input": "a"}).encode(),
    ],
)
def test_a_body_with_nothing_to_take_out_comes_out_byte_for_byte(body: bytes) -> None:
    done = strip(body, "--dialect", "openai", "--path", "/v1/responses", "-v")
    assert (done.returncode, done.stdout, done.stderr) == (0, body, b"nothing removed\n")
    assert strip(body, "--dialect", "openai").stderr == b""


def test_a_path_tells_the_forms_of_one_api_apart() -> None:
    hidden = {"name": "poll", "input_schema": {}, "_meta": {"ui": {"visibility": ["app"]}}}
    body = json.dumps({"tools": [hidden], "messages": []}).encode()
    done = strip(body, "--dialect", "openai", "--path", "/v1/messages")
    assert json.loads(done.stdout) == {"tools": [], "messages": []}
    assert json.loads(strip(body, "--dialect", "openai").stdout) == {"messages": []}


def test_one_copy_of_a_result_in_both_forms_is_left_where_that_is_asked_for() -> None:
    body = json.dumps({"messages": [{"role": "tool", "content": "a", "structuredContent": {"a": 1}}]}).encode()
    assert strip(body, "--dialect", "openai").stdout == body
    done = strip(body, "--dialect", "openai", "--drop-structured", "-v")
    assert json.loads(done.stdout) == {"messages": [{"role": "tool", "content": "a"}]}
    assert done.stderr == b"structured 1\n"


@pytest.mark.parametrize("body", [b'{"_meta": planted}', b'["_meta", "planted"]', "\ufeff{}".encode("utf-16")])
def test_what_is_no_body_is_told_in_one_line_and_ends_with_2(body: bytes) -> None:
    done = strip(body, "--dialect", "anthropic")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().splitlines() == [
        "standard input: body: is no JSON object in UTF-8 that can be looked at; send one"
    ]

"""The equipment of these tests, where a fault of it would let one pass: what is found in a body, and the versions."""

import asyncio
import base64
import json

import pytest

from tests.adapters.cases import PYTHON
from tests.adapters.looks import continues, held, members
from tests.matrix.machinery import ROOT

MARK = "PlantedHere4Hd9"
PAGE = f"<p>größe {MARK}</p>"
PACKED = [base64.b64encode(b" " * before + PAGE.encode()).decode() for before in range(3)]
NESTED = json.dumps({"a": [json.dumps({"b": json.dumps([PAGE])})]})


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"a": PAGE}),
        json.dumps({"a": PAGE}, ensure_ascii=False),
        json.dumps({MARK: 1}),
        json.dumps({"a": [[{"b": f"text around {PAGE} it"}]]}),
        "".join(f"\\u{ord(letter):04x}" for letter in MARK).join(['{"a": "', '"}']),
        NESTED,
        json.dumps({"a": base64.b64encode(NESTED.encode()).decode()}),
        *(json.dumps({"a": packed}) for packed in PACKED),
        *(json.dumps({"a": f"data:text/html;base64,{packed}"}) for packed in PACKED),
        json.dumps({"a": base64.urlsafe_b64encode(("?>" * 9 + PAGE).encode()).decode().rstrip("=")}),
        json.dumps({"a": base64.b64encode(PACKED[1].encode()).decode()}),
        json.dumps({"a": "data:text/html," + "".join(f"%{byte:02X}" for byte in PAGE.encode())}),
        json.dumps({"a": f"cut {PACKED[0]}"[:-7]}),
    ],
)
def test_a_mark_is_found_however_it_is_written(text: str) -> None:
    assert held(text.encode(), (MARK, "another")) == {MARK}


@pytest.mark.parametrize(
    "text", ['{"a": "PlantedHere", "b": "4Hd9"}', json.dumps({"a": PAGE.replace(MARK, "x")}), "{}"]
)
def test_what_is_no_mark_is_not_found(text: str) -> None:
    assert held(text.encode(), (MARK,)) == set()


def test_members_are_read_as_they_stand() -> None:
    body = ' { "a" : [1 , {"b":"\\u00f6"}] ,"ö":"x"} '.encode()
    assert members(body) == {"a": '[1 , {"b":"\\u00f6"}]', "ö": '"x"'}
    assert members(b"{}") == {}


@pytest.mark.parametrize(
    ("earlier", "later", "does"),
    [
        ("[1]", "[1,2]", True),
        ("[1]", "[1]", True),
        ("[]", "[1]", True),
        ("[1]", "[ 1,2]", False),
        ("[1]", "[2,1]", False),
        ("[1,2]", "[1]", False),
    ],
)
def test_an_array_continues_another_whose_bytes_it_begins_with(earlier: str, later: str, *, does: bool) -> None:
    assert continues(earlier, later) is does


PACKAGES = (
    "anthropic",
    "openai",
    "google-genai",
    "langchain-mcp-adapters",
    "langchain-anthropic",
    "langchain-openai",
    "openai-agents",
    "strands-agents",
    "mcp",
)


async def test_the_adapters_are_those_that_are_pinned() -> None:
    lines = (ROOT / "requirements/adapters.txt").read_text().splitlines()
    pinned = dict(line.partition(" ;")[0].split("==") for line in lines if "==" in line)
    asked = f"from importlib.metadata import version; print(*map(version, {PACKAGES!r}))"
    process = await asyncio.create_subprocess_exec(PYTHON, "-c", asked, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0
    assert out.decode().split() == [pinned[name] for name in PACKAGES]
    assert pinned["mcp"].startswith("1.")

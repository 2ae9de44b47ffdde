"""Real adapters between MCP and LLM providers: what a host was only to show never arrives at a provider, what a model
is to know always does, and all else arrives as it was sent.

Specification: MCP Apps 2026-01-26 (Visibility, Data Delivery); the providers' public API references.
"""

import itertools
import json
import re

import pytest

from tests.adapters.cases import CASES, DIRECT, LINKING, SCRIPTS, THREADS, THROUGH, Case
from tests.adapters.conftest import Records, talks
from tests.adapters.looks import continues, held, members
from tests.adapters.provider import Request
from tests.adapters.real.marks import HIDDEN, LINK, META, PLANTED, kept

every_case = pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
every_whole_case = pytest.mark.parametrize(
    "case", [pytest.param(case, id=name) for name, case in CASES.items() if name not in THREADS]
)
KEPT = ("chart", "small", "packed", "apart", "structured", "look", "json", "note", "long")


def found(requests: list[Request], marks: tuple[str, ...]) -> set[str]:
    return set[str]().union(*(held(one.body, marks) for one in requests))


async def test_every_conversation_ends_as_the_model_has_it(records: Records) -> None:
    for talk in talks():
        wanted = [turn for turn in SCRIPTS[talk.server] if isinstance(turn, str)]
        assert records.said[talk.key] == wanted, talk


@pytest.mark.field("Z10")
@every_case
async def test_what_was_only_to_be_shown_never_arrives(records: Records, case: Case) -> None:
    assert found(records.arrived(case, "ui"), PLANTED) == set()


@every_case
async def test_it_would_arrive_without_the_gateway(records: Records, case: Case) -> None:
    sent = found(records.arrived(case, "ui", DIRECT), PLANTED)
    assert sent >= set(PLANTED) - {META, LINK}


@pytest.mark.parametrize("case", [pytest.param(one, id=one.name) for one in LINKING])
async def test_a_link_to_a_view_never_arrives(records: Records, case: Case) -> None:
    assert found(records.arrived(case, "links"), (LINK, kept("point"))) == {kept("point")}
    assert found(records.arrived(case, "links", DIRECT), (LINK, kept("point"))) == {LINK, kept("point")}


@pytest.mark.field("Z10")
@every_case
async def test_what_a_model_is_to_know_of_a_result_arrives(records: Records, case: Case) -> None:
    for server, words in (("ui", ("chart", "small", "packed", "apart")), ("plain", ("look", "json", "note", "long"))):
        marks = tuple(map(kept, KEPT))
        arrived, sent = [found(records.arrived(case, server, way), marks) for way in (THROUGH, DIRECT)]
        assert arrived == sent
        assert arrived >= set(map(kept, words))


@every_case
async def test_calls_and_results_stay_paired(records: Records, case: Case) -> None:
    """Each call's id is as often in a body as in what was sent, and in the same order."""
    through, direct = [records.arrived(case, "ui", way) for way in (THROUGH, DIRECT)]
    for arrived, sent in zip(through, direct, strict=True):
        assert calls(arrived) == calls(sent)
        assert len(calls(arrived)) > 0 or arrived in (through[0], through[2])


def calls(request: Request) -> list[bytes]:
    return re.findall(rb"call\d+x\d+", request.body)


@every_case
async def test_a_tool_for_views_alone_is_not_offered(records: Records, case: Case) -> None:
    for one in records.turns(case, "ui"):
        assert continues_thread(one) or set(offered(one)) == {"chart", "small", "packed", "only", "apart"}
        assert HIDDEN not in offered(one)
    assert HIDDEN in offered(records.turns(case, "ui", DIRECT)[0])


def offered(request: Request) -> list[str]:
    """The names of the tools that a body defines."""
    body = json.loads(request.body)
    listed = body.get("tools") or body.get("toolConfig", {}).get("tools", [])
    listed = [declared for tool in listed for declared in tool.get("functionDeclarations", [tool])]
    return [(tool.get("function") or tool.get("toolSpec") or tool)["name"] for tool in listed]


def continues_thread(request: Request) -> bool:
    """Whether the provider has the rest of the conversation, the tools among it."""
    return bool(json.loads(request.body).get("thread", {}).get("type") == "continue")


@every_case
async def test_a_conversation_without_views_arrives_byte_for_byte(records: Records, case: Case) -> None:
    through, direct = [records.arrived(case, "plain", way) for way in (THROUGH, DIRECT)]
    assert [one.path for one in through] == [one.path for one in direct]
    assert [one.body for one in through] == [one.body for one in direct]


@every_whole_case
@pytest.mark.parametrize("way", [DIRECT, THROUGH])
@pytest.mark.parametrize("server", ["ui", "plain"])
async def test_what_was_sent_once_is_sent_again_in_the_same_bytes(
    records: Records, case: Case, way: str, server: str
) -> None:
    """Which is what providers' caches of prompts go by; with the gateway as without it."""
    bodies = [members(one.body) for one in records.turns(case, server, way)]
    for earlier, later in itertools.pairwise(bodies):
        assert continues(earlier[case.holds], later[case.holds])
        for name in ("tools", "toolConfig", "system", "systemInstruction", "instructions"):
            assert earlier.get(name) == later.get(name)


@pytest.mark.parametrize("name", THREADS)
async def test_a_conversation_that_the_provider_keeps_is_continued(records: Records, name: str) -> None:
    threads = [json.loads(one.body)["thread"]["type"] for one in records.turns(CASES[name], "ui")]
    assert threads == ["create", "continue", "create", "continue"]


LIBRARY = ("<h1>Größe", "example.com/view")
"""What the published library makes of a view: HTML, or the address of a page."""


@pytest.mark.parametrize("case", [pytest.param(one, id=one.name) for one in CASES.values() if one.is_once])
async def test_views_made_by_a_published_library_never_arrive(records: Records, case: Case) -> None:
    assert found(records.arrived(case, "library"), (*LIBRARY, "in words")) == {"in words"}


@pytest.mark.parametrize("case", [pytest.param(one, id=one.name) for one in CASES.values() if one.is_once])
async def test_a_published_servers_tool_for_its_view_is_not_offered(records: Records, case: Case) -> None:
    for one in records.turns(case, "published"):
        assert continues_thread(one) or offered(one) == ["get-system-info"]
        assert "poll-system-stats" not in offered(one)

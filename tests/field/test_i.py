"""Field reports I1, I2, I9: lists are walked page by page, in either era, and never cut in silence; changes of them are
promised where they can be told of."""

import pytest

from tests.door import Door
from tests.field.pairs import either_upstream, every_pair
from tests.gateway_process import running
from tests.peers import LISTEN, LegacyUpstream
from tests.raw_front import Answer, Front
from tests.scripted import Answer as Script
from tests.scripted import Call, Err, Json

LISTS = {
    "tools/list": ("tools", lambda n: {"name": f"t{n}", "inputSchema": {"type": "object"}}),
    "prompts/list": ("prompts", lambda n: {"name": f"p{n}"}),
    "resources/list": ("resources", lambda n: {"uri": f"note://{n}", "name": f"r{n}"}),
    "resources/templates/list": ("resourceTemplates", lambda n: {"uriTemplate": f"note://{n}/{{x}}", "name": f"u{n}"}),
}
PAGES = {None: (range(8), "8"), "8": (range(8, 14), "größe=+/"), "größe=+/": (range(14, 15), None)}


def paged(method: str) -> Script:
    member, entry = LISTS[method]

    async def answer(call: Call) -> Json | Err:
        cursor = call.seen.params.get("cursor")
        if cursor not in PAGES:
            return Err(-32602, "no such cursor", {"cursor": cursor})
        numbers, following = PAGES[cursor]
        page: Json = {member: [entry(n) for n in numbers]}
        return page if following is None else page | {"nextCursor": following}

    return answer


async def walk(door: Door, front: Front, front_era: str, method: str, first: Json) -> list[Answer]:
    """Every page from the first to the last; fails where there are more than there can be."""
    session = await front.initialize() if front_era == "legacy" else None
    pages: list[Answer] = []
    params = first
    while len(pages) < 5:
        pages.append(await (session.request(method, params) if session else front.modern(method, params)))
        following = pages[-1].final.get("result", {}).get("nextCursor")
        if following is None:
            return pages
        params = {"cursor": following}
    raise AssertionError("the walk does not end")


@pytest.mark.field("I1", "I2")
@every_pair
@pytest.mark.parametrize("method", LISTS)
async def test_every_page_is_reached_once(door: Door, front_era: str, upstream_era: str, method: str) -> None:
    member, entry = LISTS[method]
    door.upstream(upstream_era).on[method] = paged(method)
    for _ in range(2):
        pages = await walk(door, door.front(upstream_era), front_era, method, {})
        assert [found for page in pages for found in page.result[member]] == [entry(n) for n in range(15)]


@pytest.mark.field("I1")
@every_pair
@pytest.mark.parametrize("method", LISTS)
async def test_a_cursor_that_is_none_is_refused(door: Door, front_era: str, upstream_era: str, method: str) -> None:
    door.upstream(upstream_era).on[method] = paged(method)
    for cursor in ("bogus", "", "0"):
        [answer] = await walk(door, door.front(upstream_era), front_era, method, {"cursor": cursor})
        assert answer.code == -32602
        assert answer.error["data"] == {"cursor": cursor}


@pytest.mark.field("I2")
@either_upstream
async def test_a_page_may_be_empty_and_not_the_last(door: Door, upstream_era: str) -> None:
    door.upstream(upstream_era).on["tools/list"] = {"tools": [], "nextCursor": "more"}
    answer = await door.front(upstream_era).modern("tools/list")
    assert (answer.result["tools"], answer.result["nextCursor"]) == ([], "more")


@pytest.mark.field("I9")
@pytest.mark.parametrize("serves", [True, False], ids=["a stream", "no stream"])
async def test_changes_are_promised_where_the_upstream_has_a_stream_to_tell_of_them(serves: bool) -> None:
    """What a server with sessions promises and has no stream for is known once it was asked for one."""
    said: Json = {"tools": {"listChanged": True}, "resources": {"listChanged": True, "subscribe": True}, "prompts": {}}
    asked = {"notifications": {"toolsListChanged": True, "resourcesListChanged": True}}
    async with LegacyUpstream(get_stream=serves, capabilities=said) as upstream, running({"up": upstream}) as gateway:
        front = gateway.front("/up")
        async with front.modern_open(LISTEN, asked) as stream:
            agreed = ((await stream.message()) or {})["params"]["notifications"]
        promised = (await front.modern("server/discover")).result["capabilities"]
    assert agreed == (asked["notifications"] if serves else {})
    assert promised == (said if serves else {name: {} for name in said})

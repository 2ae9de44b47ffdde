"""What systems in use say to MCP Apps hosts, and what other hosts get of it: answers as their public code makes them.

Each file beside this one names its source, version and date. `shown` is what a host without Apps gets: a result,
`everything`, or `not there` (as of a resource that there is none of). A host with Apps gets every answer as it is.
"""

import json
from pathlib import Path

import pytest

from gateway.profiles import built_in
from policies.presentation import MAX_BYTES, bounded
from policies.profiles import Profiles
from tests.door import Door
from tests.field.pairs import ask_pair, every_pair
from tests.matrix.compare import differences
from tests.matrix.edits import Call, edited
from tests.peers import SERVER_INFO, complete
from tests.scripted import Call as Asked
from tests.scripted import Json

HERE = Path(__file__).parent
FILES: dict[str, Json] = {file.stem: json.loads(file.read_text()) for file in sorted(HERE.glob("*.json"))}
REASONIX = FILES["reasonix"]
BUILT_IN = Profiles.of(built_in(), {})
DESKTOP: Json = REASONIX["profiles"]["desktop-apps-2026-01-26-v1"]
NOT_FOUND = {"legacy": -32002, "modern": -32602}

every_answer = pytest.mark.parametrize(
    "answer",
    [
        pytest.param(answer, id=f"{name}: {answer['title']}")
        for name, file in FILES.items()
        for answer in file["answers"]
    ],
)


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_a_shape_says_where_it_is_from(file: Json) -> None:
    assert {"system", "source", "version", "date", "notes", "answers"} <= file.keys()
    assert file["source"].startswith("https://")


async def said(door: Door, pair: tuple[str, str], answer: Json, capabilities: Json) -> Json:
    """What comes of this answer of the upstream through the gateway."""
    door.upstream(pair[1]).on[answer["method"]] = answer["result"]
    got = await ask_pair(door, pair, answer["method"], answer["params"], capabilities=capabilities)
    return {key: got.final[key] for key in ("result", "error") if key in got.final}


def translated(result: Json, answer: Json, pair: tuple[str, str]) -> Json:
    """A result of the upstream as clients of the other era get it."""
    front, upstream = pair
    own = complete(answer["method"], result) if upstream == "modern" else result
    return edited({"result": own}, Call(answer["method"], answer["params"], SERVER_INFO), (upstream, front))


@every_answer
@every_pair
async def test_a_host_with_apps_gets_all_of_it(door: Door, front_era: str, upstream_era: str, answer: Json) -> None:
    pair = (front_era, upstream_era)
    got = await said(door, pair, answer, DESKTOP)
    assert differences(translated(answer["result"], answer, pair), got) == []


@every_answer
@every_pair
@pytest.mark.parametrize("profile", ["core-v1", "interactive-v1"])
async def test_a_host_without_apps_gets_what_it_can_show(
    door: Door, front_era: str, upstream_era: str, profile: str, answer: Json
) -> None:
    pair = (front_era, upstream_era)
    got = await said(door, pair, answer, REASONIX["profiles"][profile])
    if answer["shown"] == "not there":
        assert got["error"]["code"] == NOT_FOUND[front_era]
        assert "result" not in got
    else:
        wanted = answer["result"] if answer["shown"] == "everything" else answer["shown"]
        assert differences(translated(wanted, answer, pair), got) == []


@every_pair
async def test_a_listing_that_varies_by_capability_is_asked_for_with_the_hosts_own(
    door: Door, front_era: str, upstream_era: str
) -> None:
    upstream = door.upstream(upstream_era)
    plain: Json = {"name": "greet", "inputSchema": {"type": "object"}, "description": "In words."}
    linked: Json = {**plain, "description": "As a card.", "_meta": {"ui": {"resourceUri": "ui://a/greet"}}}

    async def varying(call: Asked) -> Json:
        if upstream_era == "modern":
            declared = call.seen.meta["io.modelcontextprotocol/clientCapabilities"]
        else:
            declared = door.legacy.opened[call.seen.session or ""].params["capabilities"]
        return {"tools": [linked if "extensions" in declared else plain]}

    upstream.on["tools/list"] = varying
    for capabilities, wanted in [(DESKTOP, linked), ({}, plain), (DESKTOP, linked)]:
        got = await ask_pair(door, (front_era, upstream_era), "tools/list", {}, capabilities=capabilities)
        assert got.result["tools"] == [wanted]


# Reasonix: profiles and the local presentation


def padded(presentation: Json, members: dict[str, int]) -> Json:
    """The presentation with members of about so many characters."""
    filled = dict(presentation)
    for name, size in members.items():
        text = "x" * size
        filled[name] = {"content": [{"type": "text", "text": text}]} if name == "rawResult" else {"a": text}
    return filled


HALF = MAX_BYTES // 2
DROPS: list[tuple[dict[str, int], set[str]]] = [
    ({}, set()),
    ({"structured": HALF, "rawResult": HALF}, {"structured"}),
    ({"structured": HALF, "rawResult": MAX_BYTES}, {"rawResult"}),
    ({"structured": MAX_BYTES, "rawResult": MAX_BYTES}, {"structured", "rawResult"}),
    ({"structured": MAX_BYTES, "rawResult": MAX_BYTES, "csp": MAX_BYTES}, {"structured", "rawResult", "csp"}),
]
"""Members of what size, and which of them go."""


@pytest.mark.parametrize(("members", "gone"), DROPS, ids=[", ".join(sorted(gone)) or "nothing" for _, gone in DROPS])
def test_a_card_within_512_kib_loses_what_its_host_says_in_that_order(members: dict[str, int], gone: set[str]) -> None:
    presentation = padded(REASONIX["presentation"], members)
    kept = bounded(presentation)
    assert kept == {name: member for name, member in presentation.items() if name not in gone}
    assert len(json.dumps(kept, separators=(",", ":"), ensure_ascii=False).encode()) <= MAX_BYTES


def test_a_card_that_does_not_even_fit_its_link_is_none() -> None:
    assert bounded({**REASONIX["presentation"], "resourceUri": "ui://" + "x" * MAX_BYTES}) is None


@pytest.mark.parametrize("profile", REASONIX["profiles"])
def test_a_profile_of_that_host_is_the_built_in_one_of_its_name(profile: str) -> None:
    declared = REASONIX["profiles"][profile]
    effective = BUILT_IN.effective(None, declared)
    assert effective.profile.name == profile
    assert effective.capabilities == declared
    assert effective.identity == profile

"""Whose key goes where: the gateway's own keys let callers in and never leave it, the API's are the caller's or the
gateway's, and none is shown."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from tests.gateway.test_keys import CI, OPS, STRANGER, digest
from tests.provider.api import KEY_HEADERS, PATHS, Api, ask, before, message_of, plain_body
from tests.provider.conftest import Plane

every_dialect = pytest.mark.parametrize("dialect", PATHS)
OWN, THEIRS = "sk-GATEWAY-own-key", "sk-CALLER-own-key"
DOOR = "X-Front-Door-Key"
CLIENTS = {
    name: {"keys": [digest(key)], "routes": ["/mcp", *routes]}
    for name, key, routes in (
        ("ci", CI, [f"/llm/{dialect}" for dialect in PATHS]),
        ("ops", OPS, []),
    )
}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def keyed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Plane]]:
    """`own`: the gateway has a key of the API's, out of a file; `passing`: it has none."""
    secret: Path = tmp_path_factory.mktemp("secrets") / "key"
    secret.write_text(OWN + "\n")
    async with AsyncExitStack() as stack:
        planes = {}
        for name, given in {"own": {"key": f"file:{secret}"}, "passing": {}}.items():
            apis = {dialect: Api(dialect) for dialect in PATHS}
            for api in apis.values():
                await stack.enter_async_context(api)
            gateway = await stack.enter_async_context(
                before(apis, clients=CLIENTS, provider_settings=given, log={"level": "debug"})
            )
            planes[name] = Plane(gateway, apis)
        yield planes


@pytest.fixture
def planes(keyed: dict[str, Plane]) -> dict[str, Plane]:
    for plane in keyed.values():
        for api in plane.apis.values():
            api.reset()
    return keyed


@every_dialect
@pytest.mark.parametrize("place", ["the door's", "the API's", "in the query"])
async def test_a_key_of_the_gateways_lets_in_and_the_apis_own_is_sent(
    place: str, dialect: str, planes: dict[str, Plane]
) -> None:
    name, form = KEY_HEADERS[dialect]
    headers = {"the door's": {DOOR: CI}, "the API's": {name: form.format(CI)}, "in the query": {}}[place]
    path = PATHS[dialect] + (f"?alt=sse&key={CI}" if place == "in the query" else "?alt=sse")
    plane = planes["own"]
    assert (await plane.ask(dialect, plain_body(dialect), headers, path=path)).status == 200
    seen = plane.apis[dialect].last
    assert seen.headers.all(name) == [form.format(OWN)]
    assert seen.path == PATHS[dialect] + "?alt=sse"
    assert CI not in str(seen.headers)


@every_dialect
async def test_where_the_gateway_has_a_key_none_of_a_callers_goes_with_it(
    dialect: str, planes: dict[str, Plane]
) -> None:
    theirs = {"Authorization": f"Bearer {THEIRS}", "x-api-key": THEIRS, "x-goog-api-key": THEIRS, "api-key": THEIRS}
    path = f"{PATHS[dialect]}?key={THEIRS}&api_key={THEIRS}"
    plane = planes["own"]
    assert (await plane.ask(dialect, plain_body(dialect), {**theirs, DOOR: CI}, path=path)).status == 200
    seen = plane.apis[dialect].last
    assert THEIRS not in str(seen.headers) + seen.path
    assert OWN in str(seen.headers)


@every_dialect
async def test_where_it_has_none_the_callers_own_passes_beside_the_gateways(
    dialect: str, planes: dict[str, Plane]
) -> None:
    name, form = KEY_HEADERS[dialect]
    plane = planes["passing"]
    sent = {name: form.format(THEIRS), DOOR: CI}
    assert (await plane.ask(dialect, plain_body(dialect), sent)).status == 200
    assert plane.apis[dialect].last.headers.all(name) == [form.format(THEIRS)]
    # in another place that APIs have, it lets in as well, and leaves the gateway no more than there
    other = {"Authorization": f"Bearer {CI}"} if name != "Authorization" else {"x-api-key": CI}
    assert (await plane.ask(dialect, plain_body(dialect), {name: form.format(THEIRS), **other})).status == 200
    assert (await plane.ask(dialect, plain_body(dialect), {name: form.format(CI)})).status == 200
    for seen in plane.apis[dialect].requests:
        assert CI not in str(seen.headers)


LEFT_OUT: dict[str, tuple[dict[str, str], int, str]] = {
    "no key at all": ({}, 401, f"{DOOR}: KEY"),
    "a key of the API's alone": ({"Authorization": f"Bearer {THEIRS}", "x-api-key": THEIRS}, 401, DOOR),
    "a key that nobody knows": ({DOOR: STRANGER}, 401, DOOR),
    "a key of a client that may not": ({DOOR: OPS}, 403, "not for this endpoint"),
}


@every_dialect
@pytest.mark.parametrize("kind", ["own", "passing"])
@pytest.mark.parametrize("case", LEFT_OUT)
async def test_whoever_may_not_come_in_is_told_in_the_apis_own_shape(
    case: str, kind: str, dialect: str, planes: dict[str, Plane]
) -> None:
    headers, status, words = LEFT_OUT[case]
    plane = planes[kind]
    answer = await plane.ask(dialect, plain_body(dialect), headers)
    assert (answer.status, plane.apis[dialect].requests) == (status, [])
    assert words in message_of(dialect, answer)
    for key in (CI, OPS, STRANGER, THEIRS, OWN):
        assert key.encode() not in answer.body


async def test_a_signed_request_gets_the_gateways_key_in_the_place_of_its_signature(planes: dict[str, Plane]) -> None:
    signed = {"Authorization": "AWS4-HMAC-SHA256 Credential=a/b", "X-Amz-Date": "20261201T000000Z", DOOR: CI}
    plane = planes["own"]
    assert (await plane.ask("bedrock", plain_body("bedrock"), signed)).status == 200
    seen = plane.apis["bedrock"].last
    assert seen.headers.all("Authorization") == [f"Bearer {OWN}"]
    assert "X-Amz-Date" not in seen.headers


async def test_headers_of_the_settings_are_sent_in_place_of_a_callers(planes: dict[str, Plane]) -> None:
    async with Api("openai") as api:
        given = {"headers": {"api-key": OWN, "OpenAI-Organization": "org"}}
        async with before({"openai": api}, provider_settings=given) as gateway:
            theirs = {"Authorization": f"Bearer {THEIRS}", "openai-organization": "theirs"}
            await ask(gateway, "/llm/openai/v1/responses", {}, theirs)
    seen = api.last
    assert seen.headers.all("api-key") == [OWN]
    assert seen.headers.all("OpenAI-Organization") == ["org"]
    assert THEIRS not in str(seen.headers)


async def test_no_log_holds_a_key(planes: dict[str, Plane]) -> None:
    for plane in planes.values():
        for headers in ({DOOR: CI, "x-api-key": THEIRS}, {DOOR: STRANGER}, {"Authorization": f"Bearer {OPS}"}):
            await plane.ask("anthropic", b"{", headers, path=f"/v1/messages?key={THEIRS}")
        log = plane.gateway.stderr()
        assert "client=ci" in log
        for key in (CI, OPS, STRANGER, THEIRS, OWN):
            assert key not in log

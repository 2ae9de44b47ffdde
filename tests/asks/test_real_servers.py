"""Real servers on the official SDKs ask a modern client through the gateway: by address and as its children.

Specification: 2026-07-28 basic/patterns/mrtr; 2025-11-25 client/{elicitation,sampling,roots}. An `inputResponses` has
no form for an error: a client that has one to tell does not come back, and its call is cancelled when it has expired.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
import pytest_asyncio
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.asks.real_peers import (
    ADMIN,
    COMMANDS,
    GOOD,
    LEGACY,
    METHOD,
    OUTCOMES,
    REFUSED,
    SAY,
    House,
    answers_to,
    asks,
    behind,
    heard,
    is_in,
    kind_of,
)
from tests.asks.talk import EVERYTHING, FOREIGN_STATE, Modern, entries
from tests.gateway_process import running
from tests.raw_front import Answer
from tests.scripted import Json
from tests.stdio.host import launched

every_server = pytest.mark.parametrize("server", LEGACY)
every_kind = pytest.mark.parametrize("kind", METHOD)


def official(url: str, answers: Json) -> Client:
    """The official client of 2026-07-28, which answers with these by kind: a result, or the error that it lacks."""

    def told(kind: str, model: Any) -> Any:
        answer = answers[kind]
        return types.ErrorData(**REFUSED) if answer is None else model.model_validate(answer)

    async def elicit(_context: Any, params: Any) -> Any:
        return told("url" if params.mode == "url" else "form", types.ElicitResult)

    async def sample(_context: Any, params: Any) -> Any:
        kind, model = ("sampling", types.CreateMessageResult)
        if params.tools is not None:
            kind, model = ("sampling with tools", types.CreateMessageResultWithTools)
        return told(kind, model)

    async def roots(_context: Any) -> Any:
        return told("roots", types.ListRootsResult)

    return Client(
        url,
        mode="2026-07-28",
        elicitation_callback=elicit,
        sampling_callback=sample,
        sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
        list_roots_callback=roots,
    )


@pytest.mark.field("F1")
@every_server
@pytest.mark.parametrize("action", OUTCOMES)
async def test_the_server_hears_what_the_official_client_answers(
    at: House, label: str, server: str, action: str
) -> None:
    answers = OUTCOMES[action]
    async with official(at.url(server), answers) as client:
        result = await client.call_tool(**asks(label, *answers))
    told = heard({"result": result.model_dump(mode="json", by_alias=True)})
    assert is_in([{"result": answer} for answer in answers.values()], told), told
    assert (await at.witness.told(ended=label))["how"] == "answered"
    assert len(at.witness.lines(began=label)) == 1


async def asked(at: House, server: str, params: Json) -> tuple[Modern, Answer]:
    client = Modern(at.front(server), params)
    return client, await client.call()


@pytest.mark.field("F7")
@every_server
async def test_of_asks_that_go_out_together_each_may_be_answered_by_itself(at: House, label: str, server: str) -> None:
    """The server has the one answer while the others are asked for again, and never the one that was given."""
    client, answer = await asked(at, server, asks(label, *METHOD, together=True))
    answered: list[str] = []
    while answer.result["resultType"] == "input_required":
        key, entry = next(iter(entries(answer).items()))
        assert not {kind_of(one) for one in entries(answer).values()} & set(answered)
        answered.append(kind_of(entry))
        answer = await client.retry(answer, answers_to({key: entry}))
        await at.witness.told(heard=answered[-1], by=label)
        assert [line["heard"] for line in at.witness.lines(by=label)] == answered
    assert sorted(answered) == sorted(METHOD)
    assert is_in([{"result": GOOD[kind]} for kind in METHOD], heard(answer.final))
    assert len(at.witness.lines(began=label)) == 1


@every_server
@every_kind
async def test_an_answer_that_comes_when_the_server_has_given_up_is_no_harm(
    at: House, label: str, server: str, kind: str
) -> None:
    after = "roots" if kind != "roots" else "form"
    client, answer = await asked(at, server, asks(label, kind, after))
    late = answers_to(entries(answer))
    at.witness.order(label, "give up")
    await at.witness.told(heard=kind, by=label)
    answer = await client.retry(answer, late)
    [(key, entry)] = entries(answer).items()
    assert kind_of(entry) == after
    done = await client.retry(answer, {**late, key: GOOD[after]})
    assert is_in([{"gave": "up"}, {"result": GOOD[after]}], heard(done.final))
    assert (await Modern(at.front(server), SAY).call()).said == "say"


@pytest.mark.field("F7")
@every_server
@every_kind
async def test_an_answer_that_is_given_twice_reaches_the_server_once(
    at: House, label: str, server: str, kind: str
) -> None:
    """The same retry five times at once, and once more when it is done: one goes on, the others are refused."""
    client, answer = await asked(at, server, asks(label, kind))
    found = await asyncio.gather(*(client.answer_all(answer, GOOD[kind], ident=n) for n in range(5)))
    found.append(await client.answer_all(answer, GOOD[kind]))
    refused = [one for one in found if one.status != 200]
    assert [(one.status, one.code) for one in refused] == [(400, FOREIGN_STATE)] * 5
    [done] = [one for one in found if one.status == 200]
    assert is_in([{"result": GOOD[kind]}], heard(done.final))
    await at.witness.told(ended=label, how="answered")
    assert len(at.witness.lines(heard=kind, by=label)) == len(at.witness.lines(began=label)) == 1


@pytest.mark.field("F7")
@every_server
async def test_an_answer_to_an_earlier_round_is_refused_and_the_later_one_goes_on(
    at: House, label: str, server: str
) -> None:
    client, first = await asked(at, server, asks(label, "form", "sampling"))
    second = await client.answer_all(first, GOOD["form"])
    refused = await client.answer_all(first, {"action": "decline"})
    assert (refused.status, refused.code) == (400, FOREIGN_STATE)
    done = await client.answer_all(second, GOOD["sampling"])
    assert is_in([{"result": GOOD["form"]}, {"result": GOOD["sampling"]}], heard(done.final))


# clients that do not come back

IMPATIENT = [server for server in LEGACY if server != "py2-stdio"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def impatient(shared_house: House) -> AsyncIterator[House]:
    """A gateway that waits for its clients for a second."""
    upstreams = behind(shared_house.urls, shared_house.witness)
    some = {name: upstreams[name] for name in IMPATIENT}
    async with running(some, streams={"ask_ttl_s": 1}, **ADMIN) as gateway:
        yield House(gateway, shared_house.witness, shared_house.urls)


async def test_an_answer_that_comes_when_the_ask_has_expired_is_refused_and_the_server_has_been_told(
    impatient: House, label: str
) -> None:
    async def comes_late(server: str) -> None:
        name = f"{label} {server}"
        client, answer = await asked(impatient, server, asks(name, *METHOD, together=True))
        await impatient.witness.told(ended=name, how="cancelled")
        refused = await client.retry(answer, answers_to(entries(answer)))
        assert (refused.status, refused.code) == (400, FOREIGN_STATE)
        assert impatient.witness.lines(by=name) == []
        assert (await Modern(impatient.front(server), SAY).call()).said == "say"

    await asyncio.gather(*map(comes_late, IMPATIENT))
    await impatient.nothing_left()


async def test_an_error_of_the_official_client_fails_its_call_and_the_server_is_told_that_nobody_waits(
    impatient: House, label: str
) -> None:
    async def fails(server: str, kind: str) -> None:
        name = f"{label} {server} {kind}"
        async with official(impatient.url(server), {kind: None}) as client:
            with pytest.raises(MCPError) as failure:
                await client.call_tool(**asks(name, kind))
            assert (failure.value.error.code, failure.value.error.message) == (REFUSED["code"], REFUSED["message"])
            await impatient.witness.told(ended=name, how="cancelled")
            assert impatient.witness.lines(by=name) == []

    by_address = [server for server in IMPATIENT if not server.endswith("stdio")]
    cells = [(server, kind) for server in by_address for kind in METHOD]
    cells += [(server, "form") for server in IMPATIENT if server not in by_address]  # a process each
    await asyncio.gather(*(fails(*cell) for cell in cells))
    await impatient.nothing_left()


# through the gateway's own standard input and output


@pytest.mark.parametrize("server", ["py1", "ts1"])
async def test_a_child_asks_the_modern_host_that_launched_the_gateway(
    shared_house: House, label: str, tmp_path: Path, server: str
) -> None:
    """Every answer, each by itself; then each of them twice, and late."""
    witness, numbers = shared_house.witness, itertools.count(1)
    env = [f"{name}={value}" for name, value in witness.env(label).items()]
    async with launched(tmp_path, "--era", "legacy", "--", "env", *env, *COMMANDS[server], "stdio") as host:

        async def call(params: Json, asked: Json | None = None, answers: Json | None = None) -> Json:
            retry = {} if asked is None else {"inputResponses": answers, "requestState": asked["requestState"]}
            return await host.modern("tools/call", params | retry, next(numbers), capabilities=EVERYTHING)

        for action, answers in OUTCOMES.items():
            params = asks(f"{label} {action}", *answers, together=True)
            answer = await call(params)
            while (asked := answer["result"])["resultType"] == "input_required":
                key, entry = next(iter(asked["inputRequests"].items()))
                retry = (params, asked, {key: answers[kind_of(entry)]})
                answer = await call(*retry)
                assert (await call(*retry))["error"]["code"] == FOREIGN_STATE
            assert is_in([{"result": one} for one in answers.values()], heard(answer))
            assert len(witness.lines(by=f"{label} {action}")) == len(answers)

        params = asks(f"{label} late", "form", "roots")
        asked = (await call(params))["result"]
        witness.order(f"{label} late", "give up")
        await witness.told(heard="form", by=f"{label} late")
        asked = (await call(params, asked, answers_to(asked["inputRequests"])))["result"]
        answer = await call(params, asked, answers_to(asked["inputRequests"]))
        assert is_in([{"gave": "up"}, {"result": GOOD["roots"]}], heard(answer))
        assert await host.end() == []
    await witness.when(lambda: not witness.children(label))

"""Batches, which 2025-03-26 has, where the cache is filled by them."""

import asyncio
from typing import Any

import pytest

from tests.cache.conftest import House
from tests.cache.test_what_is_kept import HOUR, LISTS, NOTE
from tests.http_wire import DEADLINE_S
from tests.raw_front import NO_STREAM, request
from tests.scripted import Call, Err, Json

ECHO: Json = {"name": "echo"}


@pytest.mark.parametrize("reads", ["streams too", "JSON alone"])
async def test_the_lists_of_a_batch_are_fetched_side_by_side(house: House, reads: str) -> None:
    session = await house.front("modern").initialize("2025-03-26")
    assert (await session.request("tools/call", ECHO)).result["content"]  # the gateway looks for the tool in the list
    assert (await house.order("purge")).status == 200
    house.modern.reset()
    meeting = asyncio.Barrier(len(LISTS))

    def met(result: Json) -> Any:
        async def answer(call: Call) -> Json:
            async with asyncio.timeout(DEADLINE_S):
                await meeting.wait()
            return result | HOUR

        return answer

    for method, result in LISTS.items():
        house.modern.on[method] = met(result)
    house.modern.on["resources/read"] = Err(-32002, "no such note")
    batch = [request(method, ident=method) for method in LISTS]
    batch += [request("tools/call", ECHO, ident="call"), request("resources/read", NOTE, ident="read")]
    headers = NO_STREAM if reads == "JSON alone" else {}
    for _ in range(2):
        by_id = {message["id"]: message for message in (await session.post(batch, headers)).finals}
        assert {ident: by_id[ident]["result"] for ident in LISTS} == LISTS
        assert by_id["call"]["result"]["content"]
        assert by_id["read"]["error"]["code"] == -32002
        assert len(by_id) == len(batch)
    assert [len(house.modern.calls(method)) for method in LISTS] == [1] * len(LISTS)

"""Bytes that no proper client sends: each request is answered as its case says, and nothing of it stays behind."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio

from tests.edge.cases import CASES, Case, post
from tests.edge.process import connections, resident_bytes, until
from tests.gateway_process import GatewayProcess, running
from tests.http_wire import DEADLINE_S, Buffered, read_body, read_head
from tests.peers import ModernUpstream

pytestmark = pytest.mark.asyncio(loop_scope="module")

BOUNDS = {
    "limits": {"max_body_bytes": 65_536},
    "connections": {"head_s": 0.5, "body_s": 0.5, "write_stall_s": 0.5},
}

BREAKS = {400, 408, 431, 501}
"""After an answer with one of these to a head or body that is broken nobody knows what comes next."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway() -> AsyncIterator[GatewayProcess]:
    """One gateway for all; that it ends in order, without a traceback in its log, is asserted at its end."""
    async with ModernUpstream() as modern, running({"modern": modern}, **BOUNDS) as process:
        yield process


async def _answers(gateway: GatewayProcess, case: Case) -> tuple[list[int], list[bytes], bool]:
    """Every answer's status and body, and whether the gateway has closed the connection after them."""
    front = gateway.front()
    authority = f"{front.host}:{front.port}".encode()
    reader, writer = await asyncio.open_connection(front.host, front.port)
    stream = Buffered(reader)
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    statuses: list[int] = []
    bodies: list[bytes] = []
    answered = asyncio.Semaphore(1 if case.waits else len(case.pieces))
    sending = asyncio.create_task(_send(writer, case, authority, answered))
    try:
        async with asyncio.timeout(DEADLINE_S):
            while len(statuses) < len(case.answers):
                status, body = await _answer(stream, has_body=not case.pieces[0].startswith(b"HEAD"))
                statuses.append(status)
                bodies.append(body)
                answered.release()
            await sending
            if case.stays:
                writer.write(post().replace(b"{host}", authority))
                status, _ = await _answer(stream)
                assert status == 200, "the connection must still be good"
            elif statuses[-1] in BREAKS:
                return statuses, bodies, await stream.some() == b""
            return statuses, bodies, False
    except (EOFError, ConnectionError):
        return statuses, bodies, True
    finally:
        sending.cancel()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def _answer(stream: Buffered, *, has_body: bool = True) -> tuple[int, bytes]:
    """The next answer that is none of the 1xx."""
    while True:
        start, headers = await read_head(stream)
        status = int(start.split(" ")[1])
        if status != 100:
            length = headers.get("Content-Length")
            if not has_body or length is None:
                return status, b"" if not has_body else await read_body(stream, headers, response=True)
            return status, await stream.exactly(int(length))  # what follows belongs to the next answer


async def _send(writer: asyncio.StreamWriter, case: Case, authority: bytes, answered: asyncio.Semaphore) -> None:
    pieces = case.pieces
    if len(pieces) > 50:  # a request byte by byte
        pieces = tuple(bytes([byte]) for byte in b"".join(pieces).replace(b"{host}", authority))
    with suppress(ConnectionError):  # a gateway that has refused reads no further
        for piece in pieces:
            await answered.acquire() if case.waits else None
            writer.write(piece.replace(b"{host}", authority))
            await writer.drain()
        if case.ends:
            writer.write_eof()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_every_request_is_answered_as_it_must_be(gateway: GatewayProcess, case: Case) -> None:
    statuses, bodies, closed = await _answers(gateway, case)
    assert len(statuses) == len(case.answers), (statuses, bodies, closed)
    for status, right, body in zip(statuses, case.answers, bodies, strict=True):
        assert status in right, (statuses, body)
        if status != 200 and body:
            error = json.loads(body)["error"]
            assert isinstance(error["code"], int)
            assert error["message"]
            assert case.code in (None, error["code"]), error
    if not case.stays and statuses[-1] in BREAKS:
        assert closed, "the connection must be over"


async def test_nothing_stays_behind(gateway: GatewayProcess) -> None:
    """Memory, connections: after hundreds of bad requests at a time, and again, all is back to where it was."""
    quick = [case for case in CASES if frozenset({408}) not in case.answers]
    await _all(gateway, quick)
    await _all(gateway, quick)
    await until(lambda: connections(gateway) == 0)
    before = resident_bytes(gateway)
    for _ in range(3):
        await _all(gateway, quick)
    await until(lambda: connections(gateway) == 0)
    assert resident_bytes(gateway) - before < 16 * 2**20


async def test_there_are_enough_cases() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 300


async def _all(gateway: GatewayProcess, cases: list[Case]) -> None:
    room = asyncio.Semaphore(32)

    async def run(case: Case) -> None:
        async with room:
            await _answers(gateway, case)

    await asyncio.gather(*(run(case) for case in cases))

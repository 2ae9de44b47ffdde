"""A plain hop before several replicas: each connection goes to the next one, and carries one request.

Bytes pass as they are, but for `Connection: close` on both heads. Where a replica takes no connection, the next is
tried, as any balancer does; nothing that a replica may have read is ever sent to another.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

Address = tuple[str, int]


class Hop:
    def __init__(self, urls: Sequence[str]) -> None:
        self.targets: list[Address] = [address(url) for url in urls]
        self.url = ""
        self.taken: list[Address] = []
        """Where each request went, in order."""
        self.rewritten: Callable[[bytes], bytes] = lambda head: head
        """What becomes of a request's head."""
        self._next = 0

    def turn_to(self, index: int) -> None:
        """The next request goes to this replica, and those after it on from there."""
        self._next = index

    async def handle(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        to_replica: asyncio.StreamWriter | None = None
        try:
            head = await client.readuntil(b"\r\n\r\n")
            replica, to_replica = await self._connected()
            to_replica.write(_closing(self.rewritten(head)))
            up = asyncio.create_task(_pump(client, to_replica))
            down = asyncio.create_task(_answer(replica, to_client))
            await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
            if up.done() and not down.done() and not to_client.is_closing():
                # a client that has sent all it has to say may still listen; one that is gone has reset or closed
                down.cancel()
            for task in (up, down):
                task.cancel()
            await asyncio.gather(up, down, return_exceptions=True)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            for writer in (to_client, to_replica):
                if writer is not None:
                    writer.close()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        first = self._next
        self._next += 1
        for number in range(first, first + len(self.targets)):
            target = self.targets[number % len(self.targets)]
            with suppress(OSError):
                connection = await asyncio.open_connection(*target)
                self.taken.append(target)
                return connection
        raise ConnectionRefusedError("no replica takes connections")


def address(url: str) -> Address:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


@asynccontextmanager
async def hopping(urls: Sequence[str]) -> AsyncIterator[Hop]:
    hop = Hop(urls)
    server = await asyncio.start_server(hop.handle, "127.0.0.1", 0, limit=1 << 20)
    hop.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield hop
    finally:
        server.close()


def _closing(head: bytes) -> bytes:
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith((b"connection:", b"keep-alive:"))]
    return b"\r\n".join([first, b"Connection: close", *kept]) + b"\r\n\r\n"


async def _answer(replica: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
    to_client.write(_closing(await replica.readuntil(b"\r\n\r\n")))
    await _pump(replica, to_client)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()

"""What a supervisor and one of its workers tell each other, on a pair of sockets that nobody else has.

Messages are pickled: both ends are this program in one version, and a worker gets its settings as the very values that
the supervisor has checked. The end of the line tells either side that the other has gone, however it went.
"""

import asyncio
import pickle
import socket
from dataclasses import dataclass

from prometheus_client.core import Metric

from gateway.cache.cache import Done, Order
from policies.explanation import Described
from policies.mcp import Json
from policies.settings import Settings
from policies.status import Seen

_LENGTH_BYTES = 4

Families = tuple[Metric, ...]
"""What a process has counted."""


@dataclass(frozen=True, slots=True)
class Serve:
    """To a worker: first of all, and again whenever the configuration has changed."""

    settings: Settings


@dataclass(frozen=True, slots=True)
class Drain:
    """To a worker: stop listening, let calls end."""


@dataclass(frozen=True, slots=True)
class End:
    """To a worker: end at once."""


@dataclass(frozen=True, slots=True)
class Count:
    """To a worker: say what was counted; it answers `Counted`."""


@dataclass(frozen=True, slots=True)
class Look:
    """To a worker: say what you see; it answers `Looked`."""


@dataclass(frozen=True, slots=True)
class Obey:
    """To a worker: do this to the cache, for an upstream or for all; it answers `Obeyed`."""

    number: int
    order: Order
    upstream: str | None


@dataclass(frozen=True, slots=True)
class Obeyed:
    """Of a worker: what came of the order of that number."""

    number: int
    done: Done


@dataclass(frozen=True, slots=True)
class Explain:
    """To a worker: say what would happen to a request; it answers `Explained`."""

    number: int
    described: Described


@dataclass(frozen=True, slots=True)
class Explained:
    """Of a worker: the explanation of that number."""

    number: int
    told: Json


@dataclass(frozen=True, slots=True)
class Ready:
    """Of a worker: it accepts connections."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """Of a worker: it takes no more connections, and lets its calls end."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Of a worker: all that it has counted so far. Its last message as well."""

    families: Families


@dataclass(frozen=True, slots=True)
class Looked:
    """Of a worker: what it sees."""

    seen: Seen


Message = Serve | Drain | End | Count | Look | Obey | Obeyed | Explain | Explained | Ready | Leaving | Counted | Looked


class Line:
    """One end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, end: socket.socket) -> "Line":
        return cls(*await asyncio.open_unix_connection(sock=end))

    def send(self, message: Message) -> None:
        """Lost where the other side has gone, which `receive` tells."""
        if not self._writer.is_closing():
            written = pickle.dumps(message)
            self._writer.write(len(written).to_bytes(_LENGTH_BYTES) + written)

    async def receive(self) -> Message | None:
        """The next message; None where the other side has gone. Not cancel-safe."""
        try:
            length = int.from_bytes(await self._reader.readexactly(_LENGTH_BYTES))
            written = await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        message: Message = pickle.loads(written)  # noqa: S301 - of this program's own process, which nobody else reaches
        return message

    async def close(self) -> None:
        """Sends what is still to be sent, and ends the line."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            return

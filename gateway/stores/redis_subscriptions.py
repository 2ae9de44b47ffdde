"""Subscriptions of one process: all over one connection, which is made anew whenever it is lost.

A connection that is silent is asked for a sign of life, since one that a firewall forgot would be silent for ever.
After a loss each reader gets a gap, and only once it is subscribed again: what it looks up then, it can't miss.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from redis.asyncio.connection import AbstractConnection

from gateway.stores.reader import Reader
from gateway.stores.redis_errors import FAILURES, outage

log = logging.getLogger(__name__)

SILENCE_S: Final = 5.0
"""After this long without a word it is asked for one, and after as long again the connection is taken for lost."""
PAUSES_S: Final = (0.0, 0.1, 0.5, 1.0)
"""Before the next try to connect; the last one from then on."""


class _Channel:
    def __init__(self) -> None:
        self.readers: set[Reader] = set()
        self.missed: set[Reader] = set()
        """Those that get a gap as soon as it stands."""
        self.stands = asyncio.Event()


class Subscriptions:
    """`connect` makes a connection, and raises one of `FAILURES`."""

    def __init__(self, connect: Callable[[], Awaitable[AbstractConnection]], timeout_s: float) -> None:
        self._connect = connect
        self._timeout_s = timeout_s
        self._channels: dict[bytes, _Channel] = {}
        self._standing: set[bytes] = set()
        """What the connection is subscribed to, as the server has confirmed."""
        self._changed = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def subscribe(self, name: bytes) -> AsyncIterator[Reader]:
        reader = Reader()
        channel = self._channels.setdefault(name, _Channel())
        channel.readers.add(reader)
        if name in self._standing:  # its last reader has only just left
            channel.stands.set()
        self._changed.set()
        if self._running is None:
            self._running = asyncio.create_task(self._run(), name="store subscriptions")
        try:
            try:
                async with asyncio.timeout(self._timeout_s):
                    await channel.stands.wait()
            except TimeoutError:
                channel.missed.add(reader)
            yield reader
        finally:
            channel.readers.discard(reader)
            channel.missed.discard(reader)
            if not channel.readers and self._channels.get(name) is channel:
                del self._channels[name]
                self._changed.set()

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        for channel in self._channels.values():
            for reader in channel.readers:
                reader.end()

    async def _run(self) -> None:
        failures = 0
        while True:
            await asyncio.sleep(PAUSES_S[min(failures, len(PAUSES_S) - 1)])
            failures += 1
            try:
                connection = await self._connect()
            except FAILURES as error:
                log.debug("store: subscriptions: %s", outage(error))
                continue
            try:
                async with asyncio.TaskGroup() as tasks:
                    unconfirmed: Counter[bytes] = Counter()
                    tasks.create_task(self._speak(connection, unconfirmed), name="store subscriptions: speak")
                    tasks.create_task(self._hear(connection, unconfirmed), name="store subscriptions: hear")
            except* FAILURES as lost:
                why = lost.exceptions[0]
                log.info("store: subscriptions: %s", outage(why))
            finally:
                if self._standing:
                    failures = 0
                self._lost()
                with suppress(*FAILURES):
                    await connection.disconnect(nowait=True)

    async def _speak(self, connection: AbstractConnection, unconfirmed: Counter[bytes]) -> None:
        """Subscribes to what has readers, unsubscribes from what has none."""
        asked: set[bytes] = set()
        while True:
            self._changed.clear()
            wanted = set(self._channels)
            new, old = wanted - asked, asked - wanted
            asked = wanted
            self._standing -= old
            unconfirmed.update(new)
            for verb, names in (("SUBSCRIBE", new), ("UNSUBSCRIBE", old)):
                if names:
                    await connection.send_command(verb, *names, check_health=False)
            await self._changed.wait()

    async def _hear(self, connection: AbstractConnection, unconfirmed: Counter[bytes]) -> None:
        asked = False
        while True:
            said = await connection.read_response(timeout=SILENCE_S, disconnect_on_error=False)
            if said is None:
                if asked:
                    raise TimeoutError
                await connection.send_command("PING", check_health=False)
            asked = said is None
            match said:
                case [b"message", bytes(name), bytes(value)] if name in self._channels:
                    for reader in self._channels[name].readers:
                        reader.put(value)
                case [b"subscribe", bytes(name), _]:
                    unconfirmed[name] -= 1
                    if not unconfirmed[name]:  # else this one was given up since, and asked for again
                        del unconfirmed[name]
                        self._stands(name)
                case _:
                    pass

    def _stands(self, name: bytes) -> None:
        channel = self._channels.get(name)
        if channel is None:
            return
        self._standing.add(name)
        channel.stands.set()
        for reader in channel.missed:
            reader.gap()
        channel.missed.clear()

    def _lost(self) -> None:
        for name in self._standing & set(self._channels):
            self._channels[name].missed |= self._channels[name].readers
            self._channels[name].stands.clear()
        self._standing.clear()

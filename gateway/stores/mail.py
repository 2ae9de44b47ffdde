"""Messages between the replicas that share a store: a question to one and its answer, a word to one, a word to all.

Each replica has a name that stands at the front of the ids it makes, an inbox (a log in the store), and a lease that
tells the others that it lives. Letters are sealed: they carry what clients said, and nobody but a replica may write
one. Where the store is not shared there is nobody else, and everything is answered in process.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, Literal

import msgspec

from gateway.background import Background
from gateway.stores.base import Store, StoreUnavailable
from policies import sealing
from policies.errors import Fault, GatewayFault
from policies.mcp import Json
from policies.sealing import NONCE_BYTES, KeyRing

log = logging.getLogger(__name__)

NAME_CHARS: Final = 8
"""A replica's name: so many hexadecimal digits."""

BEAT_S: Final = 1.0
LEASE_S: Final = 3.0
"""Three beats: one that is late, or lost with a store that was flushed, is no death."""

PATIENCE_S: Final = 3.0
"""How much longer than it was allowed to take an answer is waited for."""

_READ_S = 10.0
_PAUSE_S = 0.25
_INBOX = "inbox:"
_LEASE = "replica:"
_ALL = "replicas"

INBOX_BOUND: Final = 1024
PIECE_BYTES: Final = 64 * 1024
"""With the bound of an inbox, what one replica's letters may take in the store: 64 MiB, and a third for the sealing."""

MAX_PARTIAL: Final = 256
"""Letters whose pieces are yet to come: more, and the oldest has lost one."""

Answerer = Callable[[bytes], Awaitable[bytes]]
Hearer = Callable[[bytes], object]


class ReplicaGone(GatewayFault):
    """The replica that held something has ended, and with it what it held."""

    http = 502

    def __init__(self) -> None:
        super().__init__("the replica of the gateway that held this has ended; start anew")


class Unanswered(GatewayFault):
    """It lives, and did not answer: it is held up, or the question or its answer was lost with the store's memory."""

    http = 504

    def __init__(self) -> None:
        super().__init__("another replica of the gateway did not answer in time")


class _Letter(msgspec.Struct, array_like=True):
    """`left`: how many pieces of the same letter follow. `topic` is empty in answers."""

    kind: Literal["ask", "answer", "refusal", "tell"]
    id: str
    sender: str
    topic: str
    body: bytes
    left: int = 0


_letters = msgspec.msgpack.Decoder(_Letter)


class Mail:
    """`ring` gives the sealing keys in service. Topics are registered before `start`."""

    def __init__(self, store: Store, ring: Callable[[], KeyRing]) -> None:
        self.replica = secrets.token_hex(NAME_CHARS // 2)
        self._store = store
        self._ring = ring
        self._answerers: dict[str, Answerer] = {}
        self._hearers: dict[str, Hearer] = {}
        self._on_missed: list[Callable[[], None]] = []
        self._waiting: dict[str, asyncio.Future[bytes]] = {}
        self._partial: dict[tuple[str, str], list[bytes]] = {}
        self._alive: dict[str, float] = {}
        self._cursor = ""
        self._background = Background()

    # what parts of this process do

    def answer(self, topic: str, answerer: Answerer) -> None:
        """Who answers questions of this topic here. A `Fault` that it raises is raised where was asked."""
        self._answerers[topic] = answerer

    def hear(self, topic: str, hearer: Hearer) -> None:
        """Who hears what is told to this replica, or to all, under this topic."""
        self._hearers[topic] = hearer

    def on_missed(self, work: Callable[[], None]) -> None:
        """Called when words to all may have been missed."""
        self._on_missed.append(work)

    def new_id(self) -> str:
        """An id that no other replica makes, and that says where it was made."""
        return self.replica + secrets.token_hex(8)

    def elsewhere(self, made: str) -> str | None:
        """The replica that made an id, where that is another one and can be reached."""
        owner = made[:NAME_CHARS]
        return owner if self._store.shared and owner != self.replica and len(owner) == NAME_CHARS else None

    def made(self, made: str) -> bool:
        """Whether an id was made here."""
        return made.startswith(self.replica)

    async def start(self) -> None:
        """From now on others can reach this replica. A store that is down is waited for in the background."""
        if not self._store.shared:
            return
        for work in (self._beat, self._receive, self._listen):
            self._background.start(self._always(work))

    async def ask(self, replica: str, topic: str, body: bytes, wait_s: float) -> bytes:
        """The answer of another replica, which may take `wait_s`. Raises `ReplicaGone` where there is none any more,
        `StoreUnavailable`, `Unanswered` after `PATIENCE_S` more, or what the answerer raised. Cancel-safe:
        the question may have been heard."""
        if not await self._lives_still(replica):
            raise ReplicaGone
        ident = secrets.token_hex(8)
        future = self._waiting[ident] = asyncio.get_running_loop().create_future()
        try:
            await self._send(replica, "ask", ident, topic, body)
            return await self._answered(replica, future, wait_s)
        finally:
            del self._waiting[ident]

    async def tell(self, replica: str, topic: str, body: bytes) -> None:
        """A word to another replica, which may be gone. Raises `StoreUnavailable`."""
        await self._send(replica, "tell", secrets.token_hex(8), topic, body)

    def tell_soon(self, replica: str, topic: str, body: bytes) -> None:
        """`tell` in the background, for what need not arrive."""

        async def told() -> None:
            with suppress(StoreUnavailable):
                await self.tell(replica, topic, body)

        self._background.start(told())

    async def tell_all(self, topic: str, body: bytes) -> None:
        """A word to all others. Raises `StoreUnavailable`."""
        if self._store.shared:
            letter = _Letter("tell", "", self.replica, topic, body)
            await self._store.publish(_ALL, self._sealed(_ALL, letter))

    async def close(self) -> None:
        """The others need not wait for this replica any more."""
        await self._background.close()
        if self._store.shared:
            with suppress(StoreUnavailable):  # they expire
                await self._store.delete(_LEASE + self.replica)
                await self._store.delete(_INBOX + self.replica)

    # out

    async def _send(self, replica: str, kind: Any, ident: str, topic: str, body: bytes) -> None:
        pieces = [body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES)] or [b""]
        for left, piece in zip(reversed(range(len(pieces))), pieces, strict=True):
            letter = _Letter(kind, ident, self.replica, topic, piece, left)
            raw = self._sealed(replica, letter)
            await self._store.append(_INBOX + replica, raw, 60 + LEASE_S, INBOX_BOUND)

    def _sealed(self, to: str, letter: _Letter) -> bytes:
        raw, nonce = msgspec.msgpack.encode(letter), secrets.token_bytes(NONCE_BYTES)
        return sealing.seal(self._ring(), "mail", to, raw, nonce).encode()

    async def _answered(self, replica: str, future: "asyncio.Future[bytes]", wait_s: float) -> bytes:
        loop = asyncio.get_running_loop()
        until, missed = loop.time() + wait_s + PATIENCE_S, 0
        while True:
            done, _ = await asyncio.wait({future}, timeout=min(BEAT_S, max(0.0, until - loop.time())))
            if done:
                return future.result()
            if loop.time() >= until:
                raise Unanswered
            missed = 0 if await self.lives(replica) else missed + 1
            if missed > 1:  # a store that was flushed has its leases again within a beat
                raise ReplicaGone

    async def _lives_still(self, replica: str) -> bool:
        """Whether it lives, looked at again after a beat: a store that was flushed has all leases again by then."""
        if await self.lives(replica):
            return True
        await asyncio.sleep(BEAT_S)
        return await self.lives(replica)

    async def lives(self, replica: str) -> bool:
        """Whether the lease of a replica is there. Looked up twice a beat at most, however many ask. Raises
        `StoreUnavailable`."""
        now = asyncio.get_running_loop().time()
        if self._alive.get(replica, 0.0) > now:
            return True
        if await self._store.get(_LEASE + replica) is None:
            self._alive.pop(replica, None)
            return False
        self._alive = {name: until for name, until in self._alive.items() if until > now}
        self._alive[replica] = now + BEAT_S / 2
        return True

    # in

    async def _always(self, work: Callable[[], Awaitable[None]]) -> None:
        """Does it for as long as this replica lives: one that no longer hears would be alive to the others."""
        while True:
            try:
                await work()
            except StoreUnavailable:
                await asyncio.sleep(_PAUSE_S)
            except Exception:  # a task root
                log.exception("%s failed", work.__name__)
                await asyncio.sleep(_PAUSE_S)

    async def _beat(self) -> None:
        await self._store.set(_LEASE + self.replica, b"1", LEASE_S)
        await asyncio.sleep(BEAT_S)

    async def _receive(self) -> None:
        letters = await self._store.read(_INBOX + self.replica, self._cursor, _READ_S)
        for cursor, raw in letters:
            self._cursor = cursor
            self._on_letter(self.replica, raw)

    async def _listen(self) -> None:
        async with self._store.subscribe(_ALL) as words:
            async for word in words:
                if word is None:
                    for work in self._on_missed:
                        work()
                else:
                    self._on_letter(_ALL, word)
        await asyncio.sleep(_PAUSE_S)

    def _on_letter(self, to: str, raw: bytes) -> None:
        """Takes one letter. What is in it comes from a replica, which may be of another version: whatever is wrong with
        it is that letter's alone."""
        try:
            self._take(to, raw)
        except Fault as fault:  # it has other routes, say
            log.info("a word of another replica is not for this one: %s", fault.message)
        except Exception:  # the next letter is another's
            log.exception("a letter of another replica could not be read")

    def _take(self, to: str, raw: bytes) -> None:
        plain = sealing.unseal(self._ring(), "mail", to, raw.decode(errors="replace"))
        if plain is None:
            log.warning("a letter to this replica cannot be opened: do all replicas have the same keys?")
            return
        letter = _letters.decode(plain)
        body = self._whole(letter)
        if body is None or letter.sender == self.replica:
            return
        match letter.kind:
            case "ask":
                self._background.start(self._answer(letter, body))
            case "tell":
                hearer = self._hearers.get(letter.topic)
                if hearer is not None:
                    hearer(body)
            case _:
                future = self._waiting.get(letter.id)
                if future is not None and not future.done():
                    if letter.kind == "answer":
                        future.set_result(body)
                    else:
                        future.set_exception(_fault(msgspec.json.decode(body)))

    def _whole(self, letter: _Letter) -> bytes | None:
        """The whole letter's body, once its last piece is there."""
        key = (letter.sender, letter.id)
        before = self._partial.pop(key, [])
        if letter.left == 0:
            return b"".join([*before, letter.body])
        self._partial[key] = [*before, letter.body]
        if len(self._partial) > MAX_PARTIAL:
            del self._partial[next(iter(self._partial))]
        return None

    async def _answer(self, letter: _Letter, body: bytes) -> None:
        try:
            kind, said = "answer", await self._outcome(letter.topic, body)
        except Fault as fault:
            kind, said = "refusal", msgspec.json.encode(_content(fault))
        try:
            await self._send(letter.sender, kind, letter.id, "", said)
        except StoreUnavailable:
            log.debug("an answer to another replica is lost")

    async def _outcome(self, topic: str, body: bytes) -> bytes:
        answerer = self._answerers.get(topic)
        if answerer is None:
            raise GatewayFault("the replicas of the gateway are of versions that do not understand each other")
        try:
            return await answerer(body)
        except Fault:
            raise
        except Exception as error:  # a task root
            number = secrets.token_hex(4)
            log.exception("a question of another replica failed, id %s", number)
            raise GatewayFault(f"internal error {number}", http=500) from error


def _content(fault: Fault) -> Json:
    return {"message": fault.message, "code": fault.code, "http": fault.http, "headers": fault.headers}


def _fault(content: Json) -> Fault:
    fault = Fault(content["message"], code=content["code"], http=content["http"])
    fault.headers = tuple((name, value) for name, value in content["headers"])
    return fault

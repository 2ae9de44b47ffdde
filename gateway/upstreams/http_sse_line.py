"""One event stream of an HTTP+SSE upstream, and the endpoint that it names, as one line of messages both ways.

Specification: 2024-11-05 basic/transports (HTTP with SSE). The first event names the address that messages are POSTed
to, which must be of the stream's own origin; everything that the server says comes on the stream. Nothing is sent
twice, and a stream that ends is not resumed: this revision has no way to.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping

from gateway.upstreams.patience import Patience
from gateway.upstreams.wire import EVENTS, Reception, Wire
from policies import sse
from policies.errors import Fault, UpstreamFault

log = logging.getLogger(__name__)

MAX_POSTS = 32
"""Requests of one session that are being POSTed at a time: servers answer a POST at once, and one that holds it until
its call is over would otherwise take a connection for each call."""

MAX_ENDPOINT = 8192
"""Characters of an endpoint, which goes out with each POST: servers and proxies commonly take 8 KiB for a head."""

_DRAIN_S = 1.0
"""How long the end of an acceptance's body, mostly the word "Accepted", is waited for to keep its connection."""


class HttpSseLine:
    """`headers` are the caller's, as they last came; `heard_s` is when anything last came, by the loop's clock."""

    def __init__(self, wire: Wire, headers: Mapping[str, str], endpoint: str = "") -> None:
        self.name = wire.name
        self.ended = False
        self.why = ""
        self.is_closing = False
        self.started_s = time.monotonic()
        self.heard_s = asyncio.get_running_loop().time()
        self.headers = headers
        self._wire = wire
        self._patience = Patience(long_lived=True, needed=True, endpoint=endpoint)
        self._endpoint: asyncio.Future[Wire] = asyncio.get_running_loop().create_future()
        self._slots = asyncio.Semaphore(MAX_POSTS)
        self._tasks: set[asyncio.Task[int]] = set()
        self._reading: asyncio.Task[None] | None = None

    def attend(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Opens the stream. To be called once."""
        self._reading = asyncio.create_task(self._read(on_line, on_end), name=f"event stream of {self.name}")

    async def opened(self) -> None:
        """Waits until the stream has named its endpoint. Raises the `Fault` that it was not opened for."""
        await asyncio.shield(self._endpoint)

    async def post(self, raw: bytes, headers: Mapping[str, str]) -> int:
        """POSTs a message; the status, which is 2xx or 404. Raises `UpstreamFault` for any other."""
        endpoint = await asyncio.shield(self._endpoint)
        self.headers = headers
        async with endpoint.request("POST", headers, raw) as reception:
            if reception.status != 404 and not 200 <= reception.status < 300:
                fault = reception.refusal()
                fault.contradiction = False  # it speaks this transport: a stream is open
                raise fault
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_S):
                    while await reception.chunk():
                        pass
            return reception.status

    def begin(self, raw: bytes, headers: Mapping[str, str]) -> "asyncio.Task[int]":
        """`post` of a request, whose answer may come before its acceptance."""

        async def posted() -> int:
            async with self._slots:
                return await self.post(raw, headers)

        return self._spawn(asyncio.create_task(posted()))

    async def write(self, line: bytes) -> None:
        """`post` with the headers that came last."""
        if await self.post(line, self.headers) == 404:
            raise UpstreamFault(f"upstream {self.name} no longer knows its session", executed=False)

    def write_now(self, line: bytes) -> None:
        if not self.ended and not self.is_closing:
            self._spawn(asyncio.create_task(self.post(line, self.headers)))

    async def close(self) -> None:
        """Ends the stream, and with it the session."""
        self.is_closing = True
        for task in (self._reading, *self._tasks):  # the stream first: whoever waits is told
            if task is not None:
                task.cancel()
                await asyncio.wait({task})

    async def _read(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        fault: Fault = UpstreamFault(f"upstream {self.name}: its event stream has ended")
        try:
            head = {name: value for name, value in self.headers.items() if name != "Content-Type"} | EVENTS
            async with self._wire.request("GET", head, None, self._patience) as reception:
                if reception.status in (401, 403) or reception.status >= 500:
                    raise reception.refusal()
                if reception.status != 200 or reception.kind != "sse":
                    why = f"upstream {self.name} opens no event stream: it does not speak HTTP+SSE"
                    raise UpstreamFault(why, contradiction=True)
                await self._events(reception, on_line)
        except Fault as broken:
            fault = broken
        finally:
            self.ended = True
            self.why = self.why or "its event stream has ended, and with it the session"
            if not self._endpoint.done():
                if isinstance(fault, UpstreamFault):
                    fault.executed = False  # nothing was POSTed
                self._endpoint.set_exception(fault)
            self._endpoint.exception()
            on_end()

    async def _events(self, reception: Reception, on_line: Callable[[bytes], None]) -> None:
        decoder = sse.Decoder(self._wire.limits.max_event_bytes)
        while chunk := await reception.chunk():
            self.heard_s = asyncio.get_running_loop().time()
            try:
                events = decoder.feed(chunk)
            except sse.EventTooLarge as error:
                limit = self._wire.limits.max_event_bytes
                self.why = f"it sent an event of more than {limit} bytes, and its session has ended with that"
                raise reception.too_large() from error
            for event in events:
                if event.event == "endpoint" and not self._endpoint.done():
                    self._endpoint.set_result(self._named(event.data or b"", reception.endpoint))
                elif event.data and event.event == "message":
                    on_line(event.data)

    def _named(self, reference: bytes, endpoint: str) -> Wire:
        text = reference.decode(errors="replace").strip()
        if len(text) > MAX_ENDPOINT:
            raise UpstreamFault(f"upstream {self.name} names an endpoint of more than {MAX_ENDPOINT} characters")
        found = self._wire.at(text, endpoint)
        if found is None:
            why = "names an endpoint of another origin than its url, or with a user or password; messages are not sent "
            why += "elsewhere: correct the url"
            raise UpstreamFault(f"upstream {self.name} {why}")
        return found

    def _spawn(self, task: "asyncio.Task[int]") -> "asyncio.Task[int]":
        self._tasks.add(task)
        task.add_done_callback(self._posted)
        return task

    def _posted(self, task: "asyncio.Task[int]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and isinstance(fault := task.exception(), Fault):
            log.debug("a message was not taken by upstream %s: %s", self.name, fault.message)

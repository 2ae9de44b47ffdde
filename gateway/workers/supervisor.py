"""Several workers as one gateway: starts them, starts again what dies, reloads and drains all, adds up what they count.

It serves no MCP traffic itself. For each worker it holds a socket with SO_REUSEPORT on the one address, bound here and
listened on there: connections that wait while a worker goes and the next comes stay in that socket's queue, which Linux
resets only with the last descriptor of it. Workers are fresh processes, which end when their supervisor does.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from gateway.app import CannotListen, CannotStart, base_url, check_change, listen
from gateway.cache.cache import Done, Order
from gateway.front.http import HttpServer
from gateway.front.port import Listener, bind
from gateway.front.status import READY, Status
from gateway.front.status_page import StatusPage
from gateway.logs import configure
from gateway.metrics import STORE_UP, Reloads, own_version, render
from gateway.workers.counts import Counts
from gateway.workers.messages import Drain, End, Serve
from gateway.workers.worker import Worker
from policies.explanation import Described
from policies.mcp import Json
from policies.restarts import Restarts
from policies.settings import Listen, Settings
from policies.status import Process, Seen, added

log = logging.getLogger(__name__)

LEAVE_S: Final = 10.0
"""How long a worker may take above `grace_s` to let go of everything; then it is killed."""

END_S: Final = 5.0
"""How long it may take where nothing is waited for."""

_CUT_S: Final = 0.01


class Supervisor:
    """`count` workers. `start` and `stop` once each, `apply` in between as often as the configuration changes."""

    def __init__(self, settings: Settings, count: int) -> None:
        self.reloads = Reloads()
        self._settings = settings
        self._count = count
        self._state = "starting"
        self._workers: set[Worker] = set()
        self._restarts = 0
        self._counts = Counts()
        self._reserved: socket.socket | None = None
        self._keeping: list[asyncio.Task[None]] = []
        self._admin: Listener | None = None
        self._began_s = time.time()
        self._page = StatusPage(lambda: self._settings, self._look)
        status = Status(lambda: self._settings, self._health, self._rendered, self._order, self._page, self._explain)
        self._status = HttpServer(status.handle, settings.connections, settings.limits.max_head_bytes)

    async def start(self) -> tuple[str, str | None]:
        """Until every worker accepts connections. Returns the public base URL, and that of the admin listener, if there
        is one. Raises `CannotListen`, or `CannotStart` where a worker ends before it is ready."""
        settings = self._settings
        self._reserved = _reserve(settings.listen)
        admin = None
        if settings.admin is not None:
            self._admin = Listener(settings.admin.host, settings.admin.port, self._status)
            await listen(self._admin, settings.admin)
            admin = base_url(settings.admin, self._admin.port)
        first = [asyncio.get_running_loop().create_future() for _ in range(self._count)]
        self._keeping = [
            asyncio.create_task(self._keep(number, up), name=f"keep worker {number}")
            for number, up in enumerate(first, 1)
        ]
        for up in asyncio.as_completed(first):
            if not await up:
                raise CannotStart("a worker ended before it was ready; what it logged says why")
        self._state = READY
        return base_url(settings.listen, self._port, tls=settings.tls is not None), admin

    async def apply(self, settings: Settings) -> None:
        """Puts another configuration into service in all workers, now and as they come.

        Raises `ConfigError` where it changes what only a restart can."""
        check_change(self._settings, settings)
        self._settings = settings
        for worker in self._workers:
            worker.say(Serve(settings))
        configure(settings.log.level, settings.log.format)

    async def drain(self) -> None:
        """As `Gateway.drain`, for all workers."""
        self._state = "draining"
        await self._give_up()
        for worker in self._workers:
            worker.say(Drain())
        await self._all_ended(self._settings.grace_s + LEAVE_S)

    async def stop(self) -> None:
        """Ends what is left and lets go of everything."""
        self._state = "draining"
        await self._give_up()
        for worker in self._workers:
            worker.say(End())
        if not await self._all_ended(END_S):
            for worker in self._workers:
                worker.kill()
            await self._all_ended(END_S)
        if self._admin is not None:
            self._admin.stop()
            self._admin.silence()
        await self._page.close()
        await self._status.shutdown(_CUT_S)
        if self._reserved is not None:
            self._reserved.close()

    async def _keep(self, number: int, first: asyncio.Future[bool]) -> None:
        """One worker after the other, until cancelled. `first`: whether the first one has come up; if not, no more."""
        restarts = Restarts()
        listener: socket.socket | None = None
        try:
            while True:
                listener = listener or self._bind()
                worker = Worker(number, listener, lambda: self._settings, self._bury)
                self._workers.add(worker)
                up = await worker.up()
                if not first.done():
                    first.set_result(up)
                    if not up:
                        log.error("worker %d has ended: %s", number, worker.exit)
                        return
                await worker.done()
                self._restarts += 1
                if worker.leaves:
                    log.info("worker %d leaves; another takes its place", number)
                    continue
                restarts = restarts.after_end(worker.lived_s, time.monotonic())
                wait_s = restarts.wait_s(time.monotonic())
                log.error("worker %d has ended: %s; another starts in %.0f s", number, worker.exit, wait_s)
                if wait_s > 0:  # what waits in its queue is refused rather than kept waiting; the others get the rest
                    listener.close()
                    listener = None
                    await asyncio.sleep(wait_s)
        finally:
            if listener is not None:
                listener.close()

    async def _give_up(self) -> None:
        """No more workers."""
        for keeping in self._keeping:
            keeping.cancel()
        if self._keeping:
            await asyncio.wait(self._keeping)
        self._keeping = []

    async def _all_ended(self, within_s: float) -> bool:
        ends = [asyncio.create_task(worker.ended.wait()) for worker in self._workers]
        try:
            return not ends or not (await asyncio.wait(ends, timeout=within_s))[1]
        finally:
            for end in ends:
                end.cancel()

    def _bury(self, worker: Worker) -> None:
        self._workers.discard(worker)
        self._counts.bury(worker.counted)

    @property
    def _port(self) -> int:
        assert self._reserved is not None
        port: int = self._reserved.getsockname()[1]
        return port

    def _bind(self) -> socket.socket:
        return bind(self._settings.listen.host, self._port, shared=True)

    # the admin listener

    def _serving(self) -> int:
        return sum(worker.is_ready and not worker.leaves for worker in self._workers)

    async def _health(self) -> dict[str, str]:
        """One worker that accepts connections is enough; the store is up where every worker finds it so."""
        await self._ask()
        said = {"status": self._state if self._state != READY or self._serving() else "no worker is ready"}
        for family in self._families():
            if family.name == STORE_UP:
                said["store"] = "up" if all(sample.value for sample in family.samples) else "down"
        return said

    async def _look(self) -> tuple[Process, Seen]:
        """What the workers see together, of those that live."""
        ready = [worker for worker in self._workers if worker.is_ready]
        answered = sum(await asyncio.gather(*(worker.look() for worker in ready)))
        status = self._state if self._state != READY or self._serving() else "no worker is ready"
        process = Process(status, own_version(), self._began_s, self._count, answered)
        return process, added([worker.seen for worker in ready])

    async def _rendered(self, accept: str) -> tuple[bytes, str]:
        await self._ask()
        return render(self._families(), accept)

    async def _order(self, order: Order, upstream: str | None) -> Done | None:
        """Done by one worker: the others hear of it through the store."""
        first = self._first()
        return await first.obey(order, upstream) if first is not None else None

    async def _explain(self, described: Described) -> Json | None:
        """Told by one worker, from what it remembers."""
        first = self._first()
        return await first.explain(described) if first is not None else None

    def _first(self) -> Worker | None:
        able = [worker for worker in self._workers if worker.is_ready and not worker.leaves]
        return min(able, key=lambda worker: worker.number, default=None)

    async def _ask(self) -> None:
        await asyncio.gather(*(worker.count() for worker in self._workers if worker.is_ready))

    def _families(self) -> Iterator[Metric]:
        living = [("" if worker.leaves else str(worker.number), worker.counted) for worker in self._workers]
        yield from self._counts.combined(living)
        yield GaugeMetricFamily("mcp_front_door_workers", "Workers that accept connections.", self._serving())
        restarts = "Workers that were started in the place of one that had ended."
        yield CounterMetricFamily("mcp_front_door_worker_restarts", restarts, self._restarts)
        yield from self.reloads.collect()


def _reserve(at: Listen) -> socket.socket:
    """A socket that is bound to the address and never listens: it keeps the port, whatever becomes of the workers.

    Raises `CannotListen`, also where another program of the same user would share the address."""
    try:
        with bind(at.host, at.port):
            pass
        return bind(at.host, at.port, shared=True)
    except OSError as error:
        raise CannotListen(f"cannot listen on {at}: {error.strerror or error}") from error

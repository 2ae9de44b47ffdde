"""One worker: a gateway in a process of its own, which a supervisor started, and which ends with it.

`python -m gateway.workers LINE LISTENER`, both the numbers of inherited descriptors. It reads no configuration file:
what it serves is told to it on its line. SIGTERM drains this worker alone, and its supervisor starts another.
"""

import asyncio
import logging
import socket
import sys

from gateway import exit_codes
from gateway.app import LOOP, CannotListen, Gateway
from gateway.logs import configure, stray
from gateway.signals import Signals
from gateway.tls_files import TlsError
from gateway.workers.messages import (
    Count,
    Counted,
    Drain,
    End,
    Explain,
    Explained,
    Leaving,
    Line,
    Look,
    Looked,
    Obey,
    Obeyed,
    Ready,
    Serve,
)

log = logging.getLogger(__name__)


def main() -> int:
    """The exit code."""
    end, listener = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    for inherited in (end, listener):
        inherited.set_inheritable(False)  # not by the commands of upstreams
    with asyncio.Runner(loop_factory=LOOP) as runner:
        runner.get_loop().set_exception_handler(stray)
        return runner.run(_run(end, listener))


async def _run(end: socket.socket, listener: socket.socket) -> int:
    stopping = Signals()
    line = await Line.over(end)
    told = await line.receive()
    if not isinstance(told, Serve):
        return exit_codes.OK  # its supervisor has gone
    configure(told.settings.log.level, told.settings.log.format)
    gateway = Gateway(told.settings)
    hearing: asyncio.Task[None] | None = None
    try:
        try:
            await gateway.start(listener)
        except (CannotListen, TlsError) as error:
            log.error("this worker can't start: %s", error)
            return exit_codes.FAILED
        line.send(Ready())
        hearing = asyncio.create_task(_hear(line, gateway, stopping), name="supervisor")
        hearing.add_done_callback(lambda _: stopping.drain())
        await stopping.first()
        line.send(Leaving())
        await stopping.unless_second(gateway.drain())
    finally:
        await gateway.stop()
        line.send(Counted(gateway.counted()))
        if hearing is not None:
            hearing.cancel()
            await asyncio.wait({hearing})
        await line.close()
    failed = not hearing.cancelled() and hearing.exception()
    if failed:
        log.error("this worker could not do what it was told", exc_info=failed)
    return exit_codes.FAILED if failed else exit_codes.OK


async def _hear(line: Line, gateway: Gateway, stopping: Signals) -> None:
    """Does what the supervisor says, until it goes. A configuration that this worker can't take ends it: the supervisor
    has checked it, and a new worker starts with it."""
    orders: set[asyncio.Task[None]] = set()
    try:
        await _heed(line, gateway, stopping, orders)
    finally:
        for task in tuple(orders):
            task.cancel()


async def _heed(line: Line, gateway: Gateway, stopping: Signals, orders: set[asyncio.Task[None]]) -> None:
    while (message := await line.receive()) is not None:
        match message:
            case Serve(settings):
                await gateway.apply(settings)
            case Count():
                line.send(Counted(gateway.counted()))
            case Look():
                line.send(Looked(gateway.seen()))
            case Obey():
                task = asyncio.create_task(_obey(line, gateway, message), name="cache order")
                orders.add(task)
                task.add_done_callback(orders.discard)
            case Explain():
                task = asyncio.create_task(_explain(line, gateway, message), name="explain")
                orders.add(task)
                task.add_done_callback(orders.discard)
            case Drain():
                stopping.drain()
            case End():
                stopping.end()
            case _:
                log.error("a supervisor does not say %s", type(message).__name__)


async def _obey(line: Line, gateway: Gateway, message: Obey) -> None:
    line.send(Obeyed(message.number, await gateway.order(message.order, message.upstream)))


async def _explain(line: Line, gateway: Gateway, message: Explain) -> None:
    line.send(Explained(message.number, await gateway.explain(message.described)))


if __name__ == "__main__":
    sys.exit(main())

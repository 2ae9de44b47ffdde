"""Runs the gateway on standard input and output: one host, one upstream, until the host goes or a signal comes."""

import asyncio
import contextlib

from gateway.app import LOOP, Gateway
from gateway.front.pipes import Input, Output, take_over
from gateway.front.stdio import StdioFront
from gateway.logs import configure, stray
from gateway.signals import Signals
from policies.settings import Settings


def run(settings: Settings) -> int:
    """Serves the first route until standard input ends, nobody reads standard output, or SIGTERM or SIGINT; the exit
    code."""
    read_from, write_to = take_over()
    configure(settings.log.level, settings.log.format)
    with asyncio.Runner(loop_factory=LOOP) as runner:
        runner.get_loop().set_exception_handler(stray)
        return runner.run(_run(settings, read_from, write_to))


async def _run(settings: Settings, read_from: int, write_to: int) -> int:
    gateway = Gateway(settings)
    stopping = Signals()
    output = Output(write_to)
    front = StdioFront(gateway.service, settings.routes[0], output.line)
    gateway.service.upstreams.warm()
    serving = asyncio.create_task(front.serve(Input(read_from, settings.limits.max_body_bytes).lines()))
    ends = [serving, asyncio.create_task(stopping.first()), asyncio.create_task(output.broken.wait())]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in ends:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        await front.close()
        await gateway.stop()
    return 0

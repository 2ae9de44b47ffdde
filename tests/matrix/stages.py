"""One upstream, directly and through the gateway, with a tap before each: what the tests of the matrix stand on."""

import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.matrix.clients import CLIENTS, Client
from tests.matrix.machinery import DriverError, Running, drive, gateway, upstream
from tests.matrix.tap import Exchange, Tap

Json = dict[str, Any]

ERA = {
    "modern-only": "modern",
    "sessions-only": "legacy",
    "sessionless": "legacy",
    "everything": "legacy",
    "asks-on-get": "legacy",
}
REFERENCE = {"modern": CLIENTS["py2-auto"], "legacy": CLIENTS["py1"]}
"""The client of the upstream's era whose direct run the others are measured by."""
THREADS = 3
"""Clients that run at once: most of a run is the start of an interpreter, on a machine of two cores."""
VERSION = {"modern": "2026-07-28", "legacy": "2025-11-25"}


@dataclass
class Run:
    """One client's run: what it told (`document`) and what the tap before its peer recorded."""

    document: Json
    exchanges: list[Exchange]

    def answers(self) -> dict[str, list[Exchange]]:
        """The answered requests of the plan by what they ask for, what one era alone has left out."""
        found: dict[str, list[Exchange]] = {}
        for exchange in self.exchanges:
            if exchange.answer is not None and exchange.rpc_method not in HANDSHAKE:
                found.setdefault(key_of(exchange), []).append(exchange)
        return found


HANDSHAKE = {"initialize", "server/discover", "ping", "logging/setLevel"}
"""What a client sends in one era alone, or for itself."""


def key_of(exchange: Exchange) -> str:
    """What a request asks for, however its client spells the rest: method and the members that name the thing.

    Absent and empty arguments are one (clients differ), and so are the `_meta` that each client sends on its own.
    """
    params = exchange.params
    named = {key: params[key] for key in ("name", "uri", "cursor", "ref", "argument") if key in params}
    if params.get("arguments"):
        named["arguments"] = params["arguments"]
    return f"{exchange.rpc_method} {json.dumps(named, sort_keys=True, ensure_ascii=False)}"


@dataclass
class Cell:
    """One client through the gateway: its run, and the direct run to compare it with."""

    client: Client
    run: Run
    reference: Run


@dataclass
class Stage:
    """`upstream_url` is the upstream itself, `gateway` the process before it; `back` is the tap between the two.

    Runs go on in a few threads at once, each with a tap of its own before its peer, so that one cell's traffic is told
    from another's and the clients meet in the gateway as they do in life.
    """

    name: str
    upstream_url: str
    gateway: Running
    back: Tap
    threads: ThreadPoolExecutor
    cells: dict[str, Future[Cell]] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    """Every run through the gateway that has ended."""

    @property
    def era(self) -> str:
        return ERA[self.name]

    def direct(self, client: Client, steps: list[Json], *, asks: bool | Json = False) -> Future[Run]:
        """Starts `client` at the upstream itself."""
        return self.threads.submit(_run, self.upstream_url, client, steps, asks=asks)

    def through(self, client: Client, steps: list[Json], *, asks: bool | Json = False) -> Future[Run]:
        """Starts `client` at the gateway."""
        return self.threads.submit(self._through, client, steps, asks=asks)

    def start_cells(self, clients: dict[str, Client], steps: list[Json]) -> None:
        """Starts the direct run to compare with, then every client at the gateway; results come in `cells`."""
        reference = self.direct(REFERENCE[self.era], steps)

        def cell(client: Client) -> Cell:
            return Cell(client, self._through(client, steps, asks=False), reference.result())

        self.cells = {name: self.threads.submit(cell, client) for name, client in clients.items()}

    def _through(self, client: Client, steps: list[Json], *, asks: bool | Json) -> Run:
        try:
            run = _run(f"{self.gateway.said}/mcp", client, steps, asks=asks)
        except DriverError as error:
            error.add_note(f"The gateway's log:\n{self.gateway.log()[-8000:]}")
            raise
        self.runs.append(run)
        return run


def _run(url: str, client: Client, steps: list[Json], *, asks: bool | Json) -> Run:
    with Tap(url) as tap:
        return Run(drive(client.driver, tap.url, client.mode, steps, asks=asks), tap.exchanges)


@contextlib.contextmanager
def stage(name: str) -> Iterator[Stage]:
    with (
        upstream(name) as url,
        Tap(url) as back,
        gateway(back.url) as served,
        ThreadPoolExecutor(THREADS, thread_name_prefix=name) as threads,
    ):
        yield Stage(name, url, served, back, threads)

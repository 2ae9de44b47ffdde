"""Watches the configuration file, and puts a changed one into service: all of it, or none.

A file that is wrong changes nothing: what is wrong is logged, once for each version of the file, and the settings in
service stay. The file is looked at once a second rather than by notifications of the file system, which mounted
volumes, symlink swaps and editors that rename do not deliver alike.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from gateway.config import ConfigError
from gateway.metrics import Reloads
from policies.settings import Settings

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0

_Seen = tuple[int, int, int, int] | None


class Reloader:
    """`load` reads the file (in a thread), `apply` puts settings into service or raises `ConfigError`. How each reload
    went is counted in `reloads`."""

    def __init__(
        self,
        path: Path,
        load: Callable[[], Settings],
        apply: Callable[[Settings], Awaitable[None]],
        reloads: Reloads,
    ) -> None:
        self._reloads = reloads
        self._path = path
        self._load = load
        self._apply = apply
        self._seen = _look(path)
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Reads the file again whether it looks changed or not: secrets that it names may have (SIGHUP)."""
        self._asked.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._asked.wait()
            except TimeoutError:
                seen = await asyncio.to_thread(_look, self._path)
                if seen == self._seen or seen is None:  # None: between an editor's remove and its rename
                    continue
                self._seen = seen
            self._asked.clear()
            await self._reload()

    async def _reload(self) -> None:
        ok = False
        try:
            settings = await asyncio.to_thread(self._load)
            await self._apply(settings)
        except ConfigError as error:
            for line in error.lines:
                log.error("%s", line)
            log.error("the configuration is not changed")
        except Exception:  # a task root: a file that vanishes between reading and use must not end the watching
            log.exception("the configuration is not changed")
        else:
            ok = True
            log.info("%s: the configuration is in service", self._path)
        self._reloads.note(ok=ok)


def _look(path: Path) -> _Seen:
    """What tells one version of the file from the next, None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev

"""Tasks in the background: kept, ended with their owner, and never silent about what they raise."""

import asyncio
import gc
import logging

import pytest

from gateway.background import Background


async def test_a_task_that_nobody_holds_runs_to_its_end() -> None:
    background, done = Background(), asyncio.Event()

    async def work() -> None:
        for _ in range(10):
            await asyncio.sleep(0)
            gc.collect()
        done.set()

    background.start(work())
    await background.over()
    assert done.is_set()
    assert background.running == frozenset()


async def test_what_a_task_raises_is_logged_and_ends_no_other(caplog: pytest.LogCaptureFixture) -> None:
    background, go = Background(), asyncio.Event()

    async def fails() -> None:
        raise LookupError("planted")

    other = background.start(go.wait())
    background.start(fails(), "a failing one")
    await asyncio.wait({other, asyncio.ensure_future(asyncio.sleep(0))}, return_when=asyncio.FIRST_COMPLETED)
    while len(background.running) > 1:
        await asyncio.sleep(0)
    [record] = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.ERROR, "work in the background failed: a failing one")
    assert record.exc_info is not None
    assert record.exc_info[0] is LookupError
    go.set()
    assert await other is True


@pytest.mark.parametrize("end", [Background.over, Background.close])
async def test_the_end_waits_for_what_is_started_meanwhile(end: object, caplog: pytest.LogCaptureFixture) -> None:
    background, left = Background(), list[str]()

    async def farewell() -> None:
        try:
            for _ in range(9):
                await asyncio.sleep(0)
            left.append("farewell")
        except asyncio.CancelledError:
            left.append("no farewell")
            raise

    async def work() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            background.start(farewell())
            await asyncio.sleep(0)
            left.append("work")

    background.start(work())
    await asyncio.sleep(0)
    await end(background)  # type: ignore[operator]
    assert sorted(left) == (["farewell", "work"] if end is Background.over else ["no farewell", "work"])
    assert background.running == frozenset()
    assert caplog.records == []


async def test_who_waits_for_the_end_and_is_cancelled_cancels_nothing() -> None:
    background, go = Background(), asyncio.Event()
    task = background.start(go.wait())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await background.over()
    assert not task.done()
    go.set()
    assert await task is True

import asyncio

import pytest

from webrag.mcp_server.runtime import RunningCalls


async def work(calls: RunningCalls, seconds: float) -> str:
    with calls.entered():
        await asyncio.sleep(seconds)
        return "done"


async def test_calls_that_end_in_time_are_waited_for() -> None:
    calls = RunningCalls()
    task = asyncio.create_task(work(calls, 0.05))
    await asyncio.sleep(0)

    await calls.finish(5)

    assert (len(calls), await task) == (0, "done")


async def test_calls_that_do_not_are_cancelled() -> None:
    calls = RunningCalls()
    task = asyncio.create_task(work(calls, 30))
    await asyncio.sleep(0)

    await calls.finish(0.05)

    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(calls) == 0


async def test_nothing_is_waited_for_when_nothing_runs() -> None:
    async with asyncio.timeout(10):
        await RunningCalls().finish(60)

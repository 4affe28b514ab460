import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import pytest

from webrag.errors import DatabaseUnavailableError
from webrag.mcp_server.runtime import Runtime

Load = Callable[[], Any]


async def test_memory_is_opened_once_for_concurrent_calls(load: Load, memory: Any) -> None:
    loads: list[int] = []
    runtime = Runtime(lambda: loads.append(1) or load())  # type: ignore[func-returns-value]
    runtime.start()

    opened = await asyncio.gather(*(runtime.memory() for _ in range(5)))
    await runtime.close()

    assert opened == [memory] * 5
    assert loads == [1]


async def test_memory_is_closed_with_the_runtime(load: Load, memory: Any) -> None:
    runtime = Runtime(load)
    runtime.start()
    await runtime.memory()

    await runtime.close()

    assert not memory.is_open


async def test_failure_to_open_reaches_the_call(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> Any:
        raise DatabaseUnavailableError("The database is down.")

    runtime = Runtime(fail)
    runtime.start()

    with pytest.raises(DatabaseUnavailableError, match="is down"):
        await runtime.memory()
    assert "WebRAG could not be opened: DatabaseUnavailableError" in caplog.text


async def test_opening_is_tried_again_after_a_failure(load: Load, memory: Any) -> None:
    failures = [DatabaseUnavailableError("The database is down.")]

    def flaky() -> Any:
        if failures:
            raise failures.pop()
        return load()

    runtime = Runtime(flaky)
    runtime.start()
    with pytest.raises(DatabaseUnavailableError):
        await runtime.memory()

    assert await runtime.memory() is memory
    await runtime.close()


async def test_cancelled_call_does_not_stop_the_opening(load: Load, memory: Any) -> None:
    runtime = Runtime(load)
    runtime.start()
    impatient = asyncio.create_task(runtime.memory())
    await asyncio.sleep(0)
    impatient.cancel()

    assert await runtime.memory() is memory
    await runtime.close()


async def test_memory_is_opened_unasked(load: Load, memory: Any) -> None:
    runtime = Runtime(load)
    runtime.start()
    async with asyncio.timeout(5):
        while not runtime.is_ready:
            await asyncio.sleep(0.01)
    was_open = memory.is_open
    await runtime.close()

    assert was_open


async def test_memory_keeps_nothing_of_the_call_that_opened_it(load: Any) -> None:
    caller: ContextVar[str] = ContextVar("caller", default="nobody")
    seen: list[str] = []

    @asynccontextmanager
    async def opening() -> AsyncIterator[Any]:
        seen.append(caller.get())
        yield load()

    runtime = Runtime(opening)
    caller.set("alice")
    await runtime.memory()
    await runtime.close()

    assert seen == ["nobody"]

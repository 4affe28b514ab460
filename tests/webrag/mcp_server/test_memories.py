import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from webrag.errors import AccessDeniedError
from webrag.mcp_server.authorization.gate import Memories


class Shelf:
    """Counts what is open."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.opened: list[str] = []
        self.most = 0
        self.may_close = asyncio.Event()
        self.may_close.set()

    def load(self, name: str) -> Callable[[], Any]:
        @asynccontextmanager
        async def opening() -> AsyncIterator[Any]:
            self.open.append(name)
            self.opened.append(name)
            self.most = max(self.most, len(self.open))
            yield name
            await self.may_close.wait()
            self.open.remove(name)

        return opening


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


async def use(memories: Memories, name: str) -> Any:
    async with memories.using(name) as runtime:
        return await runtime.memory()


async def test_each_collection_has_a_memory_of_its_own_that_stays_open(shelf: Shelf) -> None:
    memories = Memories(shelf.load, most_open=2)

    used = [await use(memories, name) for name in ("red", "blue", "red", "blue")]
    await memories.close()

    assert used == ["red", "blue", "red", "blue"]
    assert (shelf.opened, shelf.open) == (["red", "blue"], [])


async def test_the_one_unused_for_longest_is_closed_for_another(shelf: Shelf) -> None:
    memories = Memories(shelf.load, most_open=2)

    for name in ("red", "blue", "red", "green"):
        await use(memories, name)

    assert sorted(shelf.open) == ["green", "red"]
    await memories.close()


async def test_never_more_are_open_than_allowed(shelf: Shelf) -> None:
    memories = Memories(shelf.load, most_open=3)
    names = [f"c{number % 11}" for number in range(60)]

    used = await asyncio.gather(*(use(memories, name) for name in names))

    assert used == names
    assert shelf.most <= 3
    await memories.close()


async def test_one_in_use_is_not_closed_and_the_next_caller_told_to_wait(shelf: Shelf) -> None:
    memories = Memories(shelf.load, most_open=1, wait_s=0.1)
    async with memories.using("red") as runtime:
        await runtime.memory()
        with pytest.raises(
            AccessDeniedError, match=r"busy with the calls of others; try again in a minute"
        ):
            await use(memories, "blue")

    assert shelf.open == ["red"]
    assert await use(memories, "blue") == "blue"
    await memories.close()


async def test_waiting_caller_gets_the_room_that_becomes_free(shelf: Shelf) -> None:
    memories = Memories(shelf.load, most_open=1)
    async with memories.using("red"):
        waiting = asyncio.create_task(use(memories, "blue"))
        await asyncio.sleep(0)

    assert await waiting == "blue"
    await memories.close()


async def test_collection_that_is_being_closed_is_opened_anew(shelf: Shelf) -> None:
    memories = Memories(shelf.load, most_open=1)
    await use(memories, "red")
    shelf.may_close.clear()
    waiting = [asyncio.create_task(use(memories, name)) for name in ("blue", "red")]
    await asyncio.sleep(0.05)
    shelf.may_close.set()

    assert await asyncio.gather(*waiting) == ["blue", "red"]
    assert shelf.most == 1
    await memories.close()


async def test_cancelled_caller_leaves_no_trace(shelf: Shelf) -> None:
    memories = Memories(shelf.load, most_open=1)
    async with memories.using("red"):
        waiting = asyncio.create_task(use(memories, "blue"))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])

    assert await use(memories, "red") in ("red",)
    await memories.close()
    assert len(memories) == 0

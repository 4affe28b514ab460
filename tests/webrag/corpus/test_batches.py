import asyncio
from collections.abc import Sequence

import pytest

from webrag.corpus.batches import Batches
from webrag.errors import DatabaseUnavailableError


class Work:
    """Doubles numbers in batches that wait for the gate; refuses batches with a bad number."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.was_cancelled = False

    async def __call__(self, items: Sequence[int]) -> list[int]:
        self.batches.append(list(items))
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        if 13 in items:
            raise ValueError("13 is refused")
        if 99 in items:
            raise DatabaseUnavailableError("gone")
        return [2 * item for item in items]


async def test_what_is_asked_for_together_is_done_together() -> None:
    work = Work()
    batches = Batches(work, most=10)

    assert await asyncio.gather(*map(batches.result, range(4))) == [0, 2, 4, 6]
    assert work.batches == [[0, 1, 2, 3]]


async def test_what_comes_during_a_batch_is_the_next_one() -> None:
    work = Work()
    work.gate.clear()
    batches = Batches(work, most=10)
    first = asyncio.create_task(batches.result(1))
    await asyncio.sleep(0.01)
    others = [asyncio.create_task(batches.result(number)) for number in (2, 3)]
    await asyncio.sleep(0.01)
    work.gate.set()

    assert [await first, *(await asyncio.gather(*others))] == [2, 4, 6]
    assert work.batches == [[1], [2, 3]]


async def test_batch_is_no_larger_than_allowed_but_for_one_item() -> None:
    work = Work()
    batches = Batches(work, most=10, size=lambda number: number)

    await asyncio.gather(*map(batches.result, [6, 4, 1, 50, 2]))

    assert work.batches == [[6, 4], [1], [50], [2]]


async def test_few_wait_for_more_that_come_and_not_for_ever() -> None:
    work = Work()
    batches = Batches(work, most=10, more_comes=lambda: True, longest_wait_s=0.05)
    early = asyncio.create_task(batches.result(1))
    await asyncio.sleep(0.02)
    late = asyncio.create_task(batches.result(2))

    assert await asyncio.gather(early, late) == [2, 4]
    assert work.batches == [[1, 2]]


async def test_few_wait_no_longer_than_for_what_comes_where_that_fails() -> None:
    coming = [True]
    batches = Batches(Work(), most=10, more_comes=lambda: coming[0], longest_wait_s=60)
    waiting = asyncio.create_task(batches.result(1))
    await asyncio.sleep(0.01)
    coming[0] = False

    assert await asyncio.wait_for(waiting, timeout=10) == 2


async def test_few_wait_for_more_no_longer_than_they_are_told_to() -> None:
    batches = Batches(Work(), most=10, more_comes=lambda: True, longest_wait_s=0.05)

    assert await asyncio.wait_for(batches.result(1), timeout=10) == 2


async def test_failure_is_told_to_whom_it_concerns() -> None:
    work = Work()
    batches = Batches(work, most=10)

    found = await asyncio.gather(*map(batches.result, [1, 13, 2]), return_exceptions=True)

    assert [str(each) for each in found] == ["2", "13 is refused", "4"]


async def test_database_that_is_gone_is_not_asked_for_each_item() -> None:
    work = Work()
    batches = Batches(work, most=10)

    found = await asyncio.gather(*map(batches.result, [1, 99, 2]), return_exceptions=True)

    assert all(isinstance(each, DatabaseUnavailableError) for each in found)
    assert work.batches == [[1, 99, 2]]


async def test_caller_who_leaves_takes_nothing_from_the_others() -> None:
    work = Work()
    work.gate.clear()
    batches = Batches(work, most=10)
    leaving, staying = (asyncio.create_task(batches.result(number)) for number in (1, 2))
    await asyncio.sleep(0.01)
    leaving.cancel()
    await asyncio.wait([leaving])
    work.gate.set()

    assert await staying == 4
    assert not work.was_cancelled


async def test_last_caller_who_leaves_ends_the_batch_and_the_next_begins() -> None:
    work = Work()
    work.gate.clear()
    batches = Batches(work, most=10)
    leaving = [asyncio.create_task(batches.result(number)) for number in (1, 2)]
    await asyncio.sleep(0.01)
    for each in leaving:
        each.cancel()
    await asyncio.wait(leaving)
    was_cancelled = work.was_cancelled
    work.gate.set()

    assert was_cancelled
    assert await batches.result(3) == 6


async def test_caller_who_leaves_before_the_batch_begins_is_not_in_it() -> None:
    work = Work()
    batches = Batches(work, most=10, more_comes=lambda: True)
    leaving, staying = (asyncio.create_task(batches.result(number)) for number in (1, 2))
    await asyncio.sleep(0.01)
    leaving.cancel()

    assert await staying == 4
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert work.batches == [[2]]

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from webrag.embedding.embedder import VectorsUnderWay

KEYS = [b"a", b"b", b"c"]


class Maker:
    """Makes vectors slowly and remembers which; the first calls fail when told so."""

    def __init__(self, failures: int = 0) -> None:
        self.made: list[bytes] = []
        self._failures = failures

    async def __call__(self, keys: Sequence[bytes]) -> NDArray[np.float32]:
        self.made += keys
        fails, self._failures = self._failures > 0, self._failures - 1
        await asyncio.sleep(0.01)
        if fails:
            raise ConnectionError("the model is away")
        return np.array([[key[0]] for key in keys], np.float32)


async def test_vector_that_two_want_is_made_once() -> None:
    vectors, make = VectorsUnderWay(), Maker()
    one, two = vectors.claim(KEYS[:2]), vectors.claim(KEYS[1:])

    made = await asyncio.gather(vectors.complete(one, make), vectors.complete(two, make))

    assert made == [{b"a", b"b"}, {b"c"}]
    assert sorted(make.made) == KEYS
    assert [each.value[0] for each in two.values()] == [ord("b"), ord("c")]


async def test_vector_is_there_while_somebody_holds_it() -> None:
    vectors, make = VectorsUnderWay(), Maker()
    held = vectors.claim(KEYS)
    await vectors.complete(held, make)

    assert await vectors.complete(vectors.claim(KEYS), make) == set()


async def test_nothing_is_kept_when_nobody_holds_it() -> None:
    vectors, make = VectorsUnderWay(), Maker()

    for _ in range(2):
        assert await vectors.complete(vectors.claim(KEYS), make) == set(KEYS)


async def test_failure_is_the_makers_and_the_others_make_it_themselves() -> None:
    vectors, make = VectorsUnderWay(), Maker(failures=1)
    work = [vectors.complete(vectors.claim(KEYS), make) for _ in range(3)]

    first, *others = await asyncio.gather(*work, return_exceptions=True)

    assert isinstance(first, ConnectionError)
    assert others == [set(KEYS), set()]


async def test_cancelled_maker_leaves_nobody_waiting() -> None:
    vectors, make = VectorsUnderWay(), Maker()
    maker = asyncio.create_task(vectors.complete(vectors.claim(KEYS), make))
    waiter = asyncio.create_task(vectors.complete(vectors.claim(KEYS), make))
    await asyncio.sleep(0)

    maker.cancel()

    assert await asyncio.wait_for(waiter, 5) == set(KEYS)
    with pytest.raises(asyncio.CancelledError):
        await maker


def test_another_event_loop_is_not_waited_for() -> None:
    vectors, make = VectorsUnderWay(), Maker()
    held = vectors.claim(KEYS)
    other = asyncio.new_event_loop()
    for each in held.values():
        each.maker = other.create_future()

    assert asyncio.run(vectors.complete(held, make)) == set(KEYS)
    other.close()

"""Vectors that this process is making or has not stored yet, so that none is made twice."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

__all__ = ["PendingVector", "VectorsUnderWay"]

Vector = NDArray[np.float32]


class PendingVector:
    """The vector of one text, from before it is made until nobody holds this object.

    Attributes:
        value: None until it is made.
    """

    __slots__ = ("__weakref__", "maker", "value")

    def __init__(self) -> None:
        self.value: Vector | None = None
        self.maker: asyncio.Future[None] | None = None

    @property
    def is_free(self) -> bool:
        """Whether the caller has to make it: nobody does, or one of another event loop."""
        maker = self.maker
        return maker is None or maker.get_loop() is not asyncio.get_running_loop()


class VectorsUnderWay:
    """Makes each vector once for all who ask while one of them still holds it.

    A page holds its vectors until it is stored. Whoever claims a text before looking into the
    corpus therefore either shares the vector of a page under way or finds it stored.
    """

    def __init__(self) -> None:
        self._pending: WeakValueDictionary[bytes, PendingVector] = WeakValueDictionary()

    def claim(self, text_hashes: Iterable[bytes]) -> dict[bytes, PendingVector]:
        """Hold what there is, or will be, of each text; to be done before the corpus is read."""
        return {each: self._pending.setdefault(each, PendingVector()) for each in text_hashes}

    async def complete(
        self,
        wanted: Mapping[bytes, PendingVector],
        make: Callable[[Sequence[bytes]], Awaitable[Vector]],
    ) -> set[bytes]:
        """Wait until every vector is there, and give the hashes of those made by this call.

        What another call fails to make, or is cancelled over, is made here.

        Args:
            wanted: What was claimed.
            make: Gives one row per hash.
        """
        made: set[bytes] = set()
        while missing := {key: each for key, each in wanted.items() if each.value is None}:
            free = {key: each for key, each in missing.items() if each.is_free}
            if free:
                await _make(free, make)
                made |= free.keys()
                continue  # its own come first, so that two calls never wait for each other
            makers = {each.maker for each in missing.values() if each.maker is not None}
            await asyncio.wait(makers)
        return made


async def _make(
    free: Mapping[bytes, PendingVector], make: Callable[[Sequence[bytes]], Awaitable[Vector]]
) -> None:
    maker = asyncio.get_running_loop().create_future()
    for each in free.values():
        each.maker = maker
    try:
        vectors = await make(list(free))
        for each, vector in zip(free.values(), vectors, strict=True):
            each.value = vector
    finally:
        for each in free.values():
            each.maker = None
        maker.set_result(None)

"""How the processor time of some work grows with its input, on a machine that is never idle."""

import gc
import time
from collections.abc import Callable
from typing import Any

_ATTEMPTS = 4
# Below this all is noise, and no growth from there would matter at the length of a page.
_NOISE_S = 0.02


def processor_seconds(work: Callable[[Any], object], given: Any) -> float:
    """Of one run, in which the garbage of other tests is not collected."""
    gc.disable()
    try:
        started = time.process_time()
        work(given)
        return time.process_time() - started
    finally:
        gc.enable()


def grows_as_its_input(
    work: Callable[[Any], object], make: Callable[[int], Any], size: int, *, margin: float = 3
) -> bool:
    """Whether four times the input takes at most `4 * margin` times as long.

    Other work on the machine only ever adds to one of the two, so one good attempt of several is
    enough; what grows with the square fails them all.
    """
    short = long = float("inf")
    for _ in range(_ATTEMPTS):
        long = min(long, processor_seconds(work, make(4 * size)))
        if long < 4 * margin * _NOISE_S:
            return True
        short = min(short, processor_seconds(work, make(size)))
        if long < 4 * margin * short:
            return True
    return False

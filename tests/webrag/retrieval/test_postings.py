from uuid import uuid4

import numpy as np

from webrag.lexical.postings import SlotLayout
from webrag.retrieval.postings import KnownLayouts


def layout(chunks: int) -> SlotLayout:
    one = np.array([1])
    return SlotLayout.of_sizes(one, one, one * chunks, np.ones(chunks, np.uint16))


def test_layouts_used_last_are_kept_up_to_so_many_bytes() -> None:
    known = KnownLayouts(most_bytes=2 * layout(5).nbytes)
    first, second, third = uuid4(), uuid4(), uuid4()
    known.keep(first, layout(4))
    known.keep(second, layout(5))
    known.get(first)

    known.keep(third, layout(3))

    assert [known.get(key) is not None for key in (first, second, third)] == [True, False, True]


def test_a_layout_of_more_bytes_than_are_kept_is_not_kept() -> None:
    known = KnownLayouts(most_bytes=2 * layout(5).nbytes)
    key = uuid4()

    known.keep(key, layout(50))

    assert known.get(key) is None


def test_a_layout_that_is_read_twice_counts_once() -> None:
    known = KnownLayouts(most_bytes=2 * layout(5).nbytes)
    first, second = uuid4(), uuid4()
    for key in (first, first, second):
        known.keep(key, layout(5))

    assert known.get(first) is not None

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webrag.packed_postings import unpack_postings
from webrag.lexical.postings import (
    POSTING,
    SEGMENT_POSTINGS,
    pack_postings,
)

CHUNKS = st.lists(
    st.lists(st.sampled_from(["a", "b", "ü", "=x::y", "使用"]), max_size=40), max_size=30
)


@given(CHUNKS)
def test_unpacking_gives_back_counts_and_lengths(chunks: Any) -> None:
    rows = pack_postings(chunks)

    found = {
        (row.term, int(posting["ordinal"])): (int(posting["tf"]), int(posting["length"]))
        for row in rows
        for posting in unpack_postings(row.packed)
    }

    assert found == {
        (term, ordinal): (count, len(terms))
        for ordinal, terms in enumerate(chunks)
        for term, count in Counter(terms).items()
    }


@given(CHUNKS)
def test_rows_are_ordered_by_term_and_segment(chunks: Any) -> None:
    keys = [(row.term, row.segment) for row in pack_postings(chunks)]

    assert keys == sorted(set(keys))


def test_long_lists_are_cut_into_segments_that_fit_an_index_tuple() -> None:
    rows = pack_postings([["word"]] * (2 * SEGMENT_POSTINGS + 1))

    assert [row.segment for row in rows] == [0, 1, 2]
    assert max(len(row.packed) for row in rows) <= 2250


def test_concatenated_segments_unpack_in_page_order() -> None:
    rows = pack_postings([["word"]] * 1000)

    postings = unpack_postings(b"".join(row.packed for row in rows))

    assert np.array_equal(postings["ordinal"], np.arange(1000))


def test_counts_above_255_are_capped_and_lengths_are_exact() -> None:
    (row,) = pack_postings([["word"] * 40_000])

    assert unpack_postings(row.packed).tolist() == [(0, 255, 40_000)]


def test_a_posting_takes_five_bytes() -> None:
    assert POSTING.itemsize == 5


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([[]] * 65_537, id="chunks"),
        pytest.param([["w"] * 65_536], id="terms"),
    ],
)
def test_pages_beyond_the_format_are_refused(chunks: Any) -> None:
    with pytest.raises(ValueError, match="at most"):
        pack_postings(chunks)


def test_more_different_terms_than_a_page_may_have_are_refused() -> None:
    chunks = [
        [f"t{number}" for number in range(start, start + 1_000)]
        for start in range(0, 301_000, 1_000)
    ]

    with pytest.raises(ValueError, match="300,000 different words"):
        pack_postings(chunks)

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.lexical.bm25 import CorpusTotals, child_key, score_words
from webrag.lexical.postings import (
    BLOCK_CHUNKS,
    POSTING,
    PackedBlock,
    PostingBlock,
    block_of_rows,
    pack_block,
    pack_postings,
    unpack_layout,
    unpack_slots,
)

Page = list[list[str]]
"""The terms of each chunk."""

Row = tuple[str, bytes, bytes]

_HEAD = np.dtype([("document", ">i4"), ("terms", ">i4"), ("bytes", ">i4")])
_TERMS = ["alpha", "beta", "gamma"]

chunks = st.lists(st.sampled_from(_TERMS), max_size=4)
pages = st.dictionaries(st.integers(1, 40), st.lists(chunks, max_size=4), max_size=6)


def rows_of(stored: dict[int, Page]) -> list[Row]:
    """What SQL reads of the pages: a row for each term, its pages in ascending order."""
    heads: dict[str, list[tuple[int, int, int]]] = {}
    bodies: dict[str, bytes] = {}
    for number, page in sorted(stored.items()):
        count = sum(map(len, page))
        for term, _, packed in pack_postings(page):
            heads.setdefault(term, []).append((number, count, len(packed)))
            bodies[term] = bodies.get(term, b"") + packed
    return [(term, np.array(each, _HEAD).tobytes(), bodies[term]) for term, each in heads.items()]


def unpacked(packed: PackedBlock, left: Sequence[int] = ()) -> PostingBlock:
    layout = unpack_layout(packed.layout)
    terms = {term: unpack_slots(slots, layout) for term, slots in packed.terms}
    return PostingBlock(layout, terms, np.flatnonzero(np.isin(layout.pages, list(left))))


def totals_of(stored: dict[int, Page]) -> CorpusTotals:
    children = [chunk for page in stored.values() for chunk in page]
    return CorpusTotals(len(stored), len(children), sum(map(len, children)))


def defined_scores(stored: dict[int, Page]) -> dict[int, float]:
    """BM25 by its definition, of the chunks that hold a term."""
    children = {
        child_key(number, place): Counter(chunk)
        for number, page in stored.items()
        for place, chunk in enumerate(page)
    }
    average = sum(count.total() for count in children.values()) / max(len(children), 1)
    scores: dict[int, float] = {}
    for term in _TERMS:
        held = sum(term in count for count in children.values())
        idf = math.log(1 + (len(children) - held + 0.5) / (held + 0.5))
        for key, count in children.items():
            if term in count:
                norm = 1.2 * (0.25 + 0.75 * count.total() / average)
                added = idf * count[term] * 2.2 / (count[term] + norm)
                scores[key] = scores.get(key, 0.0) + added
    return scores


def children_scores(blocks: list[PostingBlock], totals: CorpusTotals) -> dict[int, float]:
    found = score_words(_TERMS, blocks, totals).children
    keys = found.best()
    return dict(zip(keys.tolist(), found.at(keys).tolist(), strict=True))


@given(pages)
def test_packed_blocks_score_as_bm25_is_defined(stored: dict[int, Page]) -> None:
    block = unpacked(pack_block(rows_of(stored)))

    scores = children_scores([block], totals_of(stored))

    assert scores == pytest.approx(defined_scores(stored))


@given(pages, st.sets(st.integers(1, 40)), pages)
def test_pages_that_are_left_out_change_nothing_even_if_they_are_elsewhere(
    stored: dict[int, Page], left: set[int], later: dict[int, Page]
) -> None:
    later = {number: page for number, page in later.items() if number in left or number > 40}
    block = unpacked(pack_block(rows_of(stored)), sorted(left))
    counted = {number: page for number, page in stored.items() if number not in left} | later

    found = score_words(_TERMS, [block, block_of_rows(rows_of(later))], totals_of(counted))

    expected = score_words(_TERMS, [block_of_rows(rows_of(counted))], totals_of(counted))
    keys = expected.children.best()
    assert found.children.best().tolist() == keys.tolist()
    assert found.children.at(keys) == pytest.approx(expected.children.at(keys))
    assert found.pages.ids.tolist() == expected.pages.ids.tolist()
    assert found.pages.scores == pytest.approx(expected.pages.scores)
    assert found.idf == pytest.approx(expected.idf)


def test_a_posting_takes_three_bytes_and_a_page_of_a_term_four() -> None:
    packed = pack_block(rows_of({1: [["alpha"], ["alpha", "beta"]], 2: [["alpha"]]}))

    sizes = {term: len(slots) - 4 for term, slots in packed.terms}
    assert sizes == {"alpha": 3 * 3 + 2 * 4, "beta": 3 + 4}


@pytest.mark.parametrize("last", [BLOCK_CHUNKS - 1, BLOCK_CHUNKS])
def test_blocks_of_more_chunks_than_two_bytes_count_are_read_as_they_were_written(
    last: int,
) -> None:
    heads = np.array([(1, 9, 5), (2, 9, 5)], _HEAD)
    # The first page has a chunk of the term on its last place only.
    entries = np.array([(BLOCK_CHUNKS - 1, 3, 7), (last - BLOCK_CHUNKS + 1, 2, 5)], POSTING)
    if last < BLOCK_CHUNKS:
        heads, entries = heads[:1], entries[:1]

    rows = [("alpha", heads.tobytes(), entries.tobytes())]

    block = unpacked(pack_block(rows))

    expected = score_words(["alpha"], [block_of_rows(rows)], CorpusTotals(2, 9, 60))
    found = score_words(["alpha"], [block], CorpusTotals(2, 9, 60))
    keys = expected.children.best()
    assert sorted(keys.tolist()) == [child_key(1, BLOCK_CHUNKS - 1), child_key(2, 1)][: len(heads)]
    assert found.children.at(keys).tolist() == expected.children.at(keys).tolist()
    assert found.pages.ids.tolist() == expected.pages.ids.tolist()
    assert found.pages.scores.tolist() == expected.pages.scores.tolist()


def test_pages_with_more_of_a_word_than_two_bytes_count_score_alike_in_and_out_of_a_block() -> None:
    chunks = 300
    heads = np.array([(1, 90_000, 5 * chunks), (2, 300, 5)], _HEAD)
    entries = np.array([*((place, 255, 300) for place in range(chunks)), (0, 3, 300)], POSTING)
    rows = [("alpha", heads.tobytes(), entries.tobytes())]

    packed, plain = (
        score_words(["alpha"], [block], CorpusTotals(2, 301, 90_300)).pages
        for block in (unpacked(pack_block(rows)), block_of_rows(rows))
    )

    assert packed.scores.tolist() == plain.scores.tolist()


def test_a_block_of_nothing_is_a_block() -> None:
    block = unpacked(pack_block([]))

    assert score_words(_TERMS, [block], CorpusTotals()).children.best().tolist() == []

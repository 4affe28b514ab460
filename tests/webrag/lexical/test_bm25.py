import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.lexical.bm25 import (
    CorpusTotals,
    LexicalScores,
    TermPostings,
    child_key,
    inverse_document_frequency,
    score_children,
    score_pages,
    split_key,
    term_postings,
)
from webrag.lexical.postings import POSTING


def postings(term: str, *entries: tuple[int, int, int, int], page_terms: int = 10) -> TermPostings:
    """Postings from (document, ordinal, frequency, length), each as a page of its own."""
    return TermPostings(
        term,
        np.array([entry[0] for entry in entries], dtype=np.int64),
        np.full(len(entries), page_terms),
        np.ones(len(entries), np.int64),
        np.array([entry[1:] for entry in entries], dtype=POSTING),
    )


def reference_bm25(frequency: int, length: int, average: float, count: int, total: int) -> float:
    idf = math.log(1 + (total - count + 0.5) / (count + 0.5))
    return idf * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * length / average))


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**16 - 1))
def test_child_key_gives_back_page_and_ordinal(document: int, ordinal: int) -> None:
    assert split_key(child_key(document, ordinal)) == (document, ordinal)


def test_child_scores_equal_the_formula() -> None:
    totals = CorpusTotals(documents=2, children=4, terms=40)
    entries = [
        postings("port", (1, 0, 2, 8), (2, 1, 1, 12)),
        postings("server", (1, 0, 1, 8)),
    ]

    scores, _ = score_children(entries, totals)

    both = reference_bm25(2, 8, 10, 2, 4) + reference_bm25(1, 8, 10, 1, 4)
    keys = scores.best()
    assert keys.tolist() == [child_key(1, 0), child_key(2, 1)]
    assert scores.at(keys) == pytest.approx([both, reference_bm25(1, 12, 10, 2, 4)])


def test_an_identifier_outweighs_its_parts_however_often_they_are_repeated() -> None:
    totals = CorpusTotals(documents=2, children=20, terms=200)
    entries = [
        postings("=vec::new", (1, 0, 1, 10)),
        postings("vec", (1, 0, 1, 10), (2, 0, 200, 10)),
        postings("new", (1, 0, 1, 10), (2, 0, 200, 10)),
    ]

    assert score_children(entries, totals)[0].best(1).tolist() == [child_key(1, 0)]
    assert score_pages(entries, totals).best(1).tolist() == [1]


def test_term_weights_leave_out_what_an_identifier_counts_more() -> None:
    totals = CorpusTotals(1, 9, 90)

    _, idf = score_children([postings("=vec::new"), postings("vec")], totals)

    assert idf["=vec::new"] == idf["vec"]


def test_term_weights_cover_terms_that_occur_nowhere() -> None:
    _, idf = score_children([postings("absent")], CorpusTotals(1, 9, 90))

    assert idf == {"absent": inverse_document_frequency(0, 9)}


def test_a_term_in_every_child_still_weighs_more_than_nothing() -> None:
    assert inverse_document_frequency(7, 7) > 0


def test_page_scores_sum_a_pages_children_and_the_best_page_has_one() -> None:
    totals = CorpusTotals(documents=3, children=6, terms=60)
    entries = [postings("port", (1, 0, 1, 10), (1, 3, 2, 10), (2, 0, 1, 10), page_terms=20)]

    pages = score_pages(entries, totals)

    expected = reference_bm25(1, 20, 20, 2, 3) / reference_bm25(3, 20, 20, 2, 3)
    assert pages.ids.tolist() == [1, 2]
    assert pages.scores == pytest.approx([1.0, expected])


def test_nothing_matches_an_empty_corpus() -> None:
    scores, _ = score_children([postings("port")], CorpusTotals())

    assert scores.best(5).tolist() == []
    assert scores.at(np.array([1, 2])).tolist() == [0.0, 0.0]
    assert score_pages([postings("port")], CorpusTotals()).ids.tolist() == []


def test_best_orders_by_score_then_by_id() -> None:
    scores = LexicalScores(np.array([3, 5, 9]), np.array([1.0, 2.0, 1.0]))

    assert scores.best(2).tolist() == [5, 3]


@given(st.integers(1, 3_000), st.integers(1, 9), st.integers(1, 100), st.integers(0, 99))
def test_best_of_many_are_those_of_sorting_all(
    count: int, different: int, limit: int, seed: int
) -> None:
    values = np.random.default_rng(seed).integers(0, different + 1, count).astype(float)

    found = LexicalScores(np.arange(count), values).best(limit).tolist()

    order = sorted(range(count), key=lambda place: (-values[place], place))
    assert found == [place for place in order if values[place] > 0][:limit]


@given(st.dictionaries(st.tuples(st.integers(1, 9), st.integers(0, 30)), st.integers(1, 9)))
def test_children_are_told_apart_by_page_and_place(held: dict[tuple[int, int], int]) -> None:
    entries = [postings("port", *((*place, count, 20) for place, count in sorted(held.items())))]

    scores, _ = score_children(entries, CorpusTotals(9, 279, 5_580))

    every = np.array([child_key(page, place) for page in range(1, 10) for place in range(31)])
    is_held = [split_key(key) in held for key in every.tolist()]
    assert (scores.at(every) > 0).tolist() == is_held
    assert len(scores.best()) == len(held)


def test_scores_at_unknown_ids_are_zero() -> None:
    scores = LexicalScores(np.array([3, 5]), np.array([1.0, 2.0]))

    assert scores.at(np.array([5, 4, 3, 99])).tolist() == [2.0, 0.0, 1.0, 0.0]


def row(pages: dict[int, int], first: int = 0) -> tuple[str, bytes, bytes]:
    """What SQL reads of pages with so many chunks each."""
    heads = [struct.pack(">iii", page, 50, POSTING.itemsize * n) for page, n in pages.items()]
    chunks = [(place, page % 200, first) for page, n in pages.items() for place in range(n)]
    return "port", b"".join(heads), np.array(chunks, POSTING).tobytes()


_PAGES = st.dictionaries(st.integers(1, 30), st.integers(1, 4))


@given(st.lists(_PAGES, max_size=3), st.sets(st.integers(1, 30)), _PAGES)
def test_pages_that_are_left_out_leave_the_postings_of_the_others(
    stored: list[dict[int, int]], gone: set[int], others: dict[int, int]
) -> None:
    rows = [row(pages) for pages in stored]
    kept = [row({page: n for page, n in pages.items() if page not in gone}) for pages in stored]

    (found,) = term_postings(["port"], rows, sorted(gone), [row(others, first=1)])

    (expected,) = term_postings(["port"], [*kept, row(others, first=1)])
    for one, other in zip(found[1:], expected[1:], strict=True):
        assert one.tolist() == other.tolist()


@given(
    st.lists(
        st.dictionaries(
            st.tuples(st.integers(1, 5), st.integers(0, 5)),
            st.tuples(st.integers(1, 9), st.integers(1, 60)),
        ),
        max_size=4,
    )
)
def test_scores_do_not_depend_on_the_order_of_postings(
    terms: list[dict[tuple[int, int], tuple[int, int]]],
) -> None:
    totals = CorpusTotals(documents=5, children=30, terms=900)
    forward = [postings(str(i), *(k + v for k, v in t.items())) for i, t in enumerate(terms)]
    backward = [
        postings(str(i), *(k + v for k, v in reversed(t.items()))) for i, t in enumerate(terms)
    ]

    left, _ = score_children(forward, totals)
    right, _ = score_children(backward, totals)

    keys = left.best()
    assert sorted(keys.tolist()) == sorted(right.best().tolist())
    assert left.at(keys) == pytest.approx(right.at(keys))

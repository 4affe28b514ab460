import math
import struct
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.lexical.bm25 import (
    ChildScores,
    CorpusTotals,
    LexicalScores,
    WordScores,
    child_key,
    inverse_document_frequency,
    score_words,
    split_key,
)
from webrag.lexical.postings import POSTING, pack_postings, unpack_rows

Entry = tuple[int, int, int, int]


def row(term: str, entries: Sequence[Entry], page_terms: int = 10) -> tuple[str, bytes, bytes]:
    """What SQL reads of (document, ordinal, frequency, length), each as a page of its own."""
    size = POSTING.itemsize
    heads = [struct.pack(">iii", entry[0], page_terms, size) for entry in entries]
    return term, b"".join(heads), np.array([entry[1:] for entry in entries], POSTING).tobytes()


def scored(
    postings: Mapping[str, Sequence[Entry]], totals: CorpusTotals, page_terms: int = 10
) -> WordScores:
    rows = [row(term, entries, page_terms) for term, entries in postings.items() if entries]
    return score_words(list(postings), unpack_rows(rows), totals)


def reference_bm25(frequency: int, length: int, average: float, count: int, total: int) -> float:
    idf = math.log(1 + (total - count + 0.5) / (count + 0.5))
    return idf * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * length / average))


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**16 - 1))
def test_child_key_gives_back_page_and_ordinal(document: int, ordinal: int) -> None:
    assert split_key(child_key(document, ordinal)) == (document, ordinal)


def test_child_scores_equal_the_formula() -> None:
    totals = CorpusTotals(documents=2, children=4, terms=40)
    entries = {"port": [(1, 0, 2, 8), (2, 1, 1, 12)], "server": [(1, 0, 1, 8)]}

    scores = scored(entries, totals).children

    both = reference_bm25(2, 8, 10, 2, 4) + reference_bm25(1, 8, 10, 1, 4)
    keys = scores.best()
    assert keys.tolist() == [child_key(1, 0), child_key(2, 1)]
    assert scores.at(keys) == pytest.approx([both, reference_bm25(1, 12, 10, 2, 4)])


def test_an_identifier_outweighs_its_parts_however_often_they_are_repeated() -> None:
    totals = CorpusTotals(documents=2, children=20, terms=200)
    entries = {
        "=vec::new": [(1, 0, 1, 10)],
        "vec": [(1, 0, 1, 10), (2, 0, 200, 10)],
        "new": [(1, 0, 1, 10), (2, 0, 200, 10)],
    }

    found = scored(entries, totals)

    assert found.children.best(1).tolist() == [child_key(1, 0)]
    assert found.pages.ids[found.pages.scores.argmax()] == 1


def test_term_weights_leave_out_what_an_identifier_counts_more() -> None:
    totals = CorpusTotals(1, 9, 90)

    idf = scored({"=vec::new": [], "vec": []}, totals).idf

    assert idf["=vec::new"] == idf["vec"]


def test_pairs_of_hiragana_tell_less_than_others_as_rare() -> None:
    entries = {"まし": [(1, 0, 1, 10)], "設定": [(2, 0, 1, 10)], "した": []}

    found = scored(entries, CorpusTotals(2, 9, 90))

    assert found.idf["まし"] == pytest.approx(found.idf["設定"] / 3)
    assert found.children.best(1).tolist() == [child_key(2, 0)]
    assert found.pages.ids[found.pages.scores.argmax()] == 2


def test_term_weights_cover_terms_that_occur_nowhere() -> None:
    idf = scored({"absent": []}, CorpusTotals(1, 9, 90)).idf

    assert idf == {"absent": inverse_document_frequency(0, 9)}


def test_a_term_in_every_child_still_weighs_more_than_nothing() -> None:
    assert inverse_document_frequency(7, 7) > 0


def test_page_scores_sum_a_pages_children_and_the_best_page_has_one() -> None:
    totals = CorpusTotals(documents=3, children=6, terms=60)
    entries = {"port": [(1, 0, 1, 10), (1, 3, 2, 10), (2, 0, 1, 10)]}

    pages = scored(entries, totals, page_terms=20).pages

    expected = reference_bm25(1, 20, 20, 2, 3) / reference_bm25(3, 20, 20, 2, 3)
    assert pages.ids.tolist() == [1, 2]
    assert pages.scores == pytest.approx([1.0, expected])


def test_nothing_matches_an_empty_corpus() -> None:
    found = scored({"port": []}, CorpusTotals())

    assert found.children.best(5).tolist() == []
    assert found.children.at(np.array([1, 2])).tolist() == [0.0, 0.0]
    assert found.pages.ids.tolist() == []


def test_best_orders_by_score_then_by_id() -> None:
    pages, ends = np.array([3, 5, 9]), np.array([1, 2, 3])
    scores = ChildScores(pages, ends, np.array([1.0, 2.0, 1.0]))

    assert scores.best(2).tolist() == [child_key(5, 0), child_key(3, 0)]


@given(st.integers(1, 3_000), st.integers(1, 9), st.integers(1, 100), st.integers(0, 99))
def test_best_of_many_are_those_of_sorting_all(
    count: int, different: int, limit: int, seed: int
) -> None:
    values = np.random.default_rng(seed).integers(0, different + 1, count).astype(float)

    found = ChildScores(np.array([0]), np.array([count]), values).best(limit).tolist()

    order = sorted(range(count), key=lambda place: (-values[place], place))
    assert found == [place for place in order if values[place] > 0][:limit]


@given(st.dictionaries(st.tuples(st.integers(1, 9), st.integers(0, 30)), st.integers(1, 9)))
def test_children_are_told_apart_by_page_and_place(held: dict[tuple[int, int], int]) -> None:
    entries = {"port": [(*place, count, 20) for place, count in sorted(held.items())]}

    scores = scored(entries, CorpusTotals(9, 279, 5_580)).children

    every = np.array([child_key(page, place) for page in range(1, 10) for place in range(31)])
    is_held = [split_key(key) in held for key in every.tolist()]
    assert (scores.at(every) > 0).tolist() == is_held
    assert len(scores.best()) == len(held)


def test_scores_at_unknown_ids_are_zero() -> None:
    scores = LexicalScores(np.array([3, 5]), np.array([1.0, 2.0]))

    assert scores.at(np.array([5, 4, 3, 99])).tolist() == [2.0, 0.0, 1.0, 0.0]


@given(
    st.lists(
        st.dictionaries(st.tuples(st.integers(1, 5), st.integers(0, 5)), st.integers(1, 9)),
        max_size=4,
    )
)
def test_scores_do_not_depend_on_the_order_of_postings(
    terms: list[dict[tuple[int, int], int]],
) -> None:
    totals = CorpusTotals(documents=5, children=30, terms=900)
    # A chunk has one length, whatever the term.
    forward = {
        str(i): [(page, place, n, 20 + page * place) for (page, place), n in t.items()]
        for i, t in enumerate(terms)
    }
    backward = {term: entries[::-1] for term, entries in forward.items()}

    left = scored(forward, totals).children
    right = scored(backward, totals).children

    keys = left.best()
    assert sorted(keys.tolist()) == sorted(right.best().tolist())
    assert left.at(keys) == pytest.approx(right.at(keys))


Page = list[list[str]]
"""The terms of each chunk."""

_HEAD = np.dtype([("document", ">i4"), ("terms", ">i4"), ("bytes", ">i4")])
_TERMS = ["alpha", "beta", "gamma"]

chunks = st.lists(st.sampled_from(_TERMS), max_size=4)
pages = st.dictionaries(st.integers(1, 40), st.lists(chunks, max_size=4), max_size=6)


def rows_of(stored: dict[int, Page]) -> list[tuple[str, bytes, bytes]]:
    """What SQL reads of the pages: a row for each term, its pages in ascending order."""
    heads: dict[str, list[tuple[int, int, int]]] = {}
    bodies: dict[str, bytes] = {}
    for number, page in sorted(stored.items()):
        count = sum(map(len, page))
        for term, _, packed in pack_postings(page):
            heads.setdefault(term, []).append((number, count, len(packed)))
            bodies[term] = bodies.get(term, b"") + packed
    return [(term, np.array(each, _HEAD).tobytes(), bodies[term]) for term, each in heads.items()]


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


@given(pages)
def test_rows_of_whole_pages_score_as_bm25_is_defined(stored: dict[int, Page]) -> None:
    found = score_words(_TERMS, unpack_rows(rows_of(stored)), totals_of(stored)).children

    keys = found.best()
    scores = dict(zip(keys.tolist(), found.at(keys).tolist(), strict=True))
    assert scores == pytest.approx(defined_scores(stored))

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from webrag.retrieval.chunk_search import (
    Candidate,
    drop_repeated_texts,
    fit_budget,
    group_by_parent,
    in_reading_order,
)
from webrag.retrieval.models import RetrievedChunk, WordingScores

PARENTS = [UUID(int=number) for number in range(1, 5)]


def candidate(key: int, fused: float, **changes: Any) -> Candidate:
    values: dict[str, Any] = {
        "key": key,
        "document": 1,
        "parent_id": PARENTS[0],
        "parent_tokens": 100,
        "text_hash": None,
        "depth_weight": 1.0,
        "scores": (WordingScores(similarity=0.5, lexical=1.0, page_lexical=1.0, fused=fused),),
    }
    return Candidate(**values | changes)


def chunk(url: str, index: int, score: float) -> RetrievedChunk:
    return RetrievedChunk(
        chunk_id=uuid4(),
        document_id=uuid4(),
        source_url=url,
        site="a.test",
        title=None,
        text="x",
        section_heading=None,
        chunk_index=index,
        char_start=0,
        char_end=1,
        token_start=0,
        token_end=1,
        score=score,
        raw_similarity=None,
        depth=0,
        fetched_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_a_parent_scores_as_its_best_child() -> None:
    hits = group_by_parent([candidate(1, 0.4), candidate(2, 0.9), candidate(3, 0.1)])

    assert [(hit[0].score, [match.key for match in hit]) for hit in hits] == [(0.9, [2, 1, 3])]


def test_depth_reorders_parents_with_close_scores() -> None:
    deep = candidate(1, 0.80, depth_weight=0.9, parent_id=PARENTS[0])
    named = candidate(2, 0.75, parent_id=PARENTS[1])

    hits = group_by_parent([deep, named])

    assert [hit[0].parent_id for hit in hits] == [PARENTS[1], PARENTS[0]]


def test_a_clearly_better_deep_page_stays_first() -> None:
    deep = candidate(1, 0.90, depth_weight=0.85, parent_id=PARENTS[0])
    named = candidate(2, 0.72, parent_id=PARENTS[1])

    assert group_by_parent([named, deep])[0][0].parent_id == PARENTS[0]


def test_repeated_texts_stay_together_on_the_page_with_the_best_child() -> None:
    first = [
        candidate(11, 0.9, document=1, text_hash=b"a"),
        candidate(12, 0.3, document=1, text_hash=b"b"),
    ]
    copy = [
        candidate(21, 0.8, document=2, text_hash=b"a"),
        candidate(22, 0.4, document=2, text_hash=b"b"),
    ]

    assert drop_repeated_texts([*copy, *first]) == first


def test_repeated_texts_of_equal_pages_stay_nearer_to_the_named_pages() -> None:
    deep = candidate(1, 0.9, document=1, text_hash=b"a", depth_weight=0.9)
    named = candidate(2, 0.9, document=2, text_hash=b"a")

    assert drop_repeated_texts([deep, named]) == [named]


def test_children_without_a_hash_are_never_taken_for_copies() -> None:
    children = [candidate(1, 0.9), candidate(2, 0.9)]

    assert drop_repeated_texts(children) == children


@given(st.lists(st.integers(0, 50), max_size=20), st.integers(1, 120))
def test_the_budget_is_kept_by_all_but_a_single_result(tokens: list[int], budget: int) -> None:
    kept, is_cut = fit_budget(tokens, lambda item: item, budget)

    assert sum(kept) <= budget or len(kept) == 1
    assert bool(kept) == bool(tokens)
    assert kept == tokens[: len(kept)]
    assert is_cut == (len(kept) < len(tokens))


def test_chunks_are_grouped_by_page_in_reading_order() -> None:
    chunks = [chunk("b", 5, 0.9), chunk("a", 2, 0.5), chunk("b", 1, 0.2), chunk("a", 0, 0.6)]

    grouped = in_reading_order(chunks, chunk=lambda each: each, score=lambda each: each.score)

    assert [(each.source_url, each.chunk_index) for each in grouped] == [
        ("b", 1),
        ("b", 5),
        ("a", 0),
        ("a", 2),
    ]

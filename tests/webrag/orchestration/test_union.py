import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.orchestration.models import AnswerUnit, SubQueryResult
from webrag.orchestration.ranking.reranker import in_order_of_units, merge

from .conftest import build_chunk, build_ranked, build_result

LONG = " ".join(f"word{number}" for number in range(100))


def part(*ranked: Any, name: str = "part") -> SubQueryResult:
    return SubQueryResult(sub_query=name, retrieval=build_result(), ranked=ranked)


def merged(*parts: Any, ceiling: float = 0.85, budget: int = 10_000) -> Any:
    return merge(parts, redundancy_ceiling=ceiling, token_budget=budget)


def test_chunk_found_twice_keeps_its_best_score_and_its_finder() -> None:
    chunk = build_chunk("shared")
    low, high = build_ranked(0.4, chunk=chunk), build_ranked(0.7, chunk=chunk)

    (item,) = merged(part(low, name="first"), part(high, name="second")).chunks

    assert (item.reranked_score, item.source_sub_query) == (0.7, "second")


def test_single_query_leaves_no_finder() -> None:
    (item,) = merged(part(build_ranked(0.4))).chunks

    assert item.source_sub_query is None


def test_near_duplicate_with_the_lower_score_is_left_out() -> None:
    best, copy = build_ranked(0.9, LONG), build_ranked(0.8, LONG + " end")

    found = merged(part(copy, best))

    assert (found.chunks, found.redundant) == ((best,), 1)


def test_similar_texts_below_the_ceiling_both_stay() -> None:
    found = merged(part(build_ranked(0.9, LONG), build_ranked(0.8, LONG[: len(LONG) // 2])))

    assert (len(found.chunks), found.redundant) == (2, 0)


def test_budget_keeps_the_best() -> None:
    ranked = [build_ranked(score, tokens=100) for score in (0.9, 0.8, 0.7)]

    found = merged(part(*ranked), budget=200)

    assert (found.chunks, found.trimmed) == (tuple(ranked[:2]), 1)


def test_budget_never_empties_the_result() -> None:
    ranked = [build_ranked(0.9, tokens=500)]

    assert merged(part(*ranked), budget=10).chunks == tuple(ranked)


def test_what_is_best_for_each_part_comes_in_its_turn() -> None:
    well = [build_ranked(0.9 - n / 100) for n in range(8)]
    badly = [build_ranked(0.3 - n / 100) for n in range(3)]
    results = (part(*well, name="a"), part(*badly, name="b"))

    found = merge(results, parts=("a", "b"), redundancy_ceiling=0.85, token_budget=10_000).chunks

    places = [[item.chunk for item in found].index(item.chunk) + 1 for item in badly]
    assert places == [2, 4, 6]
    assert found[0] == well[0].model_copy(update={"source_sub_query": "a"})


def test_nothing_merges_to_nothing() -> None:
    assert merged().chunks == ()


chunks = [
    build_chunk(f"text number {n} {'x' * n}", tokens=n * 10, chunk_index=n) for n in range(1, 9)
]
rankings = st.lists(
    st.lists(
        st.builds(
            lambda chunk, score: build_ranked(score, chunk=chunk),
            st.sampled_from(chunks),
            st.floats(0, 1),
        ),
        max_size=6,
    ),
    max_size=4,
)


@given(rankings, st.integers(1, 300), st.randoms())
def test_order_of_the_parts_does_not_matter(lists: Any, budget: Any, rng: random.Random) -> None:
    parts = [part(*ranked, name=str(position)) for position, ranked in enumerate(lists)]
    shuffled = list(parts)
    rng.shuffle(shuffled)

    assert merged(*parts, budget=budget) == merged(*shuffled, budget=budget)


@given(rankings, st.integers(1, 300))
def test_result_is_ordered_distinct_and_within_budget(lists: Any, budget: Any) -> None:
    found = merged(*(part(*ranked) for ranked in lists), budget=budget).chunks
    scores = [item.reranked_score for item in found]

    assert scores == sorted(scores, reverse=True)
    assert len({item.chunk.chunk_id for item in found}) == len(found)
    assert len(found) == 1 or sum(item.chunk.token_count for item in found) <= budget


def unit_of(ranked: Any, score: float) -> AnswerUnit:
    return AnswerUnit(chunk_id=ranked.chunk.chunk_id, char_start=0, char_end=1, score=score)


def test_passages_come_in_the_order_of_their_best_units_with_the_scores_they_had() -> None:
    first, second, third, last = (build_ranked(score) for score in (0.9, 0.6, 0.5, 0.1))
    units = [unit_of(third, 14.0), unit_of(first, 1.0), unit_of(third, 0.0)]

    found = in_order_of_units((first, second, third, last), units)

    assert [item.chunk for item in found] == [x.chunk for x in (third, second, first, last)]
    assert [item.reranked_score for item in found] == pytest.approx([0.9, 0.6, 0.5, 0.1])


def test_little_better_unit_does_not_lift_a_much_worse_passage() -> None:
    good, bad = build_ranked(0.9), build_ranked(0.1)

    found = in_order_of_units((good, bad), [unit_of(bad, 1.1), unit_of(good, 1.0)])

    assert found == (good, bad)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(-9, 9), st.floats(0, 1)), min_size=1, max_size=12)
)
def test_units_leave_what_is_ranked_within_three_times_its_place_whatever_wordings_scored(
    scores: list[tuple[float, float, float]],
) -> None:
    ranked = [
        build_ranked(score).model_copy(update={"wording_scores": (own, score)})
        for score, _, own in sorted(scores, reverse=True)
    ]
    units = [unit_of(item, score) for item, (_, score, _) in zip(ranked, scores, strict=True)]

    found = in_order_of_units(ranked, units)

    shown = {item.chunk.chunk_id: item.reranked_score for item in found}
    assert list(shown.values()) == sorted(shown.values(), reverse=True)
    assert max(shown.values()) == max(score for score, *_ in scores)
    for item in ranked:
        place = sum(each.reranked_score >= item.reranked_score for each in ranked)
        better = sum(each > shown[item.chunk.chunk_id] for each in shown.values())
        assert better < 3 * place
    assert len(shown) == len(ranked)


def test_listing_that_was_lowered_stays_behind_what_scores_better() -> None:
    prose = [build_ranked(0.9 - place / 20) for place in range(8)]
    listing = build_ranked(0.475).model_copy(update={"wording_scores": (0.95, 0.0)})

    found = in_order_of_units((*prose, listing), [unit_of(item, 1.0) for item in prose])

    assert found == (*prose, listing)

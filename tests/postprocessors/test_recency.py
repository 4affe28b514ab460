import copy
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore
from llama_index.postprocessor.webrag import RecencyBoost
from llama_index.postprocessor.webrag.filters import parse_date

from .conftest import node, texts

NOW = datetime(2026, 7, 1, tzinfo=UTC)


def boost(**fields: Any) -> RecencyBoost:
    return RecencyBoost(**{"now": NOW, **fields})


def dated(text: str, score: float, days: float) -> NodeWithScore:
    return node(text, score, published_at=(NOW - timedelta(days=days)).isoformat())


def test_newer_node_wins_among_equals() -> None:
    found = boost().postprocess_nodes([dated("old", 0.5, 900), dated("new", 0.5, 3)])

    assert texts(found) == ["new", "old"]


def test_recency_never_outweighs_a_clearly_better_score() -> None:
    found = boost(weight=0.05).postprocess_nodes([dated("new", 0.5, 0), dated("old", 0.6, 9000)])

    assert texts(found) == ["old", "new"]


def test_boost_halves_with_the_half_life() -> None:
    found = boost(weight=0.1, half_life_days=30).postprocess_nodes(
        [dated("now", 0.5, 0), dated("month", 0.5, 30), dated("two", 0.5, 60)]
    )

    assert [item.score for item in found] == pytest.approx([0.6, 0.55, 0.525])


def test_window_gives_all_or_nothing() -> None:
    found = boost(weight=0.1, window_days=365).postprocess_nodes(
        [dated("in", 0.5, 365), dated("out", 0.5, 366)]
    )

    assert [item.score for item in found] == pytest.approx([0.6, 0.5])


def test_scores_beyond_the_unit_interval_are_mapped_to_it_first() -> None:
    found = boost(weight=0.1).postprocess_nodes([node("a", 12.0), node("b", 7.0), node("c", 2.0)])

    assert [item.score for item in found] == [1.0, 0.5, 0.0]


def test_date_in_the_future_counts_as_now() -> None:
    (found,) = boost(weight=0.1).postprocess_nodes([dated("x", 0.5, -400)])

    assert found.score == pytest.approx(0.6)


def test_first_key_with_a_date_counts() -> None:
    (found,) = boost(weight=0.1, date_keys=["seen", "made"]).postprocess_nodes(
        [node("x", 0.5, seen="never", made=NOW)]
    )

    assert found.score == pytest.approx(0.6)


@pytest.mark.parametrize("value", [None, "", "soon", 0, -1, 10**9, True, 3.5, [], {}])
def test_what_is_no_date_gets_nothing(value: Any) -> None:
    (found,) = boost(weight=0.1).postprocess_nodes([node("x", 0.5, published_at=value)])

    assert found.score == 0.5


@pytest.mark.parametrize(
    "value",
    [
        "2025-03-04",
        " 2025-03-04T00:00:00Z ",
        "2025-03-04T02:00:00+02:00",
        date(2025, 3, 4),
        datetime(2025, 3, 4),  # noqa: DTZ001
        datetime(2025, 3, 4, 2, tzinfo=timezone(timedelta(hours=2))),
    ],
    ids=repr,
)
def test_dates_are_read_in_every_common_form(value: Any) -> None:
    assert parse_date(value) == datetime(2025, 3, 4, tzinfo=UTC)


def test_year_is_its_first_day() -> None:
    assert parse_date(2025) == datetime(2025, 1, 1, tzinfo=UTC)


def test_current_time_is_used_by_default() -> None:
    fresh = datetime.now(UTC).isoformat()

    (found,) = RecencyBoost(weight=0.1).postprocess_nodes([node("x", 0.5, published_at=fresh)])

    assert found.score == pytest.approx(0.6, abs=1e-3)


def test_now_without_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="now needs a time zone"):
        RecencyBoost(now=datetime(2026, 1, 1))  # noqa: DTZ001


nodes = st.lists(
    st.builds(
        lambda score, when: node("x", score, published_at=when),
        st.none() | st.floats(-1e6, 1e6),
        st.none() | st.text(max_size=5) | st.datetimes() | st.dates() | st.integers(),
    ),
    max_size=8,
)


@given(nodes, st.floats(0, 1))
async def test_nothing_is_lost_sums_stay_in_range_and_inputs_stay(
    given_nodes: list[NodeWithScore], weight: float
) -> None:
    before = copy.deepcopy(given_nodes)
    lift = boost(weight=weight)

    found = lift.postprocess_nodes(given_nodes)

    assert given_nodes == before
    assert found == await lift.apostprocess_nodes(given_nodes)
    assert {item.node.node_id for item in found} == {item.node.node_id for item in given_nodes}
    scores = [item.get_score() for item in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 + weight for score in scores)

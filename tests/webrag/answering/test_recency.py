from datetime import UTC, datetime, timedelta

import pytest

from webrag.answering.evidence import boosted, freshness
from webrag.orchestration.confidence import LOCAL

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("age_years", "expected"), [(0, 1.0), (1.5, 0.5), (3, 0.0), (20, 0.0), (-2, 1.0)]
)
def test_freshness_falls_to_nothing_at_the_end_of_the_window(
    age_years: float, expected: float
) -> None:
    published = NOW - timedelta(days=365.25 * age_years)

    assert freshness(published, window_years=3, now=NOW) == pytest.approx(expected, abs=1e-9)


def test_page_without_a_date_is_not_fresh() -> None:
    assert freshness(None, window_years=3, now=NOW) == 0.0


def test_date_without_a_zone_counts_as_utc() -> None:
    assert freshness(datetime(2026, 1, 1), window_years=3, now=NOW) == 1.0  # noqa: DTZ001


def test_score_is_normalised_before_the_boost_is_added() -> None:
    answered = boosted(LOCAL.answered_score, 1.0, profile=LOCAL, boost=0.05)

    assert answered == pytest.approx(0.85)

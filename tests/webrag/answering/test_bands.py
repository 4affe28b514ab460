from typing import Any

import pytest

from webrag.answering.judging import (
    answer_confidence,
    band_of,
    diagnoses,
    without_answer,
)
from webrag.answering.models import CitationTally, RetrieveStep

KEPT = CitationTally(kept=2)


@pytest.mark.parametrize(
    ("confidence", "reason"),
    [
        (1.0, "confidence_high"),
        (0.80, "confidence_high"),
        (0.7999, "confidence_medium_caveated"),
        (0.70, "confidence_medium_caveated"),
        (0.6999, "confidence_low_partial"),
        (0.50, "confidence_low_partial"),
        (0.4999, "confidence_too_low_clarify"),
        (0.0, "confidence_too_low_clarify"),
    ],
)
def test_bounds_belong_to_the_band_above_them(confidence: float, reason: str) -> None:
    assert band_of(confidence).reason == reason


def test_only_the_highest_band_has_nothing_to_add() -> None:
    assert [bool(band_of(at).notice) for at in (0.9, 0.75, 0.6, 0.2)] == [False, True, True, True]


def test_clarification_stands_before_what_was_found() -> None:
    assert band_of(0.2).comes_first


def test_confidence_weighs_passages_and_judgement() -> None:
    assert answer_confidence(1.0, 0.5, KEPT) == pytest.approx(0.8)


def test_confidence_of_an_answer_is_the_number_that_is_shown() -> None:
    found = answer_confidence(0.7777, 0.3333, KEPT)

    assert found == float(f"{found:.2f}")


def test_answer_without_citations_has_no_confidence() -> None:
    assert answer_confidence(1.0, 1.0, CitationTally()) == 0.0


def test_citations_that_did_not_hold_lower_the_confidence() -> None:
    tally = CitationTally(kept=2, removed=1, unsupported=1)

    assert answer_confidence(1.0, 1.0, tally) == pytest.approx(0.75)


def test_writer_that_gave_up_gets_the_lowest_band() -> None:
    confidence = answer_confidence(1.0, 1.0, KEPT, gave_up=True)

    assert band_of(confidence).reason == "confidence_too_low_clarify"


def test_whatever_a_model_thinks_an_answer_without_a_part_is_one_in_part() -> None:
    confidence = answer_confidence(0.69, 1.0, KEPT, is_in_part=True)

    assert band_of(confidence).reason == "confidence_low_partial"


def test_without_a_model_the_confidence_is_the_judges() -> None:
    assert answer_confidence(0.87, 0.87, KEPT) == 0.87


def test_less_than_half_of_the_words_is_low_coverage() -> None:
    steps = [
        RetrieveStep(year_mode="none", recent_year_window=3, coverage=each) for each in (0.49, 0.5)
    ]

    assert [diagnoses(step, stored=1) for step in steps] == [("low_coverage",), ()]


def a_step(**values: Any) -> RetrieveStep:
    return RetrieveStep(**{"year_mode": "none", "recent_year_window": 3, **values})


@pytest.mark.parametrize(
    ("step", "stored", "said"),
    [
        pytest.param(a_step(), 0, "Nothing is stored yet", id="empty-corpus"),
        pytest.param(a_step(requested_years=(2019,)), 0, "Nothing is stored yet",
                     id="empty-corpus-and-year"),
        pytest.param(a_step(documents=7), 7, "7 pages were searched", id="other-subject"),
        pytest.param(a_step(documents=1), 7, "1 page was searched", id="named-page"),
        pytest.param(a_step(requested_years=(2019, 2020)), 7, "published in 2019, 2020",
                     id="no-page-of-the-year"),
        pytest.param(a_step(documents=7, candidates=4), 7, "near enough", id="nothing-quotable"),
    ],
)  # fmt: skip
def test_run_without_quotations_says_why_and_promises_none(
    step: RetrieveStep, stored: int, said: str
) -> None:
    band = without_answer(step, stored=stored)

    assert band.reason == "confidence_too_low_clarify"
    assert said in band.notice
    assert "quoted here" not in band.notice


@pytest.mark.parametrize(
    ("coverage", "stored", "found"),
    [(0.9, 5, ()), (0.2, 5, ("low_coverage",)), (0.0, 0, ("empty_corpus",))],
)
def test_empty_corpus_is_not_taken_for_passages_that_do_not_fit(
    coverage: float, stored: int, found: tuple[str, ...]
) -> None:
    assert diagnoses(a_step(coverage=coverage), stored=stored) == found

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.evaluation.metrics import QuestionScore, comparison_key, mean_figures, score_question
from webrag.evaluation.questions import CitationRecord, Question, ResultRecord, RunRecord
from webrag.evaluation.report import figures


def question(*quotes: str, page: str = "a.html", type: str = "factual") -> Question:
    return Question.model_validate(
        {
            "id": "q",
            "query": "why?",
            "type": type,
            "gold": [{"page": page, "quote": quote} for quote in quotes],
        }
    )


def record(*texts: str, url: str = "http://127.0.0.1:1/a.html", **fields: object) -> RunRecord:
    retrieved = [ResultRecord(url=url, text=text) for text in texts]
    return RunRecord.model_validate({"id": "q", "retrieved": retrieved, **fields})


def shown(*scores: QuestionScore) -> dict[str, str]:
    return dict(figures(scores))


def test_comparison_ignores_case_markup_and_width() -> None:
    assert comparison_key("The **Ｗａｌ**-level\nis `on`.") == "thewallevelison"


@given(st.text())
def test_comparison_key_of_a_key_is_the_key(text: str) -> None:
    assert comparison_key(comparison_key(text)) == comparison_key(text)


def test_evidence_at_rank_counts_only_the_first_results() -> None:
    score = score_question(question("needle"), record("hay", "the needle"))

    assert (score.evidence[1], score.evidence[3]) == (0.0, 1.0)


def test_evidence_is_the_share_of_gold_quotes_found() -> None:
    score = score_question(question("one", "two"), record("one only"))

    assert score.evidence[1] == 0.5


def test_alternative_passage_counts_as_the_gold() -> None:
    asked = Question.model_validate(
        {
            "id": "q",
            "query": "why?",
            "gold": [{"page": "a", "quote": "x1", "alts": [{"page": "b", "quote": "y1"}]}],
        }
    )

    assert score_question(asked, record("y1")).evidence[1] == 1.0


def test_word_budget_cuts_a_long_result() -> None:
    score = score_question(question("needle"), record("hay " * 600 + "needle"))

    assert (score.words[500], score.words[1000]) == (0.0, 1.0)


def test_word_budget_spans_results() -> None:
    score = score_question(question("needle"), record("hay " * 499, "x needle", "needle"))

    assert score.words[500] == 0.0


def test_page_recall_matches_pages_below_a_site_folder() -> None:
    score = score_question(question("x"), record("y", url="http://127.0.0.1:1/site/a.html#top"))

    assert score.pages[1] == 1.0


def test_page_recall_matches_a_gold_page_with_a_leading_slash() -> None:
    assert score_question(question("x", page="/a.html"), record("y")).pages[1] == 1.0


def test_reciprocal_rank_is_of_the_first_result_with_a_gold_quote() -> None:
    score = score_question(question("needle"), record("hay", "needle", "needle"))

    assert score.reciprocal_rank == 0.5


def test_question_without_gold_is_not_judged() -> None:
    asked = Question.model_validate({"id": "q", "query": "why?"})

    assert score_question(asked, record("x")).answerable is None


def test_citation_fidelity_is_the_verbatim_share() -> None:
    citations = [
        CitationRecord(url="u", verbatim_text="x", verbatim=True),
        CitationRecord(url="u", verbatim_text="y", verbatim=False),
    ]
    score = score_question(question("x"), record("x", citations=citations))

    assert shown(score)["citation fidelity"] == "0.500"


def test_abstention_is_reported_apart_for_unanswerable_questions() -> None:
    answerable = score_question(question("x"), record("x", abstained=False))
    hopeless = score_question(
        Question.model_validate({"id": "q", "query": "why?", "gold": []}),
        record("x", abstained=True),
    )
    rows = shown(answerable, hopeless)

    assert rows["abstained, no answer on the site"] == "1.000"
    assert rows["abstained, answerable"] == "0.000"


def test_question_that_failed_is_no_abstention() -> None:
    hopeless = Question.model_validate({"id": "q", "query": "why?", "gold": []})
    died = record("x", abstained=True).model_copy(update={"error": "The database is away."})

    assert shown(score_question(hopeless, died))["abstained, no answer on the site"] == "-"


def test_means_without_anything_to_average_are_nan() -> None:
    asked = Question.model_validate({"id": "q", "query": "why?"})

    means = mean_figures([score_question(asked, record("x"))])

    assert math.isnan(means["mean reciprocal rank"])


@pytest.mark.parametrize(("percent", "expected"), [(50, "2 ms"), (95, "4 ms")])
def test_percentiles_are_taken_by_nearest_rank(percent: int, expected: str) -> None:
    scores = [score_question(question("x"), record("x", ms=float(ms))) for ms in (4, 1, 3, 2)]

    assert shown(*scores)[f"time per question, p{percent}"] == expected


def test_gold_found_in_one_result_takes_consecutive_places() -> None:
    score = score_question(question("one", "two"), record("hay", "one and two"))

    assert score.reciprocal_rank == 0.5
    assert score.hit_rate == 1.0
    assert score.ndcg == pytest.approx((1 / math.log2(3) + 1 / 2) / (1 + 1 / math.log2(3)))


def test_gold_repeated_in_later_results_counts_once() -> None:
    assert score_question(question("one"), record("one", "one")).ndcg == 1.0


def test_ranking_figures_look_at_the_first_ten_results() -> None:
    score = score_question(question("one"), record(*["hay"] * 10, "one"))

    assert (score.hit_rate, score.ndcg, score.reciprocal_rank) == (0.0, 0.0, 1 / 11)

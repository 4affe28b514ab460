from webrag.evaluation.metrics import QuestionScore
from webrag.evaluation.report import figures, figures_by_type

RANKS = {1: 1.0, 3: 1.0, 5: 1.0, 10: 1.0}
WORDS = {500: 1.0, 1000: 0.5, 2000: 1.0}


def score(type: str, answerable: bool | None = True) -> QuestionScore:
    unjudged = QuestionScore(id="q", type=type, answerable=answerable)
    if not answerable:
        return unjudged
    shares = {"evidence": RANKS, "all_evidence": RANKS, "pages": RANKS, "words": WORDS}
    return unjudged.model_copy(update={**shares, "reciprocal_rank": 1.0})


def test_figures_without_gold_show_a_dash_instead_of_a_number() -> None:
    assert dict(figures([score("all", None)]))["mean reciprocal rank"] == "-"


def test_types_are_listed_by_name_and_without_the_unanswerable() -> None:
    rows = figures_by_type([score("multi"), score("factual"), score("unanswerable", False)])

    assert [row[0] for row in rows] == ["type", "factual", "multi"]


def test_row_of_a_type_shows_its_word_budget_figure() -> None:
    header, row = figures_by_type([score("multi")])

    assert dict(zip(header, row, strict=True))["1000 words"] == "0.500"

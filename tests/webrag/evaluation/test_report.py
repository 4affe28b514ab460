from webrag.evaluation.metrics import QuestionScore, compare_scores
from webrag.evaluation.questions import Question, ResultRecord, RunRecord
from webrag.evaluation.report import comparison_rows, figures, figures_by_type, report_evidence

RANKS = {1: 1.0, 3: 1.0, 5: 1.0, 10: 1.0}
WORDS = {500: 1.0, 1000: 0.5, 2000: 1.0}


def score(type: str, answerable: bool | None = True) -> QuestionScore:
    unjudged = QuestionScore(id="q", type=type, answerable=answerable)
    if not answerable:
        return unjudged
    shares = {"evidence": RANKS, "pages": RANKS, "words": WORDS}
    return unjudged.model_copy(update={**shares, "reciprocal_rank": 1.0})


def test_figures_without_gold_show_a_dash_instead_of_a_number() -> None:
    assert dict(figures([score("all", None)]))["mean reciprocal rank"] == "-"


def test_types_are_listed_by_name_and_without_the_unanswerable() -> None:
    rows = figures_by_type([score("multi"), score("factual"), score("unanswerable", False)])

    assert [row[0] for row in rows] == ["type", "factual", "multi"]


def test_row_of_a_type_shows_its_word_budget_figure() -> None:
    header, row = figures_by_type([score("multi")])

    assert dict(zip(header, row, strict=True))["1000 words"] == "0.500"


def test_row_of_a_type_counts_the_questions_with_all_of_their_evidence() -> None:
    half = score("multi").model_copy(update={"evidence": {**RANKS, 10: 0.5}})

    header, row = figures_by_type([score("multi"), half])

    assert dict(zip(header, row, strict=True))["all @10"] == "0.500"


def asked(name: str, *quotes: str) -> Question:
    gold = [{"page": "a.html", "quote": quote} for quote in quotes]
    return Question.model_validate({"id": name, "query": f"Why {name}?", "gold": gold})


def test_report_has_figures_and_names_every_question_that_went_wrong() -> None:
    questions = [asked("good", "yes"), asked("missed", "so it is"), asked("hopeless")]
    records = [
        RunRecord(id="good", retrieved=(ResultRecord(url="u1", text="yes"),)),
        RunRecord(id="missed", retrieved=(ResultRecord(url="u2", text="no"),), error="late"),
        RunRecord(id="hopeless", abstained=True),
    ]

    tables, named = report_evidence(questions, records)

    assert ("nDCG @10", "0.500") in tables["Figures"]
    assert named == {
        "Evidence missing from the first 10 passages": ["missed"],
        "Answered although the site does not say it": [],
        "Failed": ["missed"],
    }


def test_report_names_what_was_believed_without_evidence() -> None:
    question, record = asked("hopeless"), RunRecord(id="hopeless")

    named = report_evidence([question], [record]).questions

    assert named["Answered although the site does not say it"] == ["hopeless"]


def test_comparison_rows_have_one_row_per_figure() -> None:
    one = {"q": score("all").model_copy(update={"hit_rate": 1.0, "ndcg": 1.0})}

    header, *rows = comparison_rows(compare_scores(one, one))

    assert len(rows) == 10
    assert {len(row) for row in rows} == {len(header)}
    assert rows[0][:4] == ("evidence recall @1", "1.000", "1.000", "+0.000")

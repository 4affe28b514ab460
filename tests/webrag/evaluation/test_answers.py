"""How answers are judged by gold quotes."""

import pytest

from webrag.evaluation.metrics import score_answer
from webrag.evaluation.questions import CitationRecord, Question, RunRecord
from webrag.evaluation.report import answer_bands, answer_figures, report_answers

GOLD = [
    {"page": "ports.html", "quote": "port 5432"},
    {"page": "ports.html", "quote": "restart the server"},
]
ASKED = Question(id="q", query="Which port?", type="value", gold=GOLD)  # type: ignore[arg-type]
UNANSWERABLE = Question(id="u", query="Which colour?", gold=())
PAGE = "https://docs.test/ports.html"


def record(*said: str, band: str = "high", cited: str = PAGE) -> RunRecord:
    citation = CitationRecord(url=cited, verbatim_text="It runs.", verbatim=True)
    return RunRecord(id="q", answer=said, citations=(citation,), confidence_band=band, ms=20)


@pytest.mark.parametrize(
    ("said", "verdict", "share"),
    [
        (["It is Port 5432.", "Then *restart* the server."], "right", 1.0),
        (["It is port 5432."], "half", 0.5),
        (["It is port 80."], "wrong", 0.0),
        ([], "wrong", 0.0),
    ],
)
def test_an_answer_is_as_right_as_its_share_of_the_gold(
    said: list[str], verdict: str, share: float
) -> None:
    score = score_answer(ASKED, record(*said))

    assert (score.verdict, score.share) == (verdict, share)


def test_a_quote_that_two_parts_of_an_answer_share_is_in_none_of_them() -> None:
    assert score_answer(ASKED, record("It is port", "5432.")).verdict == "wrong"


@pytest.mark.parametrize(
    ("url", "hit"),
    [
        (PAGE, True),
        (PAGE.replace("docs.test/", "docs.test/en/stable/"), True),
        ("https://docs.test/other.html", False),
    ],
)
def test_a_citation_counts_by_its_page(url: str, hit: bool) -> None:
    assert score_answer(ASKED, record("x", cited=url)).on_gold == (hit,)


@pytest.mark.parametrize(
    ("places", "held"),
    [((0,), True), ((1,), False), ((0, 1), True), ((), False)],
)
def test_a_sentence_is_held_by_the_citations_it_names_alone(
    places: tuple[int, ...], held: bool
) -> None:
    quoted = ("Ports: it listens on *port 5432*.", "It needs a restart.")
    said = RunRecord(
        id="q",
        answer=("It listens on port 5432.",),
        supports=(places,),
        citations=tuple(CitationRecord(url=PAGE, verbatim_text=each) for each in quoted),
    )

    assert score_answer(ASKED, said).held == (held,)


def test_each_band_tells_how_far_it_is_to_be_believed() -> None:
    scores = [
        score_answer(ASKED, record("port 5432, restart the server")),
        score_answer(ASKED, record("port 5432")),
        score_answer(ASKED, record("port 80")),
        score_answer(UNANSWERABLE, record("port 80")),
        score_answer(ASKED, record(band="none")),
    ]

    header, *rows = answer_bands(scores)

    assert header[0] == "confidence"
    assert rows[0] == ("high", "3", "1", "1", "1", "0.667", "1")
    assert rows[3] == ("none", "1", "0", "0", "1", "0.000", "0")


def test_figures_are_of_what_can_be_judged() -> None:
    scores = [
        score_answer(ASKED, record("port 5432")),
        score_answer(UNANSWERABLE, record("It is blue.")),
    ]

    found = dict(answer_figures(scores))

    assert found["gold in the answer"] == "0.500"
    assert found["unanswerable, high or medium"] == "1 of 1"
    assert found["citation fidelity"] == "1.000"


def test_report_names_every_answer_without_its_evidence() -> None:
    questions = [ASKED, UNANSWERABLE]
    records = [record("It is port 80."), record("It is blue.")]

    named = report_answers(questions, records).questions

    assert named == {
        "Right in part": [],
        "Without the evidence": [records[0].id],
        "Answered although the site does not say it": [records[1].id],
    }

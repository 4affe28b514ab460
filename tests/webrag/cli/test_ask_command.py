import json
import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from webrag.answering.models import AnswerCitation, AnswerPart, ManagerResult

Run = Callable[..., Result]

PAGE = """<html><head><title>Kettle manual</title></head><body><main><h1>Kettle manual</h1>
<p>Clean the filter of the kettle every three weeks with citric acid.</p>
<p>More is said about <a href="/tea.html">tea and its temperature</a>.</p></main></body></html>"""
TEA = """<html><head><title>Tea</title></head><body><main><h1>Tea</h1>
<p>Green tea of this manual is brewed at seventy degrees for two minutes.</p>
</main></body></html>"""
LIST = """<html><head><title>Honey</title></head><body><main><h1>Honey</h1>
<p>How to extract honey and how long the honey should rest:</p>
<ol><li>Remove the frames when three quarters are capped.</li>
<li>Scrape the <b>wax</b> with a fork.</li><li>Spin for ten minutes.</li>
<li>Let the honey rest for two days.</li></ol></main></body></html>"""
TABLE = """<html><head><title>Hives</title></head><body><main><h1>Hives</h1>
<p>The hives that the club lends, and their weight.</p>
<table><tr><th>Type</th><th>Frames</th><th>Weight</th></tr>
<tr><td>Langstroth</td><td>10</td><td>24 kg</td></tr>
<tr><td>Dadant</td><td>12</td><td>28 kg</td></tr></table></main></body></html>"""
QUESTION = "How often is the filter of the kettle cleaned?"

CITATION = AnswerCitation(
    number=1, document_id=uuid.uuid4(), verbatim_text="port is 1", plain_text="port is 1",
    link="https://x.test/", source_url="https://x.test/", section_heading=None,
    char_start=5, char_end=9, token_start=0, token_end=9, title="Page", chunk_id=uuid.uuid4(),
)  # fmt: skip
RESULT = ManagerResult(
    state="success",
    states=("execute_plan", "success"),
    query="q",
    answer="The port is 1. [1] It is open. [2]",
    parts=(
        AnswerPart(text="The port is 1.", citations=(1,)),
        AnswerPart(text="It is open.", citations=(2,)),
    ),
    citations=(CITATION, CITATION.model_copy(update={"number": 2})),
    confidence=0.75,
    final_reason="confidence_medium_caveated",
)


@pytest.fixture
def manual(static_site: Callable[..., Any]) -> Any:
    return static_site({"/": PAGE, "/tea.html": TEA})


def test_answer_is_printed_with_citations_and_steps_go_to_standard_error(
    manual: Any, corpus_command: Run
) -> None:
    result = corpus_command(manual, "ask", QUESTION, "--url", f"{manual}/", "--full")

    assert result.exit_code == 0, result.stderr
    quotation = "every three weeks with citric acid.\n\nMore is said about tea and its temperature."
    assert result.stdout.count(f"{quotation} [1]") == 1
    assert "[CITATIONS]\n[1] " in result.stdout
    assert "Confidence: " in result.stdout
    assert result.stderr.startswith("Reading the question\nReading the pages you named\n")


def test_row_is_printed_below_the_header_of_its_table(
    static_site: Callable[..., Any], corpus_command: Run
) -> None:
    site = static_site({"/": TABLE})

    shown = corpus_command(site, "ask", "What is the weight of a Dadant hive?", f"{site}/").stdout

    assert "| Type | Frames | Weight |\n| Dadant | 12 | 28 kg |\n[" in shown


@pytest.mark.parametrize(
    ("page", "question", "mark"),
    [
        (LIST, "How should the honey be extracted and how long should it rest?", "\n"),
        (TABLE, "What is the weight of a Dadant hive?", " | "),
    ],
)
def test_every_quotation_that_is_printed_is_one_that_verify_finds(
    page: str, question: str, mark: str, static_site: Callable[..., Any], corpus_command: Run
) -> None:
    site = static_site({"/": page})
    shown = corpus_command(site, "ask", question, "--url", f"{site}/", "-q", "--full").stdout
    quotations = re.findall(r'^\[\d+\] "(.+?)"$', shown, re.MULTILINE | re.DOTALL)

    verdicts = [
        corpus_command(site, "verify", f"{site}/", each, "--no-live", "--json")
        for each in quotations
    ]

    assert any(mark in each for each in quotations), shown
    assert {json.loads(each.stdout)["checks"][0]["stored"]["state"] for each in verdicts} == {
        "exact"
    }


def test_caveat_follows_the_sentences_of_an_answer_once(manual: Any, corpus_command: Run) -> None:
    question = "How often is the filter of the old kettle cleaned with soap and a brush?"
    asked = ["ask", question, "--url", f"{manual}/", "-q"]

    result = corpus_command(manual, *asked)

    notice = json.loads(corpus_command(manual, *asked, "--json").stdout)["notice"]
    before, caveat, _ = result.stdout.partition(notice)
    assert caveat
    assert "every three weeks" in before
    assert result.stdout.count(notice) == 1


def test_stored_pages_answer_without_a_request(manual: Any, corpus_command: Run) -> None:
    corpus_command(manual, "ingest", f"{manual}/")
    manual.requests.clear()

    result = corpus_command(manual, "ask", QUESTION, "-q")

    assert "every three weeks" in result.stdout
    assert (result.stderr, manual.requests) == ("", [])


def test_deep_follows_links(manual: Any, corpus_command: Run) -> None:
    result = corpus_command(
        manual, "ask", "At how many degrees is green tea brewed?", "--url", f"{manual}/", "--deep"
    )

    assert "seventy degrees" in result.stdout


def test_json_holds_the_whole_result_and_nothing_else(manual: Any, corpus_command: Run) -> None:
    result = corpus_command(manual, "ask", QUESTION, "--url", f"{manual}/", "--json")

    shown = json.loads(result.stdout)
    assert shown["state"] == "success"
    assert shown["parts"][0]["citations"] == [1]


def test_year_without_a_page_asks_for_clarification(manual: Any, corpus_command: Run) -> None:
    corpus_command(manual, "ingest", f"{manual}/")

    result = corpus_command(manual, "ask", QUESTION, "--year", "2019", "--json")

    assert json.loads(result.stdout)["final_reason"] == "confidence_too_low_clarify"


def test_incoherent_question_ends_with_code_1_and_a_polite_reply(
    manual: Any, corpus_command: Run
) -> None:
    result = corpus_command(manual, "ask", "asdfghjkl qwerqwer")

    assert result.exit_code == 1
    assert result.stdout.startswith("Sorry")


@pytest.mark.parametrize("question", ["", "  ", "why " * 5_000])
def test_question_that_cannot_be_one_ends_with_code_2_before_anything_is_started(
    question: str, corpus_command: Run
) -> None:
    result = corpus_command(None, "ask", question)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: The question ")


@pytest.mark.parametrize("options", [("--deep",), ("--year", "20250"), ("--url", "x y")])
def test_unusable_option_ends_with_code_2_before_anything_is_started(
    options: tuple[str, ...], corpus_command: Run
) -> None:
    result = corpus_command(None, "ask", QUESTION, *options)

    assert (result.exit_code, result.stdout) == (2, "")


def test_wordings_lead_to_what_the_question_does_not_name(manual: Any, corpus_command: Run) -> None:
    corpus_command(manual, "ingest", f"{manual}/")

    asked = ("ask", "How do I get rid of limescale?")
    without = corpus_command(manual, *asked)
    result = corpus_command(
        manual, *asked, "--wording", "clean the filter of the kettle with citric acid"
    )

    assert "citric acid. [1]" not in without.stdout
    assert "every three weeks with citric acid. [1]" in result.stdout


def test_shortened_answer_names_no_citation_that_is_not_listed(
    static_site: Callable[..., Any], corpus_command: Run
) -> None:
    site = static_site({"/": LIST})
    asked = ("ask", "How should the honey be extracted and how long should it rest?", f"{site}/")

    whole = corpus_command(site, *asked, "-q").stdout
    shown = corpus_command(site, *asked, "-q", "--top-k", "1").stdout

    assert set(re.findall(r"\[(\d+)\]", shown)) == {"1"} < set(re.findall(r"\[(\d+)\]", whole))


def test_answer_has_as_many_tokens_as_were_asked_for_with_its_blank_lines() -> None:
    from webrag.cli.answer_command import _fitted as fitted
    from webrag.cli.options import Reading
    from webrag.presentation.answer import format_answer
    from webrag.presentation.results import CommandLine
    from webrag.question import Question

    def shown(max_tokens: int | None) -> str:
        reading = Reading(full=True, top_k=None, max_tokens=max_tokens, no_pager=True)
        return format_answer(*fitted(RESULT, Question(text="q"), reading, len, CommandLine()))

    whole = shown(None)

    assert shown(len(whole)) == whole
    assert len(shown(len(whole) - 1)) < len(whole)


def test_site_of_which_nothing_is_stored_is_named_with_what_would_read_it(
    manual: Any, corpus_command: Run
) -> None:
    corpus_command(manual, "ingest", f"{manual}/")

    result = corpus_command(manual, "ask", QUESTION, "nowhere.test", "-q")

    assert result.exit_code == 1
    assert result.stdout.startswith("Nothing of nowhere.test is stored.\n\nTo follow links from")
    assert "confidence" not in result.stdout

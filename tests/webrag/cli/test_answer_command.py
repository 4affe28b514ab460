import json
import re
import shlex
from collections.abc import Callable
from typing import Any, get_args

import click
import pytest
from click.testing import Result

from webrag.cli import main
from webrag.cli.answer_command import answer_command, search_command
from webrag.question import QueryType
from webrag.retrieval.filters import CONTENT_KINDS
from webrag.retrieval.models import RetrievalMode

Run = Callable[..., Result]

START = """<html><head><title>Kettle manual</title></head><body><main><h1>Kettle manual</h1>
<p>The kettle heats water for tea and coffee, and for nothing else at all.</p>
<p>How the filter is cleaned is described in <a href="/care.html">care and cleaning of the
filter</a>.</p></main></body></html>"""
CARE = """<html><head><title>Care</title></head><body><main><h1>Care and cleaning</h1>
<h2>Filter</h2><p>Clean the filter of the kettle every three weeks with citric acid, and rinse
it twice with cold water.</p></main></body></html>"""


@pytest.fixture
def manual(static_site: Callable[..., Any]) -> Any:
    """A page, and the page it links to."""
    return static_site({"/": START, "/care.html": CARE})


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (answer_command, {"intent": get_args(QueryType),
                          "retrieval_mode": get_args(RetrievalMode)}),
        (search_command, {"intent": get_args(QueryType), "retrieval_mode": get_args(RetrievalMode),
                          "has": CONTENT_KINDS}),
    ],
    ids=["answer", "search"],
)  # fmt: skip
def test_choices_are_those_of_the_library(
    command: click.Command, expected: dict[str, tuple[str, ...]]
) -> None:
    offered = {
        param.name: set(param.type.choices)
        for param in command.get_params(click.Context(command))
        if isinstance(param.type, click.Choice)
    }

    assert offered == {name: set(choices) for name, choices in expected.items()}


def test_answer_prints_the_best_quotation_and_tells_progress_on_standard_error(
    manual: Any, corpus_command: Run
) -> None:
    result = corpus_command(manual, "answer", f"{manual}/", "What does the kettle heat?")

    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Confidence high: ")
    assert len(result.stdout.splitlines()) < 60
    assert "heats water for tea and coffee" in result.stdout
    assert "[PRESENTATION GUIDE]" not in result.stdout
    assert "\x1b" not in result.output
    assert result.stderr.startswith("Opening what is stored\n")


def test_quiet_answer_says_nothing_on_standard_error(manual: Any, corpus_command: Run) -> None:
    result = corpus_command(manual, "answer", f"{manual}/", "What does the kettle heat?", "-q")

    assert (result.exit_code, result.stderr) == (0, "")


def test_deep_answer_follows_links(manual: Any, corpus_command: Run) -> None:
    result = corpus_command(
        manual, "answer", f"{manual}/", "How often is the filter cleaned?", "--deep", "--full"
    )

    assert "every three weeks with citric acid" in result.stdout
    assert "[EXPANSION TRACE]" in result.stdout


def test_answer_without_rounds_reads_the_named_page_only(manual: Any, corpus_command: Run) -> None:
    asked = ("answer", f"{manual}/", "How often is the filter cleaned?", "--budget", "0")

    corpus_command(manual, *asked)

    assert [r.path for r in manual.requests if r.path != "/robots.txt"] == ["/"]


def test_several_pages_can_be_named(manual: Any, corpus_command: Run) -> None:
    result = corpus_command(
        manual, "answer", f"{manual}/", "How often is the filter cleaned?",
        "--also", f"{manual}/care.html", "--json",
    )  # fmt: skip

    assert json.loads(result.stdout)["seed_urls"] == [f"{manual}/", f"{manual}/care.html"]


def test_full_answer_is_the_whole_brief(manual: Any, corpus_command: Run) -> None:
    result = corpus_command(manual, "answer", f"{manual}/", "What does the kettle heat?", "--full")

    assert "\n[SOURCES]\n" in result.stdout
    assert "[CITATIONS]" in result.stdout
    assert "[STATS]" in result.stdout


def test_full_answer_says_what_to_do_where_the_page_does_not_tell(
    manual: Any, corpus_command: Run
) -> None:
    asked = "Who invented the telegraph in Prussia?"

    result = corpus_command(manual, "answer", f"{manual}/", asked, "--full")

    assert "[FOLLOW-UP OPTIONS]" in result.stdout


def test_what_is_known_and_wished_counts(manual: Any, corpus_command: Run) -> None:
    result = corpus_command(
        manual, "answer", f"{manual}/", "What does the kettle heat?", "--full",
        "--constraint", "only recent pages", "--known-context", "It heats water.",
    )  # fmt: skip

    assert "Wishes without effect" in result.output
    assert "no page with a date" in result.output


@pytest.mark.parametrize("command", ["answer", "search", "ask"])
def test_questions_are_read_with_the_same_options(command: str) -> None:
    found = main.get_command(click.Context(main), command)
    assert found is not None
    offered = {option for param in found.get_params(click.Context(found)) for option in param.opts}

    assert offered >= {
        "--full", "--top-k", "--max-tokens", "--json", "--site", "--url", "--year", "--no-pager",
    }  # fmt: skip


@pytest.mark.parametrize("place", [["--site", "nowhere.test"], ["--url", "https://a.test/x"]])
def test_search_where_nothing_is_stored_ends_with_code_1(
    place: list[str], manual: Any, corpus_command: Run
) -> None:
    corpus_command(manual, "ingest", f"{manual}/care.html")

    result = corpus_command(manual, "search", "filter", *place, "-q")

    assert result.exit_code == 1
    assert "No stored page matches" in result.stdout


@pytest.mark.parametrize("site", ["matching", "nowhere.test"])
def test_answer_can_be_limited_to_a_host(site: str, manual: Any, corpus_command: Run) -> None:
    own = manual.removeprefix("http://")
    chosen = own if site == "matching" else site

    result = corpus_command(
        manual, "answer", f"{manual}/", "What does the kettle heat?", "--json", "--site", chosen
    )

    assert bool(json.loads(result.stdout)["passages"]) == (site == "matching")


def test_passage_that_is_named_can_be_read(manual: Any, corpus_command: Run) -> None:
    corpus_command(manual, "ingest", f"{manual}/care.html")
    found = corpus_command(manual, "search", "How often is the filter cleaned?", "-q").stdout
    suggested = found.rpartition("webrag ")[2].split()

    result = corpus_command(manual, *suggested)

    assert (result.exit_code, result.stdout.startswith("[PAGE]\n")) == (0, True)
    assert "every three weeks with citric acid" in result.stdout


def test_stored_page_can_be_read_as_json(manual: Any, corpus_command: Run) -> None:
    corpus_command(manual, "ingest", f"{manual}/care.html")

    result = corpus_command(manual, "read", f"{manual}/care.html", "--heading", "Filter", "--json")

    shown = json.loads(result.stdout)
    assert shown["text"].startswith("## Filter")
    assert shown["next_offset"] is None


def test_reading_needs_a_page_or_a_passage(corpus_command: Run) -> None:
    assert corpus_command(None, "read").exit_code == 2


def test_answer_as_json_holds_the_passages_in_order(manual: Any, corpus_command: Run) -> None:
    result = corpus_command(manual, "answer", f"{manual}/", "What does the kettle heat?", "--json")

    shown = json.loads(result.stdout)
    assert shown["query"] == "What does the kettle heat?"
    assert "heats water" in shown["passages"][0]["text"]
    assert [each["rank"] for each in shown["passages"]] == [1]
    assert 0 <= shown["confidence"] <= 1


def test_full_context_returns_the_whole_page(manual: Any, corpus_command: Run) -> None:
    result = corpus_command(
        manual, "answer", f"{manual}/", "tea", "--mode", "full_context", "--json"
    )

    assert json.loads(result.stdout)["mode"] == "full_context"


def test_search_finds_what_was_stored_and_fetches_nothing(manual: Any, corpus_command: Run) -> None:
    corpus_command(manual, "ingest", f"{manual}/care.html")
    manual.requests.clear()

    result = corpus_command(manual, "search", "How often is the filter cleaned?")

    assert "every three weeks with citric acid" in result.stdout
    assert manual.requests == []


def test_search_can_be_limited_to_a_page(manual: Any, corpus_command: Run) -> None:
    corpus_command(manual, "ingest", f"{manual}/", f"{manual}/care.html")

    result = corpus_command(manual, "search", "kettle filter", "--url", f"{manual}/", "--json")

    assert {block["url"] for block in json.loads(result.stdout)["passages"]} == {f"{manual}/"}


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        pytest.param(" ", "The question is empty", id="empty"),
        pytest.param("x" * 100_000, "at most 8,000", id="too-long"),
        pytest.param("a\0b", "NUL", id="nul"),
    ],
)
def test_unusable_question_ends_with_code_2(
    question: str, reason: str, manual: Any, corpus_command: Run
) -> None:
    result = corpus_command(manual, "answer", f"{manual}/", question, "--quiet")

    assert (result.exit_code, result.stdout) == (2, "")
    assert reason in result.stderr
    assert manual.requests == []


def test_private_address_is_refused_unless_allowed(manual: Any, corpus_command: Run) -> None:
    result = corpus_command(None, "answer", f"{manual}/", "What does it heat?", "--quiet")

    assert (result.exit_code, result.stdout, manual.requests) == (1, "", [])
    assert result.stderr.startswith("Error: ")


@pytest.mark.parametrize("command", ["answer", "search"])
def test_command_that_is_printed_runs_as_it_is_printed(
    command: str, manual: Any, corpus_command: Run, webrag: Run
) -> None:
    corpus_command(manual, "ingest", f"{manual}/", "-q")
    page = [f"{manual}/"] if command == "answer" else []

    printed: list[str] = []
    for question in ("How often is the filter cleaned?", "Who won the cup in 1974?"):
        shown = corpus_command(manual, command, *page, question, "-q").stdout
        printed += re.findall(r": webrag (.+)", shown)

    assert {line.split()[0] for line in printed} == {"read", "answer"}
    for line in printed:
        words = shlex.split(line.replace(" URL ", f" {manual}/ "))
        assert webrag(*words, "-q").exit_code == 0


def test_missing_page_is_a_json_error_when_json_is_asked_for(
    manual: Any, corpus_command: Run
) -> None:
    result = corpus_command(manual, "answer", f"{manual}/missing", "question", "--json")

    error = json.loads(result.stdout)["error"]
    assert (result.exit_code, error["type"], error["status"]) == (1, "PageGoneError", 404)


def test_search_can_be_filtered_by_what_passages_hold(manual: Any, corpus_command: Run) -> None:
    corpus_command(manual, "ingest", f"{manual}/", f"{manual}/care.html")

    result = corpus_command(
        None, "search", "filter", "--has", "code", "--fetched-since", "1d", "--json"
    )

    shown = json.loads(result.stdout)
    assert shown["passages"] == []
    assert "has code" in shown["warnings"][0]


def test_search_can_return_whole_pages(manual: Any, corpus_command: Run) -> None:
    corpus_command(manual, "ingest", f"{manual}/", f"{manual}/care.html")

    result = corpus_command(
        None, "search", "filter", "--mode", "full_context", "--fetched-since", "1d",
        "--site", manual.removeprefix("http://"), "--json",
    )  # fmt: skip

    shown = json.loads(result.stdout)
    assert shown["mode"] == "full_context"
    assert len({each["url"] for each in shown["passages"]}) == 2


@pytest.mark.parametrize("command", ["answer", "search"])
def test_wordings_are_searched_for_too(command: str, manual: Any, corpus_command: Run) -> None:
    corpus_command(manual, "ingest", f"{manual}/care.html")
    page = [f"{manual}/care.html"] if command == "answer" else []

    result = corpus_command(
        manual, command, *page, "How is scale removed?", "--json",
        "--wording", "citric acid", "--wording", "clean the filter",
    )  # fmt: skip

    shown = json.loads(result.stdout)
    assert shown["wordings"] == ["citric acid", "clean the filter"]
    assert "citric acid" in shown["passages"][0]["text"]


@pytest.mark.parametrize("command", ["answer", "search", "ask"])
@pytest.mark.parametrize(
    ("wordings", "reason"),
    [
        pytest.param(["x" * 501], "Wording 1 has 501 characters; at most 500", id="too-long"),
        pytest.param(list("abcdef"), "More than 5 different wordings", id="too-many"),
        pytest.param(["fine", "a\0b"], "Wording 2 holds a NUL character", id="nul"),
    ],
)
def test_unusable_wording_ends_with_code_2(
    command: str, wordings: list[str], reason: str, manual: Any, corpus_command: Run
) -> None:
    page = [f"{manual}/"] if command == "answer" else []
    options = [part for each in wordings for part in ("--wording", each)]

    result = corpus_command(manual, command, *page, "tea?", *options)

    assert (result.exit_code, result.stdout, manual.requests) == (2, "", [])
    assert reason in result.stderr
    assert len(result.stderr.splitlines()) == 1

"""Addresses and questions in any order, as people type them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from webrag.cli.options import split_named
from webrag.ingestion.addresses import as_address, split_words

Run = Callable[..., Result]
PAGE = """<html><head><title>Kettle</title></head><body><main><h1>Kettle</h1>
<p>Clean the filter of the kettle every three weeks with citric acid.</p></main></body></html>"""
URL = "https://docs.example.com/guide/"


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("docs.example.com", "https://docs.example.com"),
        ("docs.example.com/guide/", URL),
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("localhost:8000/a", "http://localhost:8000/a"),
        ("[::1]:8000", "http://[::1]:8000"),
        (URL, URL),
        ("notes.md", "notes.md"),
        ("docs/guide.md", "docs/guide.md"),
        ("./docs.example.com", "./docs.example.com"),
        ("mailto:me@example.com", "mailto:me@example.com"),
    ],
)
def test_host_needs_no_scheme_and_nothing_else_gets_one(typed: str, address: str) -> None:
    assert as_address(typed) == address


def test_file_of_the_name_of_a_host_is_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs.example.com").mkdir()

    assert as_address("docs.example.com") == "docs.example.com"


@pytest.mark.parametrize(
    "words",
    [
        (URL, "How is it cleaned?"),
        ("How is it cleaned?", URL),
        (URL, "How", "is", "it", "cleaned?"),
        ("How", "is", "it", "cleaned?", URL),
        ("docs.example.com/guide/", "How is it cleaned?"),
        ("How", "is", "it", "cleaned?", "docs.example.com/guide/"),
        (f"{URL} How is it cleaned?",),
        (f"How is it cleaned? {URL}",),
    ],
)
@pytest.mark.parametrize("split", [split_words, split_named])
def test_address_and_question_are_told_apart_in_either_order(
    words: tuple[str, ...], split: Callable[..., Any]
) -> None:
    assert split(words) == ((URL,), "How is it cleaned?")


@pytest.mark.parametrize(
    "words",
    [
        ("How", "does", "asyncio.timeout", "work"),
        ("What", "is", "socket.io"),
        ("What is in /etc/hosts",),
        ("How does asyncio.wait differ from asyncio.timeout/asyncio.wait",),
        ("What is a file:",),
        (URL,),
    ],
)
def test_what_may_be_asked_about_is_no_address(words: tuple[str, ...]) -> None:
    assert split_words(words) == ((), " ".join(words))


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=6))
def test_no_word_is_lost_whatever_is_typed(words: list[str]) -> None:
    addresses, question = split_words(words)

    assert question
    assert len(addresses) < max(len(words), len(" ".join(words).split()))
    assert len("".join(words)) <= len("".join(addresses)) + len(question)


@pytest.mark.parametrize("command", ["answer", "ask", "search"])
def test_question_may_come_first_and_without_quotation_marks(
    command: str, static_site: Callable[..., Any], corpus_command: Run
) -> None:
    site = static_site({"/": PAGE})
    corpus_command(site, "ingest", site.removeprefix("http://"), "-q")

    result = corpus_command(
        site, command, "How", "often", "is", "the", "filter", "cleaned", f"{site}/", "-q"
    )

    assert (result.exit_code, result.stderr) == (0, "")
    assert "every three weeks with citric acid" in result.stdout


def test_answer_without_an_address_names_the_commands_that_need_none(webrag: Run) -> None:
    result = webrag("answer", "How", "is", "it", "cleaned?")

    assert result.exit_code == 2
    assert "`webrag ask` and `webrag search`" in result.stderr


def test_address_without_a_question_is_told_so(webrag: Run) -> None:
    result = webrag("answer", "docs.example.com/guide/")

    assert (result.exit_code, "There is no question beside" in result.stderr) == (2, True)


@pytest.mark.parametrize("command", ["ask", "search"])
def test_question_to_an_empty_corpus_ends_with_code_1(command: str, corpus_command: Run) -> None:
    result = corpus_command(None, command, "How is it cleaned?", "-q")

    assert (result.exit_code, "Nothing" in result.stdout) == (1, True)


def test_quotation_may_come_before_its_address(
    static_site: Callable[..., Any], corpus_command: Run
) -> None:
    site = static_site({"/": PAGE})
    corpus_command(site, "ingest", f"{site}/", "-q")

    result = corpus_command(site, "verify", "every three weeks with citric acid", f"{site}/")

    assert (result.exit_code, "word for word" in result.stdout) == (0, True)


def test_host_as_status_prints_it_is_taken_by_status_and_forget(
    static_site: Callable[..., Any], corpus_command: Run
) -> None:
    site = static_site({"/": PAGE})
    corpus_command(site, "ingest", f"{site}/", "-q")
    host = site.removeprefix("http://")

    shown = corpus_command(None, "status", host)
    forgotten = corpus_command(None, "forget", host, "--yes")
    after = corpus_command(None, "status", host)
    again = corpus_command(None, "forget", host, "--yes")

    assert (shown.exit_code, f"— {site}/\n" in shown.stdout) == (0, True)
    assert "1 page deleted." in forgotten.stdout
    assert after.exit_code == 1
    assert (again.exit_code, f"{host} is not stored." in again.stderr) == (1, True)


def test_status_of_a_host_counts_that_host_alone(
    static_site: Callable[..., Any], corpus_command: Run
) -> None:
    sites = [static_site({"/": PAGE.replace("Kettle", name)}) for name in ("Pan", "Pot")]
    for site in sites:
        corpus_command(site, "ingest", f"{site}/", "-q")

    shown = corpus_command(None, "status", sites[1].removeprefix("http://")).stdout
    other = corpus_command(None, "status", "docs.example.com").stdout

    assert "Pages stored: 1\n" in shown
    assert "docs.example.com is not stored; 2 other pages are." in other


def test_page_that_is_not_stored_ends_status_with_code_1(corpus_command: Run) -> None:
    assert corpus_command(None, "status", URL).exit_code == 1


@pytest.mark.parametrize("command", ["search", "ask"])
def test_question_without_an_answer_names_the_command_that_would_find_it(
    command: str, static_site: Callable[..., Any], corpus_command: Run
) -> None:
    site = static_site({"/": PAGE})
    corpus_command(site, "ingest", f"{site}/", "-q")

    shown = corpus_command(None, command, "Who won the cup in 1974?", "-q").stdout

    assert "\nTo look on the web: webrag answer URL 'Who won the cup in 1974?' --deep" in shown


def test_host_beside_a_question_is_the_site_of_that_name(
    static_site: Callable[..., Any], corpus_command: Run
) -> None:
    site = static_site({"/": "<p>Nothing about it stands on the first page.</p>", "/kettle": PAGE})
    corpus_command(site, "ingest", f"{site}/", f"{site}/kettle", "-q")

    question = "How often is the filter cleaned?"
    for command in ("ask", "search"):
        shown = corpus_command(None, command, question, site.removeprefix("http://"), "-q")
        assert "every three weeks with citric acid" in shown.stdout


@pytest.mark.parametrize("command", ["ask", "search"])
def test_site_of_which_nothing_is_stored_ends_a_question_with_code_1(
    command: str, static_site: Callable[..., Any], corpus_command: Run
) -> None:
    site = static_site({"/": PAGE})
    corpus_command(site, "ingest", f"{site}/", "-q")

    result = corpus_command(None, command, "How is it cleaned?", "docs.example.com", "-q")

    named = "To follow links from there: webrag answer docs.example.com 'How is it cleaned?' --deep"
    assert (result.exit_code, named in result.output) == (1, True)


@pytest.mark.parametrize("name", ["./kettle.html", "kettle.html"])
def test_path_names_a_stored_file_to_every_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, corpus_command: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kettle.html").write_text(PAGE, encoding="utf-8")
    corpus_command(None, "ingest", name, "-q")

    assert "citric acid" in corpus_command(None, "read", name).stdout
    assert corpus_command(None, "verify", name, "with citric acid").exit_code == 0
    assert "Pages stored: 1" in corpus_command(None, "status", name).stdout
    assert "1 page deleted." in corpus_command(None, "forget", name, "--yes").stdout


def test_folder_stands_for_the_files_below_it(tmp_path: Path, corpus_command: Run) -> None:
    for name in ("manual/kettle.html", "manual/lid.html", "manuals.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(PAGE.replace("Kettle", name), encoding="utf-8")
    corpus_command(None, "ingest", str(tmp_path), "-q")
    folder = str(tmp_path / "manual")

    assert "Pages stored: 2" in corpus_command(None, "status", folder).stdout
    found = corpus_command(None, "search", folder, "how", "often", "is", "the", "filter", "cleaned")
    assert (found.exit_code, "manuals.html" in found.stdout) == (0, False)
    assert "every three weeks" in found.stdout
    assert "2 pages deleted." in corpus_command(None, "forget", folder, "--yes").stdout
    assert "files of this machine: 1 page," in corpus_command(None, "status").stdout


@pytest.mark.parametrize(
    ("command", "path"), [("answer", "/nowhere/kettle.html"), ("ask", "./nowhere")]
)
def test_file_that_is_not_there_is_named(webrag: Run, command: str, path: str) -> None:
    result = webrag(command, path, "how", "is", "it", "cleaned")

    assert (result.exit_code, path.lstrip(".") in result.stderr) == (2, True)


@pytest.mark.parametrize("split", [split_words, split_named])
@pytest.mark.parametrize("is_first", [True, False])
def test_path_with_blanks_is_told_from_the_question(
    tmp_path: Path, split: Callable[..., Any], is_first: bool
) -> None:
    path = tmp_path / "Größe Ordner" / "firing plan.html"
    path.parent.mkdir()
    path.write_text(PAGE)
    words = (str(path), "How is it cleaned?")

    assert split(words if is_first else words[::-1]) == ((str(path),), "How is it cleaned?")


def test_quotation_from_a_file_with_blanks_in_its_path_is_verified(
    tmp_path: Path, corpus_command: Run
) -> None:
    path = tmp_path / "firing plan.html"
    path.write_text(PAGE)
    corpus_command(None, "ingest", str(path), "-q")

    result = corpus_command(None, "verify", str(path), "every three weeks with citric acid")

    assert (result.exit_code, "1 of 1 are verbatim on the live page" in result.stdout) == (0, True)

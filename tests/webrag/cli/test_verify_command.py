import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

TEXT = "The ferry leaves the island at seven, at noon and at five, on every day."
PAGE = f"<html><title>Ferry</title><body><main><h1>Ferry</h1><p>{TEXT}</p></main></body></html>"

Run = Callable[..., Result]


@pytest.fixture
def site(static_site: Any, corpus_command: Run) -> Any:
    started = static_site({"/": PAGE})
    assert corpus_command(started, "ingest", f"{started}/").exit_code == 0
    return started


def test_verbatim_quotation_is_confirmed(corpus_command: Run, site: Any) -> None:
    result = corpus_command(site, "verify", f"{site}/", TEXT)

    assert result.exit_code == 0, result.output
    assert "1 of 1 are verbatim in the stored version." in result.stdout
    assert "1 of 1 are verbatim on the live page." in result.stdout


def test_invented_quotation_ends_with_code_1(
    corpus_command: Run, site: Any, tmp_path: Path
) -> None:
    file = tmp_path / "citations.json"
    citations = [{"url": f"{site}/", "quote": q} for q in (TEXT, "Trains are faster by far.")]
    file.write_text(json.dumps(citations))

    result = corpus_command(site, "verify", "--from", str(file), "--no-live", "--json")

    checks = json.loads(result.stdout)["checks"]
    assert result.exit_code == 1
    assert [check["stored"]["state"] for check in checks] == ["exact", "absent"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("nonsense", "Invalid JSON"),
        ("[" * 100_000, "Invalid JSON"),
        ('[{"url": "https://a.example/"}]', "0.quote"),
    ],
)
def test_unusable_file_is_explained(webrag: Run, tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "citations.json"
    file.write_text(content)

    result = webrag("verify", "--from", str(file))

    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.parametrize("chars", ["1", "1-", "-1-2", "a-b", "1-2-3", "²-³", f"1-{'9' * 5_000}"])
def test_offsets_that_are_none_are_explained(webrag: Run, chars: str) -> None:
    result = webrag("verify", "https://a.example/", "A quotation.", f"--chars={chars}")

    assert result.exit_code == 2
    assert "give two offsets, such as 395-440" in result.stderr


@pytest.mark.parametrize("arguments", [(), ("https://a.example/",)])
def test_quotation_must_be_given(webrag: Run, arguments: tuple[str, ...]) -> None:
    assert "Give URL and QUOTE" in webrag("verify", *arguments).stderr


def test_file_whose_text_another_file_has_too_is_read_where_it_was_named(
    corpus_command: Run, tmp_path: Path
) -> None:
    first, second = tmp_path / "a" / "ferry.html", tmp_path / "b" / "ferry.html"
    for each in (first, second):
        each.parent.mkdir()
        each.write_text(PAGE)
        assert corpus_command(None, "ingest", str(each)).exit_code == 0

    result = corpus_command(None, "verify", str(second), TEXT)

    assert "1 of 1 are verbatim on the live page." in result.stdout


def test_missing_file_of_citations_is_told_in_plain_words(webrag: Run, tmp_path: Path) -> None:
    file = tmp_path / "none.json"

    result = webrag("verify", "--from", str(file))

    assert result.stderr == f"Error: {file} cannot be read: No such file or directory.\n"

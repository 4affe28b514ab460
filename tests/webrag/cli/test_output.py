import json

import pytest

from webrag.cli.output import print_columns, print_json, print_text


def test_brief_is_printed_unchanged_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    text = "[EVIDENCE]\na\tb  " + "long " * 60 + "\n[bold]not markup[/bold] :smile:"

    print_text(text)

    assert capsys.readouterr().out == text + "\n"


def test_columns_are_aligned_and_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    url = "https://example.com/" + "x" * 200

    print_columns([("漢字", url, "end"), ("a", "b", "")])

    assert capsys.readouterr().out == f"漢字  {url}  end\na     b\n"


def test_json_keeps_other_scripts_readable(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": "§ 漢字"})

    out = capsys.readouterr().out
    assert "§ 漢字" in out
    assert json.loads(out) == {"text": "§ 漢字"}


LINK = "https://docs.example.com/a#:~:text=some%20words"
SHOWN = f"Confidence: high.\n\n    \u2014 A page\n    {LINK}\n\n1. A page\n   {LINK}\n"


def test_link_to_words_of_a_page_is_printed_as_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    print_text(SHOWN, has_links=True)

    printed = capsys.readouterr().out
    assert printed.count("https://docs.example.com/a\n") == 2
    assert ":~:text=" not in printed


def test_terminal_opens_the_page_at_the_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    print_text(SHOWN, has_links=True)
    piped = capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    print_text(SHOWN, has_links=True)

    printed = capsys.readouterr().out
    assert "\x1b]8" not in piped
    page = "https://docs.example.com/a"
    assert printed.count(f"\x1b]8;;{LINK}\x1b\\{page}\x1b]8;;\x1b\\\n") == 2


def test_text_of_a_page_keeps_its_links(capsys: pytest.CaptureFixture[str]) -> None:
    print_text(f"   {LINK}")

    assert LINK in capsys.readouterr().out

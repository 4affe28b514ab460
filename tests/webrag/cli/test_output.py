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

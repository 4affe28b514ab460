import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]

GOLD = [{"page": "a.html", "quote": "needle"}]


def write(path: Path, *lines: object) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.fixture
def questions(tmp_path: Path) -> str:
    asked = [{"id": f"q{n}", "query": "Where?", "gold": GOLD} for n in range(8)]
    return write(tmp_path / "questions.jsonl", *asked)


def record(number: int, text: str) -> dict[str, object]:
    return {"id": f"q{number}", "retrieved": [{"url": "http://a.test/a.html", "text": text}]}


def test_two_runs_are_compared_question_by_question(
    questions: str, tmp_path: Path, webrag: Run
) -> None:
    first = write(tmp_path / "a.jsonl", *(record(n, "hay") for n in range(8)))
    second = write(tmp_path / "b.jsonl", *(record(n, "needle") for n in range(8)))

    result = webrag("compare", questions, first, second)

    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"Questions compared: 8; first: {first}, second: {second}\n")
    row = next(line for line in result.stdout.splitlines() if line.startswith("nDCG @10"))
    assert row.split()[2:5] == ["0.000", "1.000", "+1.000"]
    assert row.split()[-4:] == ["8", "0", "0.008", "0.008"]
    assert result.stderr == ""


def test_questions_of_one_run_only_are_named(questions: str, tmp_path: Path, webrag: Run) -> None:
    first = write(tmp_path / "a.jsonl", *(record(n, "hay") for n in range(8)))
    second = write(tmp_path / "b.jsonl", record(0, "needle"))

    result = webrag("compare", questions, first, second)

    assert result.stdout.startswith("Questions compared: 1;")
    assert "not in both runs and left out: q1, q2, q3, q4, q5 ..." in result.stderr


def test_runs_without_a_common_question_are_refused(
    questions: str, tmp_path: Path, webrag: Run
) -> None:
    empty = write(tmp_path / "a.jsonl")

    result = webrag("compare", questions, empty, empty)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "is in both runs" in result.stderr


@pytest.mark.parametrize("text", ["no json\n", '{"retrieved": []}\n'])
def test_a_line_that_is_no_record_is_named(
    questions: str, tmp_path: Path, webrag: Run, text: str
) -> None:
    (tmp_path / "bad.jsonl").write_text(text, encoding="utf-8")

    result = webrag("compare", questions, str(tmp_path / "bad.jsonl"), str(tmp_path / "bad.jsonl"))

    assert result.exit_code == 2
    assert "bad.jsonl line 1 is not a record of a run" in result.stderr

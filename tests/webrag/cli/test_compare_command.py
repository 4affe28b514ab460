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

    result = webrag("eval", questions, "--compare", first, second)

    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"Questions compared: 8; first: {first}, second: {second}\n")
    row = next(line for line in result.stdout.splitlines() if line.startswith("nDCG @10"))
    assert row.split()[2:5] == ["0.000", "1.000", "+1.000"]
    assert row.split()[-4:] == ["8", "0", "0.008", "0.008"]
    assert result.stderr == ""


def test_questions_that_moved_are_listed_the_worse_first(
    questions: str, tmp_path: Path, webrag: Run
) -> None:
    first = write(tmp_path / "a.jsonl", record(0, "hay"), record(1, "needle"), record(2, "hay"))
    second = write(tmp_path / "b.jsonl", record(0, "needle"), record(1, "hay"), record(2, "hay"))

    result = webrag("eval", questions, "--compare", first, second)

    listed = result.stdout.partition("where it moved:\n")[2].splitlines()
    assert [line.split() for line in listed[1:]] == [
        ["q1", "1", "not", "found", "Where?"],
        ["q0", "not", "found", "1", "Where?"],
    ]


def test_runs_of_equal_ranks_list_no_question(questions: str, tmp_path: Path, webrag: Run) -> None:
    same = write(tmp_path / "a.jsonl", record(0, "needle"))

    assert "where it moved" not in webrag("eval", questions, "--compare", same, same).stdout


def test_questions_of_one_run_only_are_named(questions: str, tmp_path: Path, webrag: Run) -> None:
    first = write(tmp_path / "a.jsonl", *(record(n, "hay") for n in range(8)))
    second = write(tmp_path / "b.jsonl", record(0, "needle"))

    result = webrag("eval", questions, "--compare", first, second)

    assert result.stdout.startswith("Questions compared: 1;")
    assert "not in both runs and left out: q1, q2, q3, q4, q5 ..." in result.stderr


def test_runs_without_a_common_question_are_refused(
    questions: str, tmp_path: Path, webrag: Run
) -> None:
    empty = write(tmp_path / "a.jsonl")

    result = webrag("eval", questions, "--compare", empty, empty)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "is in both runs" in result.stderr


@pytest.mark.parametrize("text", ["no json\n", '{"retrieved": []}\n'])
def test_a_line_that_is_no_record_is_named(
    questions: str, tmp_path: Path, webrag: Run, text: str
) -> None:
    (tmp_path / "bad.jsonl").write_text(text, encoding="utf-8")

    result = webrag(
        "eval", questions, "--compare", str(tmp_path / "bad.jsonl"), str(tmp_path / "bad.jsonl")
    )

    assert result.exit_code == 2
    assert "bad.jsonl line 1: " in result.stderr

from pathlib import Path

import pytest

from webrag.errors import InputError
from webrag.evaluation.questions import load_questions


def write(folder: Path, text: str) -> Path:
    path = folder / "questions.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_questions_keep_file_order_and_skip_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path, '{"id": "b", "query": "x"}\n\n{"id": "a", "query": "y"}\n')

    assert [question.id for question in load_questions(path)] == ["b", "a"]


def test_limit_keeps_the_first_questions(tmp_path: Path) -> None:
    path = write(tmp_path, '{"id": "b", "query": "x"}\n{"id": "a", "query": "y"}\n')

    assert [question.id for question in load_questions(path, limit=1)] == ["b"]


def test_unknown_fields_are_ignored(tmp_path: Path) -> None:
    path = write(tmp_path, '{"id": "b", "query": "x", "hops": 3}\n')

    assert load_questions(path)[0].query == "x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "holds no question", id="empty-file"),
        pytest.param("{", "line 1 is not JSON", id="not-json"),
        pytest.param('{"id": "a"}', "field 'query'", id="missing-query"),
        pytest.param('{"id": "a", "query": "x"}\n' * 2, "occurs twice", id="duplicate-id"),
    ],
)
def test_unusable_file_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_questions(write(tmp_path, text))


def test_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_questions(tmp_path / "none.jsonl")

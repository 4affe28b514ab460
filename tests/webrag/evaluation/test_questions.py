from pathlib import Path

import pytest

from webrag.errors import InputError
from webrag.evaluation.questions import EXAMPLE_LINE, load_questions


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
        pytest.param('{"id": "a"}', "the field 'query' is missing", id="missing-query"),
        pytest.param("[]", "the line is not a JSON object", id="no-object"),
        pytest.param('{"id": 1, "query": "x"}', "'id' must be text", id="number-as-id"),
        pytest.param('{"id": "a", "query": ""}', "'query' is empty", id="empty-query"),
        pytest.param(
            '{"id": "a", "query": "x", "gold": "words"}', "'gold' must be a list", id="gold-text"
        ),
        pytest.param(
            '{"id": "a", "query": "x", "gold": ["words"]}',
            r"'gold\[0\]' must be an object with 'page' and 'quote'",
            id="gold-of-texts",
        ),
        pytest.param(
            '{"id": "a", "query": "x", "gold": [{"page": "p"}]}',
            r"'gold\[0\].quote' is missing",
            id="gold-without-quote",
        ),
        pytest.param('{"id": "a", "query": "x"}\n' * 2, "occurs twice", id="duplicate-id"),
    ],
)
def test_unusable_file_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_questions(write(tmp_path, text))


@pytest.mark.parametrize("text", ["{", '{"id": "a", "query": "x", "gold": ["words"]}'])
def test_refusal_of_a_line_shows_one_that_would_do(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as refusal:
        load_questions(write(tmp_path, text))

    assert EXAMPLE_LINE in (refusal.value.hint or "")
    assert load_questions(write(tmp_path, EXAMPLE_LINE))[0].gold


def test_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_questions(tmp_path / "none.jsonl")

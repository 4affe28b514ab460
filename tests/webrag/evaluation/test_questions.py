from pathlib import Path

import pytest

from webrag.errors import InputError
from webrag.evaluation.questions import EXAMPLE_LINE, load_questions, with_wordings


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


def test_a_line_separator_within_a_question_ends_no_line(tmp_path: Path) -> None:
    path = write(tmp_path, '{"id": "b", "query": "x\u2028y"}\r\n')

    assert load_questions(path)[0].query == "x\u2028y"


def test_unknown_fields_are_ignored(tmp_path: Path) -> None:
    path = write(tmp_path, '{"id": "b", "query": "x", "hops": 3}\n')

    assert load_questions(path)[0].query == "x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "holds no question", id="empty-file"),
        pytest.param("{", "line 1: This is .* Invalid JSON", id="not-json"),
        pytest.param("[" * 100_000, "Invalid JSON: recursion limit", id="nested"),
        pytest.param(
            '{"id": 1' + "0" * 5_000 + "}", "Invalid JSON: number out of range", id="digits"
        ),
        pytest.param('{"id": "a"}', "query is missing", id="missing-query"),
        pytest.param(
            "[]", "line 1: This is .*; it must be an object with id, query", id="no-object"
        ),
        pytest.param('{"id": 1, "query": "x"}', "id is 1; it must be text", id="number-as-id"),
        pytest.param(
            '{"id": "a", "query": ""}',
            "must be text that is not empty",
            id="empty-query",
        ),
        pytest.param(
            '{"id": "a", "query": "x", "gold": "words"}',
            "it must be a list",
            id="gold-text",
        ),
        pytest.param(
            '{"id": "a", "query": "x", "gold": ["words"]}',
            "gold takes a list, whose entry 1 is 'words'; it must be an object",
            id="gold-of-texts",
        ),
        pytest.param(
            '{"id": "a", "query": "x", "gold": [{"page": "p"}]}',
            r"gold\[0\].quote is missing",
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
    with pytest.raises(
        InputError, match=r"none\.jsonl cannot be read: No such file or directory\.$"
    ):
        load_questions(tmp_path / "none.jsonl")


def write_wordings(folder: Path, text: str) -> Path:
    path = folder / "wordings.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_wordings_of_a_question_line_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, '{"id": "a", "query": "x", "wordings": ["y", "z"]}\n')

    assert load_questions(path)[0].wordings == ("y", "z")


def test_wordings_of_a_file_take_the_place_of_a_line_s_own(tmp_path: Path) -> None:
    asked = load_questions(
        write(
            tmp_path,
            '{"id": "a", "query": "x", "wordings": ["own"]}\n'
            '{"id": "b", "query": "x", "wordings": ["own"]}\n{"id": "c", "query": "x"}\n',
        )
    )
    path = write_wordings(
        tmp_path,
        '{"id": "a", "phrasings": ["y"], "keywords": "k"}\n\n{"id": "z", "phrasings": []}\n',
    )

    found = with_wordings(asked, path)

    assert [question.wordings for question in found] == [("y",), ("own",), ()]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "wordings.jsonl line 1: This is .* Invalid JSON"),
        ('{"id": "a"}', "phrasings is missing"),
        ('{"id": "a", "phrasings": "y"}', "phrasings is 'y'; it must be a list"),
        ('{"id": "a", "phrasings": [3]}', "phrasings .*entry 1 is 3; it must be text"),
        ('{"id": "z", "phrasings": ["y"]}', "has none for any of the questions"),
        ("", "has none for any of the questions"),
    ],
)
def test_unusable_wordings_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    asked = load_questions(write(tmp_path, '{"id": "a", "query": "x"}\n'))

    with pytest.raises(InputError, match=message):
        with_wordings(asked, write_wordings(tmp_path, text))

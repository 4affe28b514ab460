from typing import Any

import pytest

from webrag.errors import InputError
from webrag.mcp_server.arguments import Arguments


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        pytest.param("https://a.org/", ["https://a.org/"], id="one text"),
        pytest.param(["a", "b"], ["a", "b"], id="list"),
        pytest.param('["a", "b"]', ["a", "b"], id="list inside a text"),
        pytest.param("[not json", ["[not json"], id="text that begins like a list"),
        pytest.param(None, None, id="omitted"),
        pytest.param(" ", None, id="blank"),
    ],
)
def test_list_is_read_in_every_form_clients_send(value: Any, texts: list[str] | None) -> None:
    assert Arguments({"url": value}).texts("url") == texts


@pytest.mark.parametrize("value", [7, {"a": 1}, [1, 2], ["a", None], [["a"]]])
def test_list_of_anything_but_texts_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="give one text or a list of texts"):
        Arguments({"url": value}).texts("url")


@pytest.mark.parametrize("values", [{}, {"url": None}, {"url": ""}, {"url": []}])
def test_required_list_must_name_something(values: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="url is"):
        Arguments(values).texts("url", required=True)


def test_question_that_looks_like_json_stays_a_text() -> None:
    assert Arguments({"query": '{"a": [1]}'}).text("query") == '{"a": [1]}'


@pytest.mark.parametrize("value", [None, 3, ["x"], True])
def test_question_must_be_a_text(value: Any) -> None:
    with pytest.raises(InputError, match="query is"):
        Arguments({"query": value}).text("query")


def test_choice_ignores_letter_case() -> None:
    assert Arguments({"mode": " Deep "}).choice("mode", ("fast", "deep")) == "deep"


def test_unknown_choice_names_the_allowed_words() -> None:
    with pytest.raises(InputError) as caught:
        Arguments({"mode": "slow"}).choice("mode", ("fast", "deep"))

    assert str(caught.value) == "mode is 'slow'; use 'fast' or 'deep'."


@pytest.mark.parametrize(
    ("value", "number"), [(3, 3), ("3", 3), (3.0, 3), (None, None), ("", None)]
)
def test_whole_number_is_read_from_number_or_text(value: Any, number: int | None) -> None:
    assert Arguments({"top_k": value}).integer("top_k", minimum=1) == number


@pytest.mark.parametrize(
    ("value", "words"),
    [(["Code", "table"], ["code", "table"]), ('["code"]', ["code"]), ("table", ["table"])]
    + [(empty, []) for empty in (None, "", [])],
)
def test_choices_are_read_in_every_form_clients_send(value: Any, words: list[str]) -> None:
    assert Arguments({"has": value}).choices("has", ("table", "code")) == words


@pytest.mark.parametrize(
    ("value", "numbers"),
    [([2024, "2025"], [2024, 2025]), ("[2024]", [2024]), (2024, [2024]), (None, None), ([], [])],
)
def test_whole_numbers_are_read_in_every_form_clients_send(
    value: Any, numbers: list[int] | None
) -> None:
    assert Arguments({"years": value}).integers("years", minimum=1) == numbers


@pytest.mark.parametrize("value", [["x"], {"a": 1}, [[2024]], "2024, 2025", [True]])
def test_list_of_anything_but_whole_numbers_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="give a whole number from 1 up"):
        Arguments({"years": value}).integers("years", minimum=1)


@pytest.mark.parametrize("value", [0, -1, 2.5, "many", True, [1], "9" * 5000, float("inf")])
def test_other_numbers_are_refused_in_one_short_sentence(value: Any) -> None:
    with pytest.raises(InputError) as caught:
        Arguments({"top_k": value}).integer("top_k", minimum=1)

    assert str(caught.value).endswith("; give a whole number from 1 up.")
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    ("value", "flag"), [(True, True), ("false", False), (0, False), (None, True), ("YES", True)]
)
def test_flag_is_read_from_words_and_numbers(value: Any, flag: bool) -> None:
    assert Arguments({"refresh": value}).flag("refresh", default=True) is flag


def test_other_flag_is_refused() -> None:
    with pytest.raises(InputError, match="use true or false"):
        Arguments({"refresh": "maybe"}).flag("refresh", default=True)

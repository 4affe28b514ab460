import pytest

from webrag.presentation.brief.blocks import columns_at

TABLE = (
    "Settings:\n\n| Name | Values a\\|b |\n| --- | :-: |\n| `x` | 1 |\n| `y` | 2 |\n\nAfter | it."
)


@pytest.mark.parametrize("row", ["| `x`", "`x`", "1 |\n| `y`", "| `y`", "2 |"])
def test_columns_are_named_anywhere_in_the_body(row: str) -> None:
    assert columns_at(TABLE, TABLE.index(row)) == "Name | Values a\\|b"


@pytest.mark.parametrize("place", ["Settings", "| Name", "Values", "| ---", "After"])
def test_nothing_is_named_outside_the_body(place: str) -> None:
    assert columns_at(TABLE, TABLE.index(place)) is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("| a | b |\n| c | d |", id="header above the text"),
        pytest.param("| --- | --- |\n| c | d |", id="only the rule"),
        pytest.param("|  |  |\n| --- | --- |\n| c | d |", id="empty header"),
    ],
)
def test_nothing_is_named_without_a_header(text: str) -> None:
    assert columns_at(text, text.index("c |")) is None


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        pytest.param("```console\n", "```", id="backticks"),
        pytest.param("~~~\n```\n", "~~~", id="other fence inside"),
        pytest.param("````\n```\n", "````", id="shorter fence inside"),
        pytest.param("```\n```py\n", "```", id="fence with a language inside"),
        pytest.param("- ```\n", "  ```", id="item of a list"),
        pytest.param("> ```\n", "> ```", id="quotation"),
    ],
)
def test_table_in_code_has_no_columns_but_the_one_after_it_has(begin: str, end: str) -> None:
    text = f"{begin}| fake |\n| --- |\n| x |\n{end}\n\n{TABLE}"

    assert columns_at(text, text.index("| x |")) is None
    assert columns_at(text, text.index("| `y`")) == "Name | Values a\\|b"


def test_table_in_a_quotation_has_columns_too() -> None:
    text = "> | Name |\n> | --- |\n> | x |"

    assert columns_at(text, text.index("x")) == "Name"


def test_rows_at_the_beginning_of_a_text_have_the_columns_that_it_goes_on_with() -> None:
    text = "| nut | 4 |\n| pin | 5 |\n\nEnd.\n"

    assert columns_at(text, text.index("pin"), "Name | Price") == "Name | Price"
    assert columns_at(text, text.index("End"), "Name | Price") is None
    assert columns_at(f"Parts\n\n{text}", 16, "Name | Price") is None


def test_columns_are_named_as_readers_see_them() -> None:
    text = "| **Name** | [Price](p) |\n| --- | --- |\n| nut | 4 |\n"

    assert columns_at(text, text.index("nut")) == "Name | Price"

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.retrieval.citation_checks import find_quote

TEXT = (
    "# Limits\n\nThe *default* is 120 seconds, and \u201cno more\u201d.\n\n"
    "The server stops after a while, whatever happens. Again.\n\nAgain."
)


@pytest.mark.parametrize(
    ("quote", "place", "state", "text"),
    [
        pytest.param("stops after a while", None, "exact", "stops after a while", id="verbatim"),
        pytest.param("Again.", (106, 112), "exact", "Again.", id="first of two"),
        pytest.param("Again.", (114, 120), "exact", "Again.", id="second of two"),
        pytest.param("Again.", (110, 120), "exact", "Again.", id="behind a nearer one"),
        pytest.param("Again.", (0, 6), "moved", "Again.", id="elsewhere"),
        pytest.param(
            'The default  is 120\nseconds, and "no more"',
            None,
            "reformatted",
            "The *default* is 120 seconds, and \u201cno more\u201d",
            id="without markup",
        ),
        pytest.param(
            "The server always stops after some while, whatever happens.",
            None,
            "changed",
            "The server stops after a while, whatever happens",
            id="words changed",
        ),
        pytest.param("Bananas are a fruit of apes.", None, "absent", None, id="not there"),
    ],
)
def test_quote_is_found_as_it_stands(
    quote: str, place: tuple[int, int] | None, state: str, text: str | None
) -> None:
    match = find_quote(TEXT, quote, place)

    assert (match.state, match.text) == (state, text)


def test_lines_of_a_cell_are_found_as_a_reader_sees_them() -> None:
    row = "| grams | from 0 g<br>from 900 g | 5 g<br>10 g |"

    match = find_quote(row, "grams from 0 g from 900 g 5 g 10 g")

    assert (match.state, match.text) == ("reformatted", row[2:-2])


@pytest.mark.parametrize(
    "sign", ["\u00ad", "\u200b", "\u200d", "\u2060", "\u202e", "\ufe0f", "\ufeff"]
)
def test_what_is_drawn_as_nothing_changes_no_wording(sign: str) -> None:
    match = find_quote(TEXT, f"The server st{sign}ops after{sign} a while")

    assert (match.state, match.text) == ("reformatted", "The server stops after a while")


def test_of_equal_quotations_the_nearest_is_meant() -> None:
    assert find_quote(TEXT, "Again.", (114, 121)).char_start == 114


def test_changed_passage_tells_how_much_is_left_of_the_quotation() -> None:
    assert 0.6 <= find_quote(TEXT, "The server stops after one year.").similarity < 1


@given(st.text(min_size=1), st.text(), st.text())
def test_every_part_of_a_text_is_exact_where_it_stands(part: str, before: str, after: str) -> None:
    text = before + part + after
    place = (len(before), len(before) + len(part))

    match = find_quote(text, part, place)

    assert (match.state, match.char_start, match.char_end) == ("exact", *place)


@given(st.text(), st.text(min_size=1))
def test_what_is_found_is_a_slice_of_the_text(text: str, quote: str) -> None:
    match = find_quote(text, quote)

    assert match.text is None or match.text == text[match.char_start : match.char_end]

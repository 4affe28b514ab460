"""Columns, tables, turned pages and broken words of PDFs, drawn in any order."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.growth import grows_as_its_input
from tests.webrag.ingestion.pdf.test_reader import _file
from webrag.ingestion.pdf.layout import (
    Cell,
    Line,
    _column_by_column,
    blocks_of,
    without_running_lines,
)
from webrag.ingestion.pdf.reader import read_pdf

Drawn = Sequence[tuple[float, float, str]]
LEFT = [
    "The board has looked at the yearly",
    "report of the mill and it has then",
    "asked the clerk to write a letter",
    "to all who own a share in the mill",
    "and who live in one of the towns.",
]
RIGHT = [
    "It will spend nine million crowns",
    "over the coming three years on new",
    "roofs for the hall, on a dry cellar",
    "and on a lift beside the west door",
    "that carries ten persons at a time.",
]


def drawn(*texts: tuple[float, float, str], turn: int = 0, matrix: str = "1 0 0 1") -> bytes:
    """A page with each text at its place; `matrix` turns what is drawn."""
    shown = "".join(f"BT /F 10 Tf {matrix} {x} {y} Tm ({text}) Tj ET\n" for x, y, text in texts)
    page = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 5 0 R/Rotate %d"
    font = (
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding/ToUnicode 6 0 R>>"
    )
    # The code of a bullet means a character of a symbol font, as in what Word writes.
    codes = b"1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfchar <95> <F0B7> endbfchar"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"{page % turn}/Resources<</Font<</F 4 0 R>>>>>>".encode(),
        font,
        b"<</Length %d>>stream\n%b\nendstream" % (len(shown), shown.encode("cp1252")),
        b"<</Length %d>>stream\n%b\nendstream" % (len(codes), codes),
    ]
    return _file(objects, 1, b"")


def text_of(body: bytes) -> str:
    return read_pdf(body, "https://site.test/a.pdf").markdown


def columns(left: Sequence[str], right: Sequence[str]) -> list[tuple[float, float, str]]:
    rows = enumerate(zip(left, right, strict=True))
    return [
        place for n, (a, b) in rows for place in ((60, 700 - 14 * n, a), (330, 700 - 14 * n, b))
    ]


@pytest.mark.parametrize(
    "above", [[], [(60, 740, "A title that reaches over both of the columns here")]]
)
def test_columns_drawn_row_by_row_are_read_one_after_the_other(above: Drawn) -> None:
    text = " ".join(text_of(drawn(*above, *columns(LEFT, RIGHT))).split())

    assert text.endswith(" ".join([*LEFT, *RIGHT]))


def test_page_of_many_gaps_is_read_in_time_that_grows_as_the_page() -> None:
    def page(count: int) -> list[Line]:
        cells = [tuple(Cell("a", 40 * n + at, 40 * n + 9) for n in range(9)) for at in range(7)]
        rows = ((12.0 * (count - place), cells[place % 7]) for place in range(count))
        return [Line("a a", 0, 330, y + 10, y, y, cells=each) for y, each in rows]

    assert grows_as_its_input(_column_by_column, page, 200)


def test_word_broken_at_the_end_of_the_left_column_is_joined() -> None:
    left = [
        *LEFT[:2],
        "asked the clerk to write a let-",
        "ter to all who own a share in it",
        LEFT[4],
    ]
    assert "write a letter to all" in text_of(drawn(*columns(left, RIGHT)))


TABLE = [
    ("Name", "Mass", "Price"),
    ("bolt a|b", "12 kg", "3"),
    ("nut", "", "4"),
    ("pin", "1 kg", "5"),
]


def table(x: float = 60, y: float = 700) -> list[tuple[float, float, str]]:
    return [
        (x + 120 * column, y - 16 * row, text)
        for row, texts in enumerate(TABLE)
        for column, text in enumerate(texts)
        if text
    ]


def test_rows_with_gaps_in_line_are_a_table() -> None:
    text = text_of(drawn((60, 730, "The parts that the depot holds are these."), *table()))

    assert text.endswith(
        "| Name | Mass | Price |\n| --- | --- | --- |\n| bolt a\\|b | 12 kg | 3 |\n"
        "| nut |  | 4 |\n| pin | 1 kg | 5 |"
    )


TURNS = {0: "1 0 0 1", 90: "0 1 -1 0", 180: "-1 0 0 -1", 270: "0 -1 1 0"}
PLACES = {
    0: [(72.0, 700.0 - 16 * n) for n in range(3)],
    90: [(100.0 + 16 * n, 60.0) for n in range(3)],
    180: [(500.0, 100.0 + 16 * n) for n in range(3)],
    270: [(500.0 - 16 * n, 700.0) for n in range(3)],
}
LINES = [
    "The page begins with this line of",
    "prose and goes on with a second one",
    "until it ends.",
]


@pytest.mark.parametrize("angle", TURNS)
@pytest.mark.parametrize("is_page_turned", [True, False])
def test_turned_page_and_turned_text_are_read_as_prose(angle: int, is_page_turned: bool) -> None:
    texts = [(x, y, line) for (x, y), line in zip(PLACES[angle], LINES, strict=True)]
    body = drawn(*texts, turn=angle if is_page_turned else 0, matrix=TURNS[angle])

    assert text_of(body) == " ".join(LINES)


HYPHENS = {
    "seen with it": ("A well-known thing.", "It is a well-", "known thing.", "a well-known thing."),
    "seen without": ("A wellknown thing.", "It is a well-", "known thing.", "a wellknown thing."),
    "never seen": ("Any other thing.", "It is a rea-", "sonable thing.", "a reasonable thing."),
}


@pytest.mark.parametrize(("first", "broken", "rest", "whole"), HYPHENS.values(), ids=HYPHENS)
def test_own_words_of_a_document_tell_which_hyphens_stay(
    first: str, broken: str, rest: str, whole: str
) -> None:
    text = text_of(drawn((72, 740, first), (72, 700, broken), (72, 686, rest)))

    assert whole in text.split("\n\n")[-1]


def test_cell_without_width_has_a_place_in_its_table() -> None:
    lines = [
        Line(f"{name} |", 0, 50, y + 10, y, y, cells=(Cell(name, 0, 30), Cell("|", 50, 50)))
        for name, y in (("a1", 60), ("b2", 40), ("c3", 20))
    ]
    marked = replace(lines[1], cells=(Cell("b2", 0, 30), Cell("x", 50, 50)))

    (block,) = blocks_of([lines[0], marked, lines[2]])

    assert block.rows == (("a1", "|"), ("b2", "x"), ("c3", "|"))


def test_paragraphs_between_loose_lists_stand_apart() -> None:
    full = "and so on to the very end of the line"
    told = [full] * 6 + [f"point {number}" for number in range(7)]
    base, lines = 500.0, []
    for place, text in enumerate(told):
        base -= 12 if place in (1, 2, 4, 5) else 20
        lines.append(Line(text, 0, 200 if text == full else 40, base + 10, base, base))

    blocks = blocks_of(lines)

    assert [block.text for block in blocks[:2]] == [" ".join([full] * 3)] * 2


def rows_of(*texts: tuple[float, float, str]) -> str:
    return text_of(drawn((60, 730, "The parts that the depot holds are these."), *texts))


def test_cell_goes_on_in_the_next_line_of_its_column() -> None:
    rows = table()
    below = [(x, y - 12 * (y < 684), text) for x, y, text in rows]

    text = rows_of(*below[:5], (180, 673, "and a half"), *below[5:], (60, 600, "So much of them."))

    assert (
        "| bolt a\\|b | 12 kg and a half | 3 |\n| nut |  | 4 |\n| pin | 1 kg | 5 |\n\nSo much"
        in text
    )


def test_cell_that_reaches_over_the_next_column_leaves_the_table_one() -> None:
    text = rows_of(*table(), (60, 636, "a very long name of a screw nut"), (300, 636, "6"))

    assert text.endswith("| pin | 1 kg | 5 |\n| a very long name of a screw nut |  | 6 |")


def test_first_row_of_pairs_is_a_row() -> None:
    pairs = [("-x", "builds for the small kiln"), ("-y", "for the big one"), ("-z", "for all")]
    rows = [
        (60 + 120 * at, 700 - 16 * n, t) for n, row in enumerate(pairs) for at, t in enumerate(row)
    ]

    assert "|  |  |\n| --- | --- |\n| -x | builds for the small kiln |\n" in rows_of(*rows)


def test_bullets_of_a_symbol_font_begin_items() -> None:
    items = ["\u2022 dig the clay and let it dry for as long", "as it takes", "\u2022 fire it"]

    text = text_of(drawn(*((72, 700 - 12 * n, text) for n, text in enumerate(items))))

    assert text == "- dig the clay and let it dry for as long as it takes\n\n- fire it"


def test_sentence_of_the_left_column_goes_on_where_a_line_begins_with_a_capital() -> None:
    left = ["The depot stands beside the Old", "Town Hall and is open to all the"]

    text = text_of(drawn(*columns([*left, *LEFT[2:]], RIGHT)))

    assert "the Old Town Hall and is" in text


def test_short_lines_of_a_page_that_has_no_others_stand_apart() -> None:
    facts = ["Founded: 1954", "Depots: 34", "Chairs a year: 1,200"]

    lines = [(72, 700 - 12 * n, fact) for n, fact in enumerate(facts)]
    assert text_of(drawn(*lines)) == "\n\n".join(facts)


def test_two_rows_alone_stand_apart() -> None:
    rows = [("bolt of oak", "12 kg in all"), ("nut", "3 kg in all")]
    texts = [
        (60 + 200 * at, 700 - 12 * n, t) for n, row in enumerate(rows) for at, t in enumerate(row)
    ]

    assert text_of(drawn(*texts)) == "bolt of oak 12 kg in all\n\nnut 3 kg in all"


def test_header_that_a_table_repeats_on_three_pages_is_no_head_of_a_chapter() -> None:
    cells = tuple(Cell(name, 60 + 90 * n, 100 + 90 * n) for n, name in enumerate("ABC"))
    header = Line("A B C", 60, 300, 712, 700, 700, cells=cells)
    pages = [[Line(f"Page {name}", 60, 300, 712, 700, 700)] for name in ("one", "two", "three")]
    pages += [
        [replace(header), Line(f"Row {name}", 60, 300, 692, 680, 680)]
        for name in ("four", "five", "six")
    ]
    pages += [[Line(text, 60, 300, 712, 700, 700)] for text in ("Of ash", "The end")]

    assert all(lines[0].text == "A B C" for lines in without_running_lines(pages)[3:6])
    plain = [[replace(line, cells=()) for line in lines] for lines in pages]
    assert not any("A B C" in line.text for lines in without_running_lines(plain) for line in lines)


@pytest.mark.parametrize("text", ["Civil", "Ill", "471100"])
def test_line_that_is_no_number_of_a_page_stays(text: str) -> None:
    assert text in text_of(drawn((72, 700, "The mill has paid its clerk:"), (72, 660, text)))


@pytest.mark.parametrize("text", ["17", "- 17 -", "xiv", "XC", "iii"])
def test_number_of_a_page_alone_is_left_out(text: str) -> None:
    assert text not in text_of(drawn((72, 700, "The mill has paid its clerk:"), (72, 660, text)))

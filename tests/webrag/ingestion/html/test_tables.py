# ruff: noqa: E501 - the pages' lines are long
"""Each row of a stored table can be read alone."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from webrag.ingestion.html.layouts import rewrite_tables
from webrag.ingestion.models import NormalizedDocument
from webrag.retrieval.units import cut_units

Convert = Callable[..., NormalizedDocument]
HEAD = "<tr><th>A<th>B<th>C</tr>"
RULE = "| A | B | C |\n| --- | --- | --- |\n"

SPANS = {
    "rows": (HEAD + "<tr><td rowspan=2>n<td>1<td>2<tr><td>3<td>4", RULE + "| n | 1 | 2 |\n| n | 3 | 4 |"),
    "rows at the end": (HEAD + "<tr><td>1<td>2<td rowspan=2>n<tr><td>3<td>4", RULE + "| 1 | 2 | n |\n| 3 | 4 | n |"),
    "columns": (HEAD + "<tr><td colspan=2>n<td>9", RULE + "| n | n | 9 |"),
    "both": (HEAD + "<tr><td rowspan=2 colspan=2>n<td>1<tr><td>2", RULE + "| n | n | 1 |\n| n | n | 2 |"),
    "three rows": (HEAD + "<tr><td rowspan=3>n<td>1<td>2<tr><td>3<td>4<tr><td>5<td>6", RULE + "| n | 1 | 2 |\n| n | 3 | 4 |\n| n | 5 | 6 |"),
    "a line over all": (HEAD + "<tr><td colspan=3>part<tr><td>1<td>2<td>3", RULE + "| part | | |\n| 1 | 2 | 3 |"),
    "a title above the headers": ("<tr><th colspan=3>Sizes" + HEAD + "<tr><td>1<td>2<td>3", "Sizes\n\n" + RULE + "| 1 | 2 | 3 |"),
    "headers of two levels": ("<tr><th rowspan=2>A<th colspan=2>S<tr><th>x<th>y<tr><td>1<td>2<td>3", "| A | S x | S y |\n| --- | --- | --- |\n| 1 | 2 | 3 |"),
    "no number": (HEAD + "<tr><td rowspan=x>1<td colspan=-2>2<td colspan=''>3", RULE + "| 1 | 2 | 3 |"),
    "more than there is": (HEAD + "<tr><td rowspan=99999>n<td>1<td>2", RULE + "| n | 1 | 2 |"),
    "a link": (HEAD + "<tr><td rowspan=2><a href=/n>n</a><td>1<td>2<tr><td>3<td>4", RULE + "| n | 1 | 2 |\n| n | 3 | 4 |"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("table", "markdown"),
    [
        (
            "<tr><td>Owned by the caller.<tr><td>May be <code>NULL</code>.",
            "- Owned by the caller.\n- May be `NULL`.",
        ),
        (
            "<tr><td><h2>Use</h2>Call it.<tr><td>Or not.<tr><td>Ever.",
            "## Use\n\nCall it.\n\nOr not.\n\nEver.",
        ),
        ("<tr><td><p>Call it.<p>Or not.", "Call it.\n\nOr not."),
        ("<tr><td><ul><li>Base<li>Hooks</ul><td><ul><li>Mock</ul>", "- Base\n- Hooks\n\n- Mock"),
    ],
    ids=["one column", "large blocks in a column", "one cell", "lists side by side"],
)
def test_table_without_rows_to_compare_is_stored_as_what_it_holds(
    convert: Convert, table: str, markdown: str
) -> None:
    assert convert(f"<p>x</p><table>{table}</table>").markdown == f"x\n\n{markdown}"


@pytest.mark.parametrize("name", ["<th>Port", "<td><b>Port</b>", "<td>Port"])
def test_column_with_a_name_stays_a_table(convert: Convert, name: str) -> None:
    table = f"<tr>{name}<tr><td>80<tr><td>443"
    text = convert(f"<p>x</p><table>{table}</table>").markdown.replace("*", "")
    assert text == "x\n\n| Port |\n| --- |\n| 80 |\n| 443 |"


@pytest.mark.parametrize(("rows", "markdown"), SPANS.values(), ids=SPANS)
def test_spanning_cell_stands_in_each_of_its_places(
    convert: Convert, rows: str, markdown: str
) -> None:
    assert convert(f"<p>x</p><table>{rows}</table>").markdown == f"x\n\n{markdown}"


LINES = {
    "breaks": ("one<br>two", "one<br>two"),
    "paragraphs": ("<p>one</p><p>two</p>", "one<br>two"),
    "boxes": ("<div>one</div>\n<div>two</div>", "one<br>two"),
    "items": ("<ul><li>one<li>two</ul>", "one<br>two"),
    "text and box": ("one<div>two</div>", "one<br>two"),
    "code": ("<pre>one\ntwo</pre>", "`one`<br>`two`"),
    "one line": ("<p>one</p>", "one"),
    "empty lines": ("<br><p>one</p><br>", "one"),
    "pipes": ("a|b<br>|c", r"a\|b<br>\|c"),
}


@pytest.mark.parametrize(("cell", "text"), LINES.values(), ids=LINES)
def test_lines_of_a_cell_stay_apart(convert: Convert, cell: str, text: str) -> None:
    table = f"<table><tr><th>A<th>B</tr><tr><td>{cell}<td>{cell}</table>"
    assert convert(table).markdown == f"| A | B |\n| --- | --- |\n| {text} | {text} |"


HEADERS = {
    "cells of a header": "<tr><th>A<th>B<tr><td>a<td>b",
    "an empty corner": "<tr><td><th>B<tr><td>a<td>b",
    "head of the table": "<thead><tr><td>A<td>B</thead><tr><td>a<td>b",
    "bold cells": "<tr><td><b>A</b><td><strong>B</strong><tr><td>a<td>b",
    "numbered rows": "<tr><td>No.<td>Who<tr><td>1<td>Ann<tr><td>2<td>Bob",
    "three columns": "<tr><td>A<td>B<td>Built 1904<tr><td>a<td>b<td>c<tr><td>d<td>5<td>e",
    "years": "<tr><td>Cost<td>2023<td>2024<tr><td>Clay<td>12<td>14<tr><td>Wood<td>5<td>6",
    "quarters": "<tr><td>Cost<td>Q1<td>Q2<tr><td>Clay<td>12<td>14<tr><td>Wood<td>5<td>6",
    "a line over all": "<tr><td colspan=2>Sizes<tr><td>Kiln<td>3 m",
}
NO_HEADERS = {
    "pairs": "<tr><td>Age<td>12<tr><td>Fuel<td>wood<tr><td>Size<td>3 m",
    "named pairs": "<tr><th>Age<td>12<tr><th>Fuel<td>wood",
    "bold names": "<tr><td><b>Age</b><td>12<tr><td><b>Fuel</b><td>wood",
    "bold everywhere": "<tr><td><b>Age</b><td><b>12</b><tr><td><b>Fuel</b><td><b>wood</b>",
    "years in a column": "<tr><td>Ann<td>1984<td>a<tr><td>Bob<td>2001<td>b",
    "kinds with figures": "<tr><td>Bolt<td>M3<td>a<tr><td>Nut<td>M4<td>b",
    "figures in a column": "<tr><td>Fat<td>0 mg<td>much<tr><td>Sugar<td>1 mg<td>no",
}


@pytest.mark.parametrize("rows", HEADERS.values(), ids=HEADERS)
def test_row_that_names_columns_is_the_header(convert: Convert, rows: str) -> None:
    first, rule, *_ = convert(f"<table>{rows}</table>").markdown.splitlines()

    assert first.strip("| ")
    assert rule.startswith("| ---")


@pytest.mark.parametrize("rows", NO_HEADERS.values(), ids=NO_HEADERS)
def test_row_like_the_others_names_no_columns(convert: Convert, rows: str) -> None:
    markdown = convert(f"<table>{rows}</table>").markdown

    first, rule, *_ = markdown.splitlines()
    assert not first.strip("| ")
    assert rule.startswith("| ---")
    units = cut_units(markdown).units
    assert len(units) == rows.count("<tr>")
    assert all(unit.lead is None for unit in units)


def test_table_in_a_cell_keeps_its_rows(convert: Convert) -> None:
    inner = "<table><tr><th>N<th>M<tr><td>n<td>m</table>"
    html = f"<table><tr><th>A<th>B<tr><td>a<td>see {inner}</table><p>After.</p>"
    assert convert(html).markdown == (
        "| A | B |\n| --- | --- |\n| a | see |\n\n| N | M |\n| --- | --- |\n| n | m |\n\nAfter."
    )


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ("<tr><td>Width<td>1 m<tr><td>Depth<td>2 m", "Width 1 m<br>Depth 2 m"),
        ("<tr><th>Width<td>1 m<tr><th>Depth<td>2 m", "Width 1 m<br>Depth 2 m"),
        ("<tr><td>one<tr><td>two", "one<br>two"),
        ("<caption>Sizes</caption><tr><td>W<td>1 m<tr><td>D<td>2 m", "Sizes<br>W 1 m<br>D 2 m"),
        ("<tr><td><p>W</p><td><p>1 m</p><tr><td>D<td>\n<p>2</p> <p>m</p>", "W 1 m<br>D 2<br>m"),
    ],
)
def test_names_and_values_in_a_cell_are_lines_of_it(
    convert: Convert, rows: str, lines: str
) -> None:
    html = f"<table><tr><th>A<th>B<tr><td>a<td>see <table>{rows}</table><tr><td>b<td>c</table>"

    assert convert(html).markdown == f"| A | B |\n| --- | --- |\n| a | see<br>{lines} |\n| b | c |"


NUMBERS = {
    "values": ("<ol start=5><li>a<li value=9>b<li>c</ol>", "5. a\n9. b\n10. c"),
    "backwards": ("<ol reversed><li>a<li>b</ol>", "2. a\n1. b"),
    "backwards from a start": ("<ol reversed start=9><li>a<li>b</ol>", "9. a\n8. b"),
    "below zero": ("<ol reversed start=0><li>a<li>b</ol>", "0. a\n-1. b"),
    "no number": ("<ol><li>a<li value=x>b</ol>", "1. a\n2. b"),
}


@pytest.mark.parametrize(("html", "markdown"), NUMBERS.values(), ids=NUMBERS)
def test_items_bear_the_numbers_that_the_page_shows(
    convert: Convert, html: str, markdown: str
) -> None:
    assert convert(f"<p>x</p>{html}").markdown == f"x\n\n{markdown}"


CELL = st.tuples(st.integers(1, 4), st.integers(1, 4))


@given(st.lists(st.lists(CELL, min_size=1, max_size=4), min_size=1, max_size=5))
def test_every_row_holds_all_texts_that_reach_into_it(rows: list[list[tuple[int, int]]]) -> None:
    html = "".join(
        "<tr>" + "".join(f"<td rowspan={d} colspan={a}>r{y}c{x}" for x, (d, a) in enumerate(row))
        for y, row in enumerate(rows)
    )
    tree = LexborHTMLParser(f"<body><table><tr><th>A<th>B</tr>{html}</table>")
    assert tree.body is not None
    rewrite_tables(tree.body)

    for y, found in enumerate(tree.css("tr")[1:]):
        texts = {cell.text() for cell in found.css("td")}
        own = {f"r{y}c{x}" for x in range(len(rows[y]))}
        assert own <= texts
        assert all(int(text[1:].partition("c")[0]) <= y for text in texts)


def test_lines_drawn_in_a_table_are_no_rows(convert: Convert) -> None:
    page = f"<table>{HEAD}<tr><td><hr><td><hr><td><hr></tr><tr><td>1<td><hr>2<td>3</table>"

    assert RULE + "| 1 | 2 | 3 |" in convert(page).markdown


def test_rows_that_show_nothing_are_no_rows(convert: Convert) -> None:
    page = f"<table>{HEAD}<tr><td colspan=3>&nbsp;</tr><tr><td>1<td>2<td>3</table>"

    assert convert(page).markdown == RULE + "| 1 | 2 | 3 |"


def test_line_below_the_first_row_alone_makes_it_the_header(convert: Convert) -> None:
    line = "<tr><td colspan=2 class=bar></td></tr>"
    page = f"<table><tr><td>Word<td>Sense</tr>{line}<tr><td>not<td>no<tr><td>and<td>both{line}"

    assert convert(page).markdown == (
        "| Word | Sense |\n| --- | --- |\n| not | no |\n| and | both |"
    )


def test_table_around_a_heading_alone_is_no_table(convert: Convert) -> None:
    page = "<table><tr><td><h1>Kilns</h1><td></tr><tr><td colspan=2></table><p>Clay.</p>"

    assert convert(page).markdown == "# Kilns\n\nClay."


def test_line_drawn_between_two_texts_of_a_cell_parts_them(convert: Convert) -> None:
    page = "<table><tr><th>A<th>B<tr><td>10<hr>20<td><hr>x<hr></table>"

    assert "\n| 10<br>20 | x |" in convert(page).markdown


def test_cell_reaches_across_a_drawn_line_as_far_as_the_page_says(convert: Convert) -> None:
    rows = "<tr><td rowspan=3>A<td>1<tr><td><hr><tr><td>2<tr><td>B<td>3"

    markdown = convert(f"<table><tr><th>N<th>M</tr>{rows}</table>").markdown

    assert markdown.endswith("\n| --- | --- |\n| A | 1 |\n| A | 2 |\n| B | 3 |")


def test_line_drawn_below_headers_is_no_header(convert: Convert) -> None:
    line = "<tr><th><hr><th><hr><th><hr></tr>"

    assert convert(f"<table>{HEAD}{line}<tr><td>1<td>2<td>3</table>").markdown == (
        RULE + "| 1 | 2 | 3 |"
    )


def test_table_that_is_only_a_drawn_line_may_stand_in_another(convert: Convert) -> None:
    line = "<table><tr><td><hr></td></tr></table>"

    assert convert(f"<p>Clay.</p><table><tr><td>{line}</td></tr></table>").markdown == "Clay."


def test_row_that_holds_only_a_drawn_line_of_an_inner_table_still_counts(convert: Convert) -> None:
    line = "<table><tr><td><hr></td></tr></table>"
    rows = f"<tr><td rowspan=3>A<td>1<tr><td>{line}</td></tr><tr><td>2<tr><td>B<td>3"

    assert convert(f"<table>{rows}</table>").markdown.endswith("| A | 2 |\n| B | 3 |")


def test_table_whose_cells_are_empty_is_not_stored(convert: Convert) -> None:
    assert "|" not in convert("<p>Kiln bakes.<table><tr><td> <td><tr><td><td></table>").markdown


def test_column_that_only_keeps_others_apart_is_none(convert: Convert) -> None:
    rows = "<tr><td>Linux:<td><td>~/.kiln/<tr><td>Mac:<td> <td>~/Library/Kiln/"

    assert convert(f"<table>{rows}</table>").markdown == (
        "|  |  |\n| --- | --- |\n| Linux: | ~/.kiln/ |\n| Mac: | ~/Library/Kiln/ |"
    )


def test_names_of_columns_below_the_first_line_over_a_table_hold_below_the_others(
    convert: Convert,
) -> None:
    sizes = "<tr><td colspan=2>Sizes<tr><th>Name<th>Value<tr><td>Small<td>1<tr><td>Large<td>2"
    weights = "<tr><td colspan=2>Weights<tr><td>Light<td>3<tr><td>Heavy<td>4"

    rows = convert(f"<p>x</p><table>{sizes}{weights}</table>").markdown

    assert "Weights\n\n| Name | Value |\n| --- | --- |\n| Light | 3 |" in rows


def test_lines_over_all_of_a_table_that_begins_with_one_stand_above_their_rows(
    convert: Convert,
) -> None:
    sizes = "<tr><td colspan=2>Sizes<tr><td>Small<td>red<tr><td>Large<td>blue"
    weights = "<tr><td colspan=2>Weights<tr><td>Light<td>soft<tr><td colspan=2>All are in stock."

    rows = convert(f"<p>x</p><table>{sizes}{weights}</table>").markdown

    rule = "|  |  |\n| --- | --- |\n"
    assert f"Sizes\n\n{rule}| Small | red |\n| Large | blue |\n\nWeights\n\n| Light |" in rows
    assert rows.endswith("\n\nAll are in stock.")


def test_table_whose_rows_have_different_numbers_of_cells_is_kept(convert: Convert) -> None:
    cells = (("Kiln", "Hot", "Red"), ("Oven", "Warm"), ("Pot", "Cold", "Blue"))
    rows = ("".join(f"<td>{cell}</td>" for cell in row) for row in cells)
    table = "".join(f"<tr>{row}</tr>" for row in rows)

    told = convert(f"<p>They are:</p><table>{table}</table>").markdown

    assert [cell for row in cells for cell in row if cell not in told] == []

# ruff: noqa: E501 - the documents' lines are long
"""Sheets and letters are stored as they are shown."""

import io
import zipfile
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from openpyxl import Workbook

from webrag.errors import UnusablePageError
from webrag.ingestion.extract import extract
from webrag.ingestion.formats.office import shown_value
from webrag.ingestion.models import FetchedPage

JANUARY_5 = date(2026, 1, 5)
VALUES = [
    (None, "General", ""),
    (12, "General", "12"),
    (12.0, "General", "12"),
    (0.1 + 0.2, "General", "0.3"),
    (True, "General", "TRUE"),
    (False, "General", "FALSE"),
    ("007", "@", "007"),
    (7, "000", "007"),
    (7.5, "000.00", "007.50"),
    ("NA", "General", "NA"),
    (0.125, "0%", "12%"),
    (0.125, "0.0%", "12.5%"),
    (1234.5, "#,##0.00", "1,234.50"),
    (1234.5, "0.##", "1234.5"),
    (1234.0, "0.##", "1234"),
    (5, '"kg" 0', "kg 5"),
    (5, '0 "kg"', "5 kg"),
    (5, "[$€-407] #,##0.00", "€ 5.00"),
    (-5, "0;(0)", "(5)"),
    (-5, "0.0", "-5.0"),
    (5, "[Red]0.0", "5.0"),
    (1.5e20, "0.00E+00", "1.5e+20"),
    (datetime.combine(JANUARY_5, time()), "yyyy-mm-dd", "2026-01-05"),
    (datetime.combine(JANUARY_5, time(13, 30)), "dd.mm.yy hh:mm", "2026-01-05 13:30"),
    (datetime.combine(JANUARY_5, time(13, 30, 5)), "dd.mm.yy", "2026-01-05 13:30:05"),
    (time(9, 15), "hh:mm", "09:15:00"),
    (timedelta(hours=30, minutes=5), "[h]:mm:ss", "30:05:00"),
]


@pytest.mark.parametrize(("value", "number_format", "text"), VALUES)
def test_value_is_stored_as_its_sheet_shows_it(value: Any, number_format: str, text: str) -> None:
    assert shown_value(value, number_format) == text


def stored(name: str, body: bytes) -> str:
    url = f"file:///x/{name}"
    page = FetchedPage(
        requested_url=url, url=url, status=200, kind="office", text="", body=body,
        fetched_at=datetime(2026, 1, 1, tzinfo=UTC), source="files",
    )  # fmt: skip
    return extract(page).markdown


def saved(book: Workbook) -> bytes:
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def workbook(*rows: list[Any]) -> Workbook:
    book = Workbook()
    book.active.title = "Stock"
    for row in rows:
        book.active.append(row)
    return book


def test_sheet_is_a_table_without_made_up_names_or_empty_rows_and_columns() -> None:
    book = workbook([], [None, "Part", None, "Left|Right"], [None, "bolt", None, "a|b"], [])

    assert stored("a.xlsx", saved(book)) == (
        "## Stock\n\n| Part | Left\\|Right |\n| --- | --- |\n| bolt | a\\|b |"
    )


def test_merged_cell_stands_in_each_of_its_places() -> None:
    book = workbook(["Region", "Town"], ["North", "Alta"], [None, "Bergen"])
    book.active.merge_cells("A2:A3")

    assert stored("a.xlsx", saved(book)).endswith("| North | Alta |\n| North | Bergen |")


def test_lines_of_a_sheet_cell_stay_apart() -> None:
    assert "| one<br>two |" in stored("a.xlsx", saved(workbook(["A"], ["one\ntwo"])))


def test_hidden_sheets_rows_and_columns_stay_out() -> None:
    book = workbook(["A", "B", "C"], ["row", 2, 3], ["shown", 5, 6])
    book.active.row_dimensions[2].hidden = True
    book.active.column_dimensions["B"].hidden = True
    book.create_sheet("Secret").append(["concealed"])
    book["Secret"].sheet_state = "hidden"

    assert stored("a.xlsx", saved(book)) == "## Stock\n\n| A | C |\n| --- | --- |\n| shown | 6 |"


def test_rows_that_a_filter_sets_aside_stay() -> None:
    book = workbook(["A"], ["one"], ["two"])
    book.active.auto_filter.ref = "A1:A3"
    book.active.row_dimensions[2].hidden = True

    assert "| one |" in stored("a.xlsx", saved(book))


W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels"'
    ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml"'
    ' ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
LINKS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1"'
    ' Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"'
    ' Target="word/document.xml"/></Relationships>'
)


def letter(content: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("[Content_Types].xml", TYPES)
        packed.writestr("_rels/.rels", LINKS)
        packed.writestr(
            "word/document.xml",
            f'<w:document xmlns:w="{W}"><w:body>{content}</w:body></w:document>',
        )
    return file.getvalue()


def paragraph(text: str, style: str = "") -> str:
    return f"<w:p><w:r><w:rPr>{style}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r></w:p>"


def row(*cells: str) -> str:
    return f"<w:tr>{''.join(f'<w:tc>{cell}</w:tc>' for cell in cells)}</w:tr>"


def test_table_of_a_letter_keeps_pipes_lines_and_inner_tables() -> None:
    inner = (
        f"<w:tbl>{row(paragraph('N'), paragraph('M'))}{row(paragraph('n'), paragraph('m'))}</w:tbl>"
    )
    cells = (paragraph("a|b"), paragraph("one") + paragraph("two") + inner)
    table = f"<w:tbl>{row(paragraph('A'), paragraph('B'))}{row(*cells)}</w:tbl>"

    markdown = stored("a.docx", letter(paragraph("Start.") + table))

    assert "| a\\|b | one<br>two<br>N M<br>n m |" in markdown


def test_cell_of_a_letter_that_spans_rows_is_repeated() -> None:
    start, goes_on = (f"<w:tcPr><w:vMerge{value}/></w:tcPr>" for value in (' w:val="restart"', ""))
    rows = row(paragraph("A"), paragraph("B"))
    rows += row(start + paragraph("x"), paragraph("1")) + row(
        goes_on + paragraph(""), paragraph("2")
    )

    assert stored("a.docx", letter(f"<w:tbl>{rows}</w:tbl>")).endswith("| x | 1 |\n| x | 2 |")


def test_superscript_of_a_letter_is_told_from_its_digits() -> None:
    raised = paragraph("2", "<w:vertAlign w:val='superscript'/>").removeprefix("<w:p>")
    content = paragraph("Energy is mc").removesuffix("</w:p>") + raised

    assert stored("a.docx", letter(content)) == "Energy is mc^2"


@pytest.mark.parametrize("ending", ["xlsx", "docx", "pptx"])
def test_damaged_document_is_named_so(ending: str) -> None:
    with pytest.raises(UnusablePageError) as refused:
        stored(f"a.{ending}", b"PK\x03\x04 and no more")

    assert refused.value.kind == "damaged"

# ruff: noqa: E501 - the documents' lines are long
"""OpenDocument texts, sheets and slides are stored as their readers see them."""

import io
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from webrag.errors import UnusablePageError
from webrag.ingestion.extract import extract
from webrag.ingestion.formats import opendocument
from webrag.ingestion.models import FetchedPage, NormalizedDocument

URN = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
NAMES = {"draw": "drawing", "svg": "svg-compatible"} | {
    name: name for name in ("meta", "office", "presentation", "style", "table", "text")
}
SPACES = " ".join(f'xmlns:{prefix}="{URN.format(name)}"' for prefix, name in NAMES.items())
SPACES += ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'
STYLES = """
<style:style style:name="Gone" style:family="text"><style:text-properties text:display="none"/></style:style>
<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Gone"/>
<style:style style:name="Raised" style:family="text"><style:text-properties style:text-position="super 58%"/></style:style>
<style:style style:name="Preformatted_20_Text" style:family="paragraph"/>
<style:style style:name="P2" style:family="paragraph" style:parent-style-name="Preformatted_20_Text"/>
<style:style style:name="ta" style:family="table"><style:table-properties table:display="false"/></style:style>
<style:style style:name="dp" style:family="drawing-page"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>
<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/></text:list-style>
"""


def packed(kind: str, body: str, meta: str = "", before: str = "") -> bytes:
    media = {"odt": "text", "ods": "spreadsheet", "odp": "presentation"}[kind]
    content = f"<office:automatic-styles>{STYLES}</office:automatic-styles><office:body><office:{media}>{body}</office:{media}></office:body>"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr(zipfile.ZipInfo("mimetype"), f"application/vnd.oasis.opendocument.{media}")
        package.writestr(
            "content.xml",
            f"{before}<office:document-content {SPACES}>{content}</office:document-content>",
        )
        package.writestr(
            "meta.xml",
            f"<office:document-meta {SPACES}><office:meta>{meta}</office:meta></office:document-meta>",
        )
    return file.getvalue()


def read(body: bytes, url: str = "file:///x/a.odt") -> NormalizedDocument:
    page = FetchedPage(
        requested_url=url, url=url, status=200, kind="office", text="", body=body,
        fetched_at=datetime(2026, 1, 1, tzinfo=UTC), source="files",
    )  # fmt: skip
    return extract(page)


def stored(kind: str, body: str) -> str:
    return read(packed(kind, body)).markdown


def line(text: str, style: str = "") -> str:
    return f'<text:p text:style-name="{style}">{text}</text:p>'


def cell(text: str, more: str = "") -> str:
    return f"<table:table-cell {more}>{line(text)}</table:table-cell>"


def row(*cells: str, more: str = "") -> str:
    return f"<table:table-row {more}>{''.join(cells)}</table:table-row>"


def table(*rows: str, more: str = "") -> str:
    return f'<table:table table:name="Stock" {more}>{"".join(rows)}</table:table>'


def test_headings_keep_their_levels_and_lists_their_numbers_and_depth() -> None:
    inner = f"<text:list><text:list-item>{line('fine')}</text:list-item></text:list>"
    items = f"<text:list-item>{line('grind')}{inner}</text:list-item><text:list-item>{line('brew')}</text:list-item>"
    body = f'<text:h text:outline-level="2">Coffee</text:h><text:list text:style-name="L">{items}</text:list>'

    assert stored("odt", body) == "## Coffee\n\n1. grind\n   - fine\n2. brew"


def test_lines_of_code_stay_together_with_their_blanks() -> None:
    body = line("for x in y:", "P2") + line('<text:s text:c="4"/>print(x &lt; 2)', "P2")

    assert stored("odt", line("Run") + body) == ("Run\n\n```\nfor x in y:\n    print(x < 2)\n```")


def test_blanks_tabs_and_line_ends_part_words() -> None:
    assert stored("odt", line("a<text:s/>b<text:tab/>c<text:line-break/>d")) == "a b c  \nd"


def test_signs_of_markup_in_a_text_stay_signs() -> None:
    assert stored("odt", line("Use &lt;b&gt; &amp;amp; *x*")) == "Use <b> &amp; *x*"


def test_note_stands_apart_from_its_sentence() -> None:
    note = f"<text:note><text:note-citation>1</text:note-citation><text:note-body>{line('Or 96.')}</text:note-body></text:note>"

    markdown = stored("odt", line(f"It takes 95{note} seconds.") + line("Then it ends."))

    assert markdown.startswith("It takes 95[1] seconds.\n\nThen it ends.\n\n[1]")
    assert markdown.endswith("Or 96.")


def test_superscript_is_told_from_its_digits() -> None:
    assert stored("odt", line('mc<text:span text:style-name="Raised">2</text:span>')) == "mc^2"


def test_picture_is_shown_by_what_is_said_of_it() -> None:
    picture = "<draw:frame><draw:image xlink:href='Pictures/1.png'/><svg:title>Sales in May</svg:title></draw:frame>"

    assert stored("odt", line(f"See {picture}")) == "See Sales in May"


def test_text_in_a_box_is_kept() -> None:
    box = f"<draw:frame><draw:text-box>{line('In the box')}</draw:text-box></draw:frame>"

    assert stored("odt", line(f"Around it{box}")) == "Around it\n\nIn the box"


@pytest.mark.parametrize(
    "unseen",
    [
        '<text:p>Kept<text:span text:style-name="Gone">SECRET</text:span></text:p>',
        line("SECRET", "P1"),
        f'<text:section text:display="none">{line("SECRET")}</text:section>',
        '<text:p><text:hidden-text text:is-hidden="true">SECRET</text:hidden-text></text:p>',
        '<text:p><text:hidden-paragraph text:is-hidden="true"/>SECRET</text:p>',
        f"<text:tracked-changes><text:changed-region><text:deletion>{line('SECRET')}</text:deletion></text:changed-region></text:tracked-changes>",
        f"<text:p><office:annotation><dc:creator>SECRET</dc:creator>{line('SECRET')}</office:annotation></text:p>",
        f"<text:table-of-content><text:index-body>{line('SECRET')}</text:index-body></text:table-of-content>",
        f"<text:alphabetical-index><text:index-body>{line('SECRET')}</text:index-body></text:alphabetical-index>",
    ],
    ids=[
        "part of a line", "line", "section", "field", "line by a field", "deletion", "comment",
        "contents", "index",
    ],
)  # fmt: skip
def test_what_a_reader_does_not_see_is_left_out_of_a_text(unseen: str) -> None:
    markdown = stored("odt", line("Before.") + unseen + line("After."))

    assert "SECRET" not in markdown
    assert markdown.startswith("Before.")
    assert markdown.endswith("After.")


def test_text_after_a_comment_in_its_line_stays() -> None:
    said = line(f"One<office:annotation>{line('why')}</office:annotation> two.")

    assert stored("odt", said) == "One two."


def test_merged_cell_stands_in_each_of_its_places() -> None:
    covered = "<table:covered-table-cell/>"
    head = row(cell("Region"), cell("Sales", 'table:number-columns-spanned="2"'), covered)
    north = row(cell("North", 'table:number-rows-spanned="2"'), cell("1"), cell("a|b"))
    rows = f"<table:table-header-rows>{head}</table:table-header-rows>{north}{row(covered, cell('3'), cell('4'))}"

    assert stored("odt", line("Sold") + table(rows)) == (
        "Sold\n\n| Region | Sales | Sales |\n| --- | --- | --- |\n| North | 1 | a\\|b |\n| North | 3 | 4 |"
    )


def test_line_over_a_whole_table_is_said_once() -> None:
    covered = '<table:covered-table-cell table:number-columns-repeated="{}"/>'
    spans = 'table:number-columns-spanned="2" table:number-rows-spanned="2"'
    rows = (
        row(cell("Prices", spans), covered.format(1)),
        row(covered.format(2)),
        row(cell("Part"), cell("Euro")),
    )

    assert stored("ods", table(*rows)).count("Prices") == 1


def test_sheet_shows_its_values_as_written_below_its_first_row() -> None:
    value = cell("1.234,50 €", 'office:value-type="currency" office:value="1234.5"')

    assert stored("ods", table(row(cell("Part"), cell("Price")), row(cell("bolt"), value))) == (
        "| Part | Price |\n| --- | --- |\n| bolt | 1.234,50 € |"
    )


def test_empty_rows_and_columns_to_the_end_of_a_sheet_are_left_out() -> None:
    end = '<table:table-cell table:number-columns-repeated="16382"/>'
    last = row(end, more='table:number-rows-repeated="1048574"')

    assert stored("ods", table(row(cell("A"), end), row(cell("1"), end), last, row(cell("2")))) == (
        "| A |\n| --- |\n| 1 |\n| 2 |"
    )


def test_repeated_rows_and_cells_are_written_out() -> None:
    twice = cell("x", 'table:number-columns-repeated="2"')

    markdown = stored(
        "ods",
        table(row(cell("A"), cell("B")), row(twice, more='table:number-rows-repeated="3"')),
    )

    assert markdown.endswith("| x | x |\n| x | x |\n| x | x |")


def test_hidden_sheets_rows_and_columns_are_left_out() -> None:
    columns = '<table:table-column/><table:table-column table:visibility="collapse"/>'
    shown = table(
        columns,
        row(cell("A"), cell("SECRET"), cell("C")),
        row(cell("SECRET"), more='table:visibility="collapse"'),
        row(cell("1", 'table:number-columns-repeated="3"')),
    )

    markdown = stored("ods", shown + table(row(cell("SECRET")), more='table:style-name="ta"'))

    assert markdown == "| A | C |\n| --- | --- |\n| 1 | 1 |"


def test_rows_that_a_filter_sets_aside_stay() -> None:
    rows = (row(cell("A")), row(cell("one"), more='table:visibility="filter"'))

    assert "one" in stored("ods", table(*rows))


def frame(text: str, role: str = "", more: str = "") -> str:
    return f'<draw:frame presentation:class="{role}" {more}><draw:text-box>{line(text)}</draw:text-box></draw:frame>'


def slide(*frames: str, more: str = "") -> str:
    return f"<draw:page {more}>{''.join(frames)}</draw:page>"


def test_slide_has_its_title_above_its_text_and_notes() -> None:
    notes = f"<presentation:notes>{frame('Speak slowly', 'notes')}</presentation:notes>"

    markdown = stored("odp", slide(frame("Sales", "title"), frame("They rise"), notes))

    assert markdown == "## Sales\n\nThey rise\n\n> Speak slowly"


def test_hidden_slides_margins_and_unfilled_frames_are_left_out() -> None:
    unseen = (
        frame("SECRET", "footer"),
        frame("SECRET", "title", 'presentation:placeholder="true"'),
    )
    hidden = slide(frame("SECRET"), more='draw:style-name="dp"')

    assert stored("odp", slide(frame("Shown"), *unseen) + hidden) == "Shown"


META = (
    "<dc:title>Coffee</dc:title><meta:initial-creator>Ann Lee</meta:initial-creator>"
    "<meta:creation-date>2025-03-01T10:00:00</meta:creation-date><dc:date>2025-06-03T08:00:00</dc:date>"
)


def test_title_author_and_days_are_those_that_the_document_names() -> None:
    document = read(packed("odt", line("Grind it."), META))

    assert (document.title, document.author) == ("Coffee", "Ann Lee")
    assert document.published_at == datetime(2025, 3, 1, 10, tzinfo=UTC)
    assert document.modified_at == datetime(2025, 6, 3, 8, tzinfo=UTC)


def test_text_without_a_title_has_that_of_its_first_heading() -> None:
    body = '<text:h text:outline-level="1">Coffee</text:h>' + line("Grind it.")

    assert read(packed("odt", body)).title == "Coffee"


def test_document_of_an_address_without_its_ending_is_read() -> None:
    body = packed("ods", table(row(cell("A")), row(cell("1"))))

    assert "| A |" in read(body, "https://docs.test/download/5").markdown


async def test_document_is_fetched_and_read(
    make_fetcher: Callable[..., Any], static_site: Any
) -> None:
    body = packed("odt", line("The answer is forty-two."))
    headers = {"Content-Type": "application/vnd.oasis.opendocument.text"}
    site = static_site({"/a": lambda _: (200, headers, body)})

    page = await make_fetcher(max_wire_bytes=500, max_pdf_bytes=50_000).fetch(f"{site}/a")

    assert extract(page).markdown == "The answer is forty-two."


def test_entity_brings_in_no_file() -> None:
    before = '<!DOCTYPE x [<!ENTITY file SYSTEM "file:///etc/hostname">]>'

    markdown = read(packed("odt", line("Kept &file;"), before=before)).markdown

    assert markdown == "Kept &file;"


BILLION = "".join(
    f'<!ENTITY e{n} "{f"&e{n - 1};" * 100}">' if n else '<!ENTITY e0 "lol">' for n in range(8)
)
DAMAGED = {
    "no archive": b"PK\x03\x04 and no more",
    "no content": packed("odt", line("x")).replace(b"content.xml", b"contents.xm"),
    "deep": packed("odt", "<text:section>" * 5_000 + "</text:section>" * 5_000),
    "many cells": packed(
        "ods",
        table(
            row(
                cell("x", 'table:number-columns-repeated="16384"'),
                more='table:number-rows-repeated="1048576"',
            )
        ),
    ),
    "entities": packed("odt", line("&e7;"), before=f"<!DOCTYPE x [{BILLION}]>"),
}


@pytest.mark.parametrize("body", DAMAGED.values(), ids=DAMAGED)
def test_damaged_or_exploding_document_is_named_so(body: bytes) -> None:
    with pytest.raises(UnusablePageError, match=r"cannot be read as \.odt") as refused:
        read(body)

    assert refused.value.kind == "damaged"


def test_document_of_more_than_is_read_is_named_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opendocument, "_MOST_BYTES", 10_000)

    with pytest.raises(UnusablePageError) as refused:
        read(packed("odt", line("x" * 10_000)))

    assert refused.value.kind == "damaged"

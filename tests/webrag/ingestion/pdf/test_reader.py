from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.growth import grows_as_its_input
from webrag.errors import UnusablePageError
from webrag.ingestion.extract import extract
from webrag.ingestion.models import Content, FetchedPage, NormalizedDocument
from webrag.ingestion.pdf.layout import Line, blocks_of
from webrag.ingestion.pdf.reader import read_pdf
from webrag.ingestion.service import ExtractionPool

URL = "https://site.test/paper.pdf"


def make_pdf(
    pages: Sequence[Sequence[str]],
    *,
    bookmarks: Sequence[tuple[str, int]] = (),
    title: str = "",
    link: str = "",
    is_encrypted: bool = False,
) -> bytes:
    """One text line per entry; an empty one leaves a gap; `# x` is larger, `$ x` a listing's."""
    objects: list[bytes] = []

    def add(content: bytes) -> int:
        objects.append(content)
        return len(objects)

    catalog, tree = add(b""), add(b"")
    font = add(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
    fixed = add(b"<</Type/Font/Subtype/Type1/BaseFont/Courier/Encoding/WinAnsiEncoding>>")
    numbers: list[int] = []
    for lines in pages:
        stream = _text(lines)
        text = add(b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream))
        annotation = b""
        if link:
            note = add(
                b"<</Type/Annot/Subtype/Link/Rect[72 690 300 712]/A<</S/URI/URI(%b)>>>>"
                % link.encode()
            )
            annotation = b"/Annots[%d 0 R]" % note
        numbers.append(
            add(
                b"<</Type/Page/Parent %d 0 R/MediaBox[0 0 612 792]/Contents %d 0 R%b"
                b"/Resources<</Font<</F %d 0 R/C %d 0 R>>>>>>"
                % (tree, text, annotation, font, fixed)
            )
        )
    kids = b" ".join(b"%d 0 R" % number for number in numbers)
    objects[tree - 1] = b"<</Type/Pages/Kids[%b]/Count %d>>" % (kids, len(numbers))
    outline = _outline(objects, bookmarks, numbers) if bookmarks else b""
    objects[catalog - 1] = b"<</Type/Catalog/Pages %d 0 R%b>>" % (tree, outline)
    info = add(b"<</Title(%b)/CreationDate(D:20240301120000Z)>>" % title.encode("latin-1"))
    trailer = b"/Info %d 0 R" % info
    if is_encrypted:
        key = b"<" + b"5a" * 32 + b">"
        lock = add(b"<</Filter/Standard/V 1/R 2/P -4/O %b/U %b>>" % (key, key))
        trailer += b"/Encrypt %d 0 R/ID[<00><00>]" % lock
    return _file(objects, catalog, trailer)


def _text(lines: Sequence[str]) -> bytes:
    y = 700
    drawn: list[bytes] = []
    for line in lines:
        size = 20 if line.startswith("# ") else 11
        font = b"C" if line.startswith("$ ") else b"F"
        told = line.removeprefix("# ").removeprefix("$ ")
        left = 72 + 6.6 * (len(told) - len(told.lstrip()))
        shown = told.strip().encode("cp1252")
        for char in (b"\\", b"(", b")"):
            shown = shown.replace(char, b"\\" + char)
        if line:
            drawn.append(b"BT /%b %d Tf %.1f %d Td (%b) Tj ET" % (font, size, left, y, shown))
        y -= 14 if size == 11 else 30
    return b"\n".join(drawn)


def _outline(objects: list[bytes], bookmarks: Sequence[tuple[str, int]], pages: list[int]) -> bytes:
    root = len(objects) + 1
    last = root + len(bookmarks)
    objects.append(b"<</First %d 0 R/Last %d 0 R/Count %d>>" % (root + 1, last, len(bookmarks)))
    for place, (title, page) in enumerate(bookmarks, start=root + 1):
        following = b"/Next %d 0 R" % (place + 1) if place < last else b""
        objects.append(
            b"<</Title(%b)/Parent %d 0 R/Dest[%d 0 R/Fit]%b>>"
            % (title.encode("latin-1"), root, pages[page], following)
        )
    return b"/Outlines %d 0 R" % root


def _file(objects: list[bytes], catalog: int, trailer: bytes) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    offsets: list[int] = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for offset in offsets:
        out += b"%010d 00000 n \n" % offset
    out += b"trailer<</Size %d/Root %d 0 R%b>>\n" % (len(objects) + 1, catalog, trailer)
    return bytes(out + b"startxref\n%d\n%%%%EOF" % table)


def read(*pages: Sequence[str], **options: Any) -> Content:
    return read_pdf(make_pdf(pages, **options), URL)


def as_document(body: bytes) -> NormalizedDocument:
    return extract(fetched(body))


def fetched(body: bytes) -> FetchedPage:
    return FetchedPage(
        requested_url=URL,
        url=URL,
        status=200,
        kind="pdf",
        text="",
        body=body,
        fetched_at=datetime(2026, 1, 1, tzinfo=UTC),
        source="test",
    )


LONG = "This line of the paragraph is as long as the page is wide, or nearly so, and goes on"


def test_lines_become_paragraphs() -> None:
    pdf = read([LONG, "in the second line of it.", "", "A second paragraph stands apart."])

    assert pdf.markdown == (f"{LONG} in the second line of it.\n\nA second paragraph stands apart.")


def test_items_of_a_list_are_blocks_of_their_own() -> None:
    pdf = read(["We need three things now:", "\u2022 bread that is fresh", "\u2022 salt and water"])

    assert pdf.markdown.endswith("- bread that is fresh\n\n- salt and water")


def test_outline_gives_headings_where_the_page_shows_them() -> None:
    pages = [["1 Aim", "To measure the speed of it."], ["2 Method", "We took a clock and a rope."]]
    pdf = read(*pages, bookmarks=[("Aim", 0), ("2 Method", 1), ("Not on the page", 1)])

    assert pdf.markdown == (
        "# 1 Aim\n\nTo measure the speed of it.\n\n# 2 Method\n\nWe took a clock and a rope."
    )


def test_pages_are_headings_without_an_outline() -> None:
    pdf = read(["First page of the text."], ["Second page of the text."])

    assert pdf.markdown == (
        "## Page 1\n\nFirst page of the text.\n\n## Page 2\n\nSecond page of the text."
    )


def test_single_page_needs_no_heading() -> None:
    assert read(["Only this sentence is here."]).markdown == "Only this sentence is here."


def test_anchors_say_where_pages_begin() -> None:
    pdf = read(["First page of the text."], [], ["Third page of the text."])

    places = {anchor.fragment: pdf.markdown[anchor.char_start :][:9] for anchor in pdf.anchors}
    assert places == {"page=1": "## Page 1", "page=2": "## Page 3", "page=3": "## Page 3"}
    assert '<section id="page=3"><h2>Page 3</h2><p>Third page' in pdf.html


def test_running_heads_and_page_numbers_are_left_out() -> None:
    names = ("alpha", "beta", "gamma", "delta")
    pages = [
        ["The Annual Report", f"Text about {name}.", "", f"{number}"]
        for number, name in enumerate(names, start=1)
    ]

    assert "Annual" not in read(*pages).markdown
    assert read(*pages).markdown.count("\n\nText about") == 4


def test_running_head_of_several_lines_is_left_out_with_the_number_between_dashes() -> None:
    head = ["Prepared by", "A. Clerk", "Approved by", "The Board of the mill", "Revision A"]
    texts = ("Clay is dug.", "It dries.", "It is fired.", "A glaze is put on.")
    pages = [[*head, "", text, "", f"- {number} -"] for number, text in enumerate(texts, start=1)]

    found = read(["A title"], *pages, bookmarks=[("None", 0)]).markdown

    assert found.split("\n\n") == ["A title", *texts]


def test_text_that_all_pages_of_a_form_have_stays_on_the_first() -> None:
    form = ["Voucher", "of the mill", "It is worth ten crowns.", "It ends in May.", "", "Code"]
    pages = [
        [*form, code, "", "Keep it dry.", "Ask us.", "The mill"]
        for code in ("one", "two", "six", "ten")
    ]

    found = read(*pages).markdown

    assert found.count("ten crowns") == 1


def test_figures_that_differ_below_a_running_head_stay_on_each_page() -> None:
    def page(number: int, text: str) -> list[str]:
        figures = [f"Register {number}", f"It is reset to {number * 3}.", "", text, ""]
        return [
            "The mill",
            "Its registers",
            *figures,
            f"Worth {number}5 crowns",
            "The board",
            "Oslo",
        ]

    texts = ("Clay is dug.", "It dries.", "It is fired.", "A glaze is put on.")
    markdown = read(*(page(number, text) for number, text in enumerate(texts, start=1))).markdown

    assert "The mill" not in markdown
    for number in range(1, 5):
        assert f"It is reset to {number * 3}." in markdown
        assert f"Worth {number}5 crowns" in markdown


def test_slide_that_shows_line_by_line_is_read_once_below_its_heading() -> None:
    slide = ["Firing", "The kiln is lit.", "It is fed for ten hours."]
    steps = [slide[:2], slide, ["Cooling", "It takes three days."]]

    found = read(*steps, bookmarks=[("Firing", 0), ("Cooling", 2)])

    assert found.markdown == (
        "# Firing\n\nThe kiln is lit.\n\nIt is fed for ten hours.\n\n"
        "# Cooling\n\nIt takes three days."
    )
    assert [anchor.fragment for anchor in found.anchors] == ["page=1", "page=2", "page=3"]


def test_head_of_a_chapter_that_names_its_page_is_left_out() -> None:
    heads = ["Chapter 1: Clay 3", "4 Chapter 1: Clay", "Chapter 2: Glaze 5", "Chapter 3: Fire 6"]
    texts = ["Clay is dug in 2026", "It dries for 4 days", "A glaze has 5 parts", "Fire it well"]
    found = read(*([head, text] for head, text in zip(heads, texts, strict=True)))
    assert "Chapter" not in found.markdown
    assert all(text in found.markdown for text in texts)


def test_head_that_three_pages_in_a_row_have_is_left_out() -> None:
    texts = ("Clay is dug.", "It dries.", "It is fired.", "A glaze is put on.", "It cools.")
    heads = ("Of clay", "Of clay", "Of clay", "Of glaze", "Of the end")
    pages = [[head, "", text] for head, text in zip(heads, texts, strict=True)]

    found = read(["# Of clay", "It is soft."], *pages, ["One more page", "of it."]).markdown

    assert "\n\nClay is dug.\n" in found
    assert found.count("Of clay") == 1
    assert "Of glaze" in found


def test_heading_that_begins_with_the_number_of_its_page_stays() -> None:
    pages = [
        ["# 1. Clay", "It is soft."],
        ["# 2. Fire", "It is hot."],
        ["Of heat", "", "3"],
        ["Of ash", "", "4"],
        ["Of tongs", "", "5"],
    ]

    found = read(*pages).markdown

    assert "1. Clay" in found
    assert "2. Fire" in found
    assert "3" not in found.replace("Page 3", "")


def test_large_lines_are_headings_without_an_outline() -> None:
    first = ["# Firing", LONG, "goes on here.", "", "# Cooling it", LONG, "until it is cold."]
    found = read(first, ["# Selling", LONG, "for a price."], title="Pots").markdown

    assert found == (
        f"# Firing\n\n{LONG} goes on here.\n\n# Cooling it\n\n{LONG} until it is cold.\n\n"
        f"# Selling\n\n{LONG} for a price."
    )


def test_heading_begins_with_no_line_without_words() -> None:
    page = ["$ fire(kiln) {", "$     heat(kiln);", "$ }", "", "Utility functions", LONG]

    found = read(page, bookmarks=[("Utility functions", 0)]).markdown

    assert "}\n```\n\n# Utility functions\n\n" in found


def test_rows_of_dots_to_page_numbers_are_left_out_where_an_outline_names_the_same() -> None:
    found = read(
        ["Contents", "1 Firing . . . . . . . . . . 3", "2 Cooling........ 17"],
        ["1 Firing", "The kiln is fired slowly."],
        bookmarks=[("1 Firing", 1)],
    )
    assert found.markdown == "Contents\n\n# 1 Firing\n\nThe kiln is fired slowly."


def test_contents_without_an_outline_keep_their_titles() -> None:
    found = read(["Contents", "", "Firing . . . . . . . . . . 3", "Cooling ........ 17"])
    assert found.markdown == "Contents\n\nFiring\n\nCooling"


def test_lines_of_one_character_width_are_a_listing_as_it_stands() -> None:
    found = read(
        ["It is fired like this:", "", "$ def fire(kiln):", "$     kiln.heat()", "", "$ fire(big)"]
    )
    listing = "```\ndef fire(kiln):\n    kiln.heat()\n\nfire(big)\n```"
    assert found.markdown == f"It is fired like this:\n\n{listing}"
    assert "<pre>def fire(kiln):\n    kiln.heat()" in found.html


def test_paragraph_goes_on_after_a_line_that_is_set_as_a_listing() -> None:
    found = read(
        [LONG, "$ kiln.program(stoneware).begin(at_once=True, and_report=to_the_potter)", LONG]
    )
    assert "```" not in found.markdown
    assert found.markdown.count("\n") == 0


def test_page_of_listings_between_prose_is_read_in_time_that_grows_as_the_page() -> None:
    def page(count: int) -> list[Line]:
        heights = (14.0 * (2 * count - place) for place in range(2 * count))
        return [
            Line("a line", 72, 300, height + 11, height, height, advance=6.6 * (place % 2))
            for place, height in enumerate(heights)
        ]

    assert grows_as_its_input(blocks_of, page, 500)


def test_title_is_the_files() -> None:
    assert read(["Text of the file."], title="A Study of Ropes").meta.title == "A Study of Ropes"


@pytest.mark.parametrize("title", ["draft.docx", "(anonymous)"])
def test_title_is_the_largest_line_where_the_file_says_none(title: str) -> None:
    page = ["small line", "", "# On Ropes", "", "text"]

    assert read(page, title=title).meta.title == "On Ropes"


def test_paragraph_in_large_type_is_no_title() -> None:
    notes = [f"# the wine is good {number} times" for number in range(7)]

    title = read(["Tasting notes", *["small line"] * 8, *notes]).meta.title

    assert title is not None
    assert title.startswith("Tasting notes")


def test_dates_are_read() -> None:
    assert read(["Text of the file."]).meta.published_at == datetime(2024, 3, 1, 12, tzinfo=UTC)


def test_links_are_found_in_text_and_annotations() -> None:
    pdf = read(["See https://site.test/data for it."], link="https://site.test/other#x")
    written, annotated = pdf.links

    assert written.url == "https://site.test/data"
    assert pdf.markdown[written.char_start : written.char_end] == written.anchor_text
    assert (annotated.url, annotated.char_start) == ("https://site.test/other", None)


def test_text_that_looks_like_markup_stays_text() -> None:
    assert read(["# x", "> not a quotation but a comparison"]).markdown.endswith(
        "\\> not a quotation but a comparison"
    )


def test_document_of_a_pdf_has_its_text_and_anchors() -> None:
    document = as_document(make_pdf([["A sentence on the page."]], title="Ropes"))

    assert (document.title, document.url) == ("Ropes", URL)
    assert document.anchors[0].fragment == "page=1"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (make_pdf([["secret"]], is_encrypted=True), "encrypted"),
        (make_pdf([[], []]), "scanned"),
        (b"%PDF-1.7 nothing more", "damaged"),
        (b"%PDF-1.7\n" + b"\x00" * 5_000, "damaged"),
        (make_pdf([["Text."]])[:200], "damaged"),
    ],
)
def test_files_without_readable_text_are_named(body: bytes, kind: str) -> None:
    with pytest.raises(UnusablePageError, match="cannot be read") as caught:
        read_pdf(body, URL)

    assert caught.value.kind == kind


async def test_failure_of_a_pdf_comes_through_the_worker(pool: ExtractionPool) -> None:
    with pytest.raises(UnusablePageError) as caught:
        await pool.extract(fetched(make_pdf([["secret"]], is_encrypted=True)))

    assert (caught.value.kind, bool(caught.value.hint)) == ("encrypted", True)


async def test_pdf_is_fetched_and_read(
    make_fetcher: Callable[..., Any], static_site: Any, pool: ExtractionPool
) -> None:
    body = make_pdf([["The answer is forty-two."]])
    site = static_site({"/a": lambda _: (200, {"Content-Type": "application/pdf"}, body)})

    page = await make_fetcher(max_wire_bytes=500, max_pdf_bytes=50_000).fetch(f"{site}/a")

    assert (await pool.extract(page)).markdown == "The answer is forty-two."


@settings(max_examples=60)
@given(st.integers(min_value=10, max_value=900), st.binary(min_size=1, max_size=20))
def test_damaged_files_end_in_text_or_a_named_error(place: int, noise: bytes) -> None:
    body = bytearray(make_pdf([["Some text of the page."]], bookmarks=[("Some", 0)]))
    body[place : place + len(noise)] = noise

    with suppress(UnusablePageError):
        assert read_pdf(bytes(body), URL).markdown

"""Reads a PDF's text, outline and links; it recognises no characters in pictures."""

import ctypes
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from webrag.errors import UnusablePageError
from webrag.ingestion.addresses import link_target, page_address
from webrag.ingestion.characters import folded, one_line
from webrag.ingestion.formats.markdown import fenced, names_columns
from webrag.ingestion.models import Anchor, Content, OutgoingLink, PageMetadata, written_links
from webrag.ingestion.pdf.layout import (
    Heading,
    Line,
    blocks_of,
    large_headings,
    largest_lines,
    page_lines,
    with_hyphens,
    without_leaders,
    without_running_lines,
    without_steps,
)
from webrag.ingestion.versions import parse_date

_MAX_LINKS = 5_000
_MAX_ANCHOR_CHARS = 300


def annotated_links(
    document: pdfium.PdfDocument, pages: int, base_url: str
) -> Iterator[OutgoingLink]:
    """Yield the web addresses that parts of a PDF's first `pages` pages lead to, each once."""
    seen = {base_url}
    for index in range(pages):
        with closing(document[index]) as page:
            for address, box in _page_links(document, page):
                url = link_target(address, base_url)
                if url is not None and url not in seen:
                    seen.add(url)
                    with closing(page.get_textpage()) as said:
                        text = said.get_text_bounded(box.left, box.bottom, box.right, box.top)
                    anchor = one_line(text)[:_MAX_ANCHOR_CHARS]
                    yield OutgoingLink(url=url, anchor_text=anchor, sentence=anchor)
        if len(seen) > _MAX_LINKS:
            return


def _page_links(
    document: pdfium.PdfDocument, page: pdfium.PdfPage
) -> Iterator[tuple[str, pdfium_c.FS_RECTF]]:
    position = ctypes.c_int(0)
    link = pdfium_c.FPDF_LINK()
    while pdfium_c.FPDFLink_Enumerate(page, position, link):
        action = pdfium_c.FPDFLink_GetAction(link)
        if action and pdfium_c.FPDFAction_GetType(action) == pdfium_c.PDFACTION_URI:
            box = pdfium_c.FS_RECTF()
            pdfium_c.FPDFLink_GetAnnotRect(link, box)
            yield _address(document, action), box


def _address(document: pdfium.PdfDocument, action: pdfium_c.FPDF_ACTION) -> str:
    size = pdfium_c.FPDFAction_GetURIPath(document, action, None, 0)
    buffer = ctypes.create_string_buffer(size)
    pdfium_c.FPDFAction_GetURIPath(document, action, buffer, size)
    return buffer.value.decode("utf-8", errors="replace")


# 3 to 5 ms each (November 2026), so that the longest stay within the usual deadline.
_MAX_PAGES = 1_500
_MAX_CHARS = 5_000_000
_MAX_HEADING_CHARS = 200
_LEAST_LETTERS_PER_PAGE = 5
_PDF_DATE = re.compile(r"D?:?(\d{4})(\d{2})?(\d{2})?(\d{2})?(\d{2})?(\d{2})?")
_FILE_TITLE = re.compile(
    r"\.(?:docx?|dvi|indd|pdf|tex|pptx?|odt)\Z|^(?:microsoft word|untitled)", re.I
)
_UNSAID = frozenset({"(anonymous)", "(unspecified)"})  # as ReportLab writes
_HEADING_NUMBER = re.compile(r"(?:chapter|appendix|section|part|[a-z])?[\divxlc]*")
_BLOCK_SYNTAX = re.compile(r"(#{1,6} |>|```|~~~|\| )")


@dataclass
class _Writer:
    blocks: list[str] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    anchors: list[Anchor] = field(default_factory=list)
    length: int = 0

    @contextmanager
    def page(self, number: int, heading: str) -> Iterator[None]:
        self.anchors.append(Anchor(char_start=self.length, fragment=f"page={number}"))
        self.sections.append(f'<section id="page={number}">')
        if heading:
            self.add_heading(heading, 2)
        yield
        self.sections.append("</section>")

    def add_heading(self, text: str, level: int) -> None:
        self._add(f"{'#' * level} {text}", f"h{level}", html.escape(text, quote=False))

    def add_lines(self, lines: Sequence[Line]) -> None:
        for text, is_code, rows in blocks_of(lines):
            shown = html.escape(text, quote=False)
            if rows:
                self._add_table(rows)
            elif is_code:
                self._add(fenced(text), "pre", shown)
            else:
                # What would read as a heading, quotation or fence is no such thing in a PDF.
                is_syntax = _BLOCK_SYNTAX.match(text)
                self._add(f"\\{text}" if is_syntax else text, "p", shown)

    def _add_table(self, rows: Sequence[Sequence[str]]) -> None:
        nameless = () if names_columns(rows) else ([""] * len(rows[0]),)
        escaped = ([cell.replace("|", "\\|") for cell in row] for row in (*nameless, *rows))
        first, *others = [f"| {' | '.join(row)} |" for row in escaped]
        rule = "| --- " * len(rows[0]) + "|"
        cells = (
            "".join(f"<td>{html.escape(cell, quote=False)}</td>" for cell in row) for row in rows
        )
        shown = "".join(f"<tr>{row}</tr>" for row in cells)
        self._add("\n".join([first, rule, *others]), "table", shown)

    def _add(self, markdown: str, tag: str, shown: str) -> None:
        self.sections.append(f"<{tag}>{shown}</{tag}>")
        self.blocks.append(markdown)
        self.length += len(markdown) + 2


def read_pdf(body: bytes, url: str) -> Content:
    """Read a PDF; of a very long one the first 1,500 pages or 5 million characters.

    Headings are where the outline or else larger type has them, or one per page. The HTML has one
    section per page with the id `page=N`; anchors are where each page begins.

    UnusablePageError where it is encrypted, damaged, or holds pictures of pages only.
    """
    try:
        with closing(pdfium.PdfDocument(body)) as document:
            return _read(document, url)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium_c.FPDF_ERR_PASSWORD:
            hint = "Give a version without password."
            raise _unusable(url, "encrypted", "the file wants a password", hint) from error
        raise _unusable(url, "damaged", "the file is damaged or cut off", None) from error


def _unusable(url: str, kind: str, what: str, hint: str | None) -> UnusablePageError:
    said = f"The PDF {url} cannot be read: {what}."
    return UnusablePageError(said, url=url, status=200, hint=hint, kind=kind)


def _read(document: pdfium.PdfDocument, url: str) -> Content:
    count = min(len(document), _MAX_PAGES)
    pages = with_hyphens(without_running_lines(without_steps(list(_pages(document, count)))))
    bookmarks = list(_bookmarks(document)) or large_headings(pages)
    writer = _Writer()
    wanted: list[Heading] = []
    for number, lines in enumerate(pages, start=1):
        wanted += [mark for mark in bookmarks if mark.page == number - 1]
        is_named = bool(lines) and not bookmarks and len(pages) > 1
        kept = without_leaders(lines, has_outline=bool(bookmarks))
        with writer.page(number, f"Page {number}" if is_named else ""):
            _write_lines(writer, kept, wanted)
        if lines:  # else its headings stand on the next page
            wanted = []
    markdown = "\n\n".join(writer.blocks)
    letters = sum(char.isalnum() for lines in pages for line in lines for char in line.text)
    if letters < _LEAST_LETTERS_PER_PAGE * min(count, 4) or not letters:
        hint = "Look for a version with text, or run it through character recognition first."
        raise _unusable(url, "scanned", "it holds pictures of pages, not text", hint)
    # A place in the text is worth more than the same target from an annotation.
    links = {link.url: link for link in written_links(markdown, url)}
    for link in annotated_links(document, count, url):
        links.setdefault(link.url, link)
    info = document.get_metadata_dict(skip_empty=True)
    first: list[Line] = next(filter(None, pages), [])
    return Content(
        markdown=markdown,
        html=f"<article>{''.join(writer.sections)}</article>",
        anchors=tuple(writer.anchors),
        links=tuple(links.values()),
        meta=PageMetadata(
            base_url=url,
            url=page_address(url),
            title=_title(_said(info, "Title"), first, bookmarks, writer.blocks),
            description=_said(info, "Subject")[:1_000] or None,
            published_at=_date(info.get("CreationDate", "")),
            modified_at=_date(info.get("ModDate", "")),
        ),
    )


def _pages(document: pdfium.PdfDocument, count: int) -> Iterator[list[Line]]:
    total = 0
    for index in range(count):
        with closing(document[index]) as page:
            lines = page_lines(page)
        yield lines
        total += sum(len(line.text) for line in lines)
        if total > _MAX_CHARS:
            return


def _write_lines(writer: _Writer, lines: list[Line], wanted: list[Heading]) -> None:
    pending = list(wanted)
    begin = position = 0
    while position < len(lines):
        taken, mark = _heading_at(lines, position, pending)
        if mark is not None:
            writer.add_lines(lines[begin:position])
            pending.remove(mark)
            text = " ".join(line.text for line in lines[position : position + taken])
            writer.add_heading(text[:_MAX_HEADING_CHARS], mark.level)
            begin = position + taken
        position += taken or 1
    writer.add_lines(lines[begin:])


def _heading_at(
    lines: list[Line], position: int, pending: list[Heading]
) -> tuple[int, Heading | None]:
    """Count the lines from `position` that make up a bookmark's title, and give it."""
    first = folded(lines[position].text)
    for mark in pending if first else ():
        wanted = folded(mark.title)
        for count in (1, 2, 3):
            found = folded(" ".join(line.text for line in lines[position : position + count]))
            if wanted and found == wanted:
                return min(count, len(lines) - position), mark
        if _is_numbered(first, wanted) and all(folded(line.text) != wanted for line in lines):
            return 1, mark
    return 0, None


def _is_numbered(found: str, wanted: str) -> bool:
    """The page may number a heading whose bookmark does not, or the other way round."""
    longer, shorter = (found, wanted) if len(found) > len(wanted) else (wanted, found)
    lead = longer.removesuffix(shorter)
    return lead != longer and len(shorter) > 2 and bool(_HEADING_NUMBER.fullmatch(lead))


def _bookmarks(document: pdfium.PdfDocument) -> Iterator[Heading]:
    for mark in document.get_toc(max_depth=6):
        target = mark.get_dest()
        index = target.get_index() if target is not None else None
        title = one_line(mark.get_title())
        if index is not None and title:
            yield Heading(title[:_MAX_HEADING_CHARS], min(mark.level + 1, 6), index)


def _said(info: Mapping[str, str], name: str) -> str:
    text = one_line(info.get(name, ""))
    return "" if text in _UNSAID else text


def _title(
    named: str, first_page: list[Line], bookmarks: list[Heading], blocks: list[str]
) -> str | None:
    if named and not _FILE_TITLE.search(named):
        return named[:300]
    title = largest_lines(first_page)
    if sum(map(str.isalpha, title)) > 2:
        return title[:300]
    if bookmarks and bookmarks[0].page == 0:
        return bookmarks[0].title
    texts = (block for block in blocks if not block.startswith("## Page "))
    first = next((block.lstrip("# ") for block in texts if any(map(str.isalnum, block))), "")
    return first[:150].strip() or None


def _date(text: str) -> datetime | None:
    match = _PDF_DATE.match(text.strip())
    if match is None:
        return None
    year, month, day, *time = match.groups()
    date = f"{year}-{month or '01'}-{day or '01'}"
    return parse_date(f"{date}T{':'.join(time)}" if time[-1] else date)

"""The links of a PDF's pages, as its annotations give them; it reads no text for addresses."""

import ctypes
from collections.abc import Iterator

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from webrag.errors import InputError
from webrag.ingestion.characters import collapse, normalize_characters, strip_private_use
from webrag.ingestion.links import canonical_url
from webrag.ingestion.models import OutgoingLink

__all__ = ["annotated_links"]

_MAX_LINKS = 5_000
_MAX_ANCHOR_CHARS = 300


def annotated_links(
    document: pdfium.PdfDocument, pages: int, base_url: str
) -> Iterator[OutgoingLink]:
    """Yield the web addresses that parts of a PDF's first `pages` pages lead to, each once."""
    seen = {base_url}
    for index in range(pages):
        page = document[index]
        try:
            for address, box in _page_links(document, page):
                url = _target(address, base_url)
                if url is not None and url not in seen:
                    seen.add(url)
                    anchor = _text_in(page, box)
                    yield OutgoingLink(url=url, anchor_text=anchor, sentence=anchor)
        finally:
            page.close()
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


def _text_in(page: pdfium.PdfPage, box: pdfium_c.FS_RECTF) -> str:
    text_page = page.get_textpage()
    try:
        text = text_page.get_text_bounded(box.left, box.bottom, box.right, box.top)
    finally:
        text_page.close()
    return collapse(normalize_characters(strip_private_use(text)))[:_MAX_ANCHOR_CHARS]


def _target(address: str, base_url: str) -> str | None:
    try:
        return canonical_url(address, base_url) if address.strip() else None
    except InputError:
        return None

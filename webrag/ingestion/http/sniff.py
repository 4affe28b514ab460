"""Decides how an answer's bytes are to be read, and names what cannot be; it decodes nothing."""

import re
from typing import Literal, TypeAlias

__all__ = ["PageKind", "UnreadableContent", "page_kind"]

PageKind: TypeAlias = Literal["html", "markdown", "text", "pdf"]

_SNIFFED_BYTES = 512
_MAGIC = (
    (b"PK\x03\x04", "a ZIP archive or office document"),
    (b"\x7fELF", "a program (ELF)"),
    (b"MZ\x90", "a program (Windows)"),
    (b"\xcf\xfa\xed\xfe", "a program (Mach-O)"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"(\xb5/\xfd", "a Zstandard archive"),
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"wOFF", "a font"),
    (b"wOF2", "a font"),
    (b"OggS", "an Ogg recording"),
    (b"fLaC", "a FLAC recording"),
    (b"ID3", "an MP3 recording"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x00asm", "a WebAssembly module"),
    (b"{\\rtf", "an RTF document"),
    (b"\xd0\xcf\x11\xe0", "an old office document"),
)
_HTML_START = re.compile(
    # Atomic: where a comment may end in several places, the ways to read n of them are 2 ** n.
    rb"^(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*+>\s*+)?(?:(?><!--.*?-->)\s*+)*+"
    rb"<(?:!doctype\s+html|html|head|body|title|meta|script|style|h[1-6]|p|div|table|article|main)\b",
    re.IGNORECASE | re.DOTALL,
)
_MARKDOWN_TYPES = frozenset(
    {"text/markdown", "text/x-markdown", "text/vnd.daringfireball.markdown"}
)
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_UNKNOWN_TYPES = frozenset(
    {"", "application/octet-stream", "application/x-download", "unknown/unknown"}
)
_CODE_TYPES = frozenset({"text/css", "text/javascript", "text/xml", "text/event-stream"})
_MARKDOWN_PATHS = (".md", ".markdown", ".mdown", "/llms.txt", "/llms-full.txt")
# Readers accept a PDF's header after some stray bytes; text that mentions it has it mid-line.
_PDF = re.compile(rb"\A(?:\xef\xbb\xbf)?[\s\x00]*+%PDF-\d")
_PDF_SEARCHED_BYTES = 1_024
_BOMS = (b"\xff\xfe", b"\xfe\xff")


class UnreadableContent(ValueError):
    """The answer is none of HTML, Markdown, plain text and PDF; the message says what it is."""


def page_kind(content_type: str, body: bytes, path: str) -> PageKind:
    """Decide how a body is to be read, trusting its bytes over its label.

    Args:
        content_type: The Content-Type header, "" when there is none.
        body: Decompressed body; its beginning is looked at.
        path: The URL's path, for servers that send Markdown as plain text.

    Raises:
        UnreadableContent: Binary data or a format that is not prose.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    head = body[:_SNIFFED_BYTES]
    if _PDF.search(body[:_PDF_SEARCHED_BYTES]):
        return "pdf"
    _refuse_binary(head)
    if media_type in _HTML_TYPES:
        return "html"
    if media_type in _MARKDOWN_TYPES:
        return "markdown"
    if media_type in _UNKNOWN_TYPES:
        return "html" if _HTML_START.search(head) else _text_kind(path)
    if media_type.startswith("text/") and media_type not in _CODE_TYPES:
        return _text_kind(path)
    if _HTML_START.search(head) and not media_type.startswith(("image/", "audio/", "video/")):
        return "html"
    raise UnreadableContent(f"content of type '{media_type[:80]}'")


def _text_kind(path: str) -> PageKind:
    return "markdown" if path.lower().endswith(_MARKDOWN_PATHS) else "text"


def _refuse_binary(head: bytes) -> None:
    for magic, name in _MAGIC:
        if head.startswith(magic):
            raise UnreadableContent(name)
    if head[:4] == b"RIFF" or head[4:8] == b"ftyp":
        raise UnreadableContent("an image, sound or film")
    is_wide_text = head.startswith(_BOMS) or _is_wide(head)
    controls = sum(1 for byte in head if byte < 9 or 13 < byte < 27 or 27 < byte < 32)
    if not is_wide_text and controls > len(head) // 10:
        raise UnreadableContent("binary data")


def _is_wide(head: bytes) -> bool:
    """UTF-16 without a byte order mark: NUL in every other byte only."""
    even, odd = head[0::2].count(0), head[1::2].count(0)
    return max(even, odd) > len(head) // 5 and min(even, odd) <= len(head) // 40

"""An answer's bytes to text: what they are, and one charset decision per page."""

import codecs
import re
from typing import Final, Literal, TypeAlias

import webencodings

from webrag.ingestion.characters import storable

# What the standard names only to keep it from being decoded.
_UNDECODED: Final = frozenset({"replacement", "x-user-defined"})


def encoding_of(label: str | None) -> str | None:
    """Return the standard's name for a charset label of the web, None when browsers know none."""
    standard = webencodings.lookup(label or "")
    if standard is None or standard.name in _UNDECODED:
        return None
    # The standard decodes GBK by its superset.
    return "gb18030" if standard.name == "gbk" else str(standard.name)


_HEADER_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s\"';,]+)", re.IGNORECASE)
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]{1,100}/[\w!#$&^.+-]{1,100}")
_META_CHARSET = re.compile(
    rb"<meta[^>]{0,300}?charset\s*+=\s*+[\"']?\s*+([^\s\"'/>;]+)", re.IGNORECASE
)
_XML_ENCODING = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([^\"']+)", re.IGNORECASE)
_META_SEARCHED_BYTES = 1_024
_DETECTION_SAMPLE_BYTES = 65_536


def decode(body: bytes, *, header_charset: str | None = None, host: str = "") -> str:
    """Return the page's text: byte order mark, then header, then meta tag, then detection.

    It never fails: what cannot be decoded, NUL and lone surrogates become U+FFFD. The country of
    `host` tells of the page's language.
    """
    encoding = encoding_of(header_charset) or _declared(body) or _detected(body, host)
    return storable(webencodings.decode(body, encoding)[0])


def media_type_of(content_type: str) -> str:
    """Return the media type that a Content-Type header names, the last of several; "" for none."""
    written = content_type.lower().split(",")
    types = [each.partition(";")[0].strip() for each in written]
    return next((name for name in reversed(types) if _MEDIA_TYPE.fullmatch(name)), "")


def charset_of_header(content_type: str) -> str | None:
    """Return the charset parameter of a Content-Type header, None when it names none."""
    match = _HEADER_CHARSET.search(content_type)
    return match.group(1) if match else None


def _declared(body: bytes) -> str | None:
    head = body[:_META_SEARCHED_BYTES]
    match = _META_CHARSET.search(head) or _XML_ENCODING.search(head)
    name = encoding_of(match.group(1).decode("ascii", errors="ignore")) if match else None
    # The tag was read as ASCII, so the page cannot be UTF-16 whatever it says.
    return "utf-8" if name and name.startswith("utf-16") else name


def _detected(body: bytes, host: str) -> str:
    sample = body[:_DETECTION_SAMPLE_BYTES]
    wide = _wide_encoding(sample)
    if wide:
        return wide
    # The sample may end inside a character; only what comes before counts.
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(sample)
    except UnicodeDecodeError:
        from chardetng_py import EncodingDetector

        # What a browser takes a page for that does not say.
        detector = EncodingDetector()
        detector.feed(sample, last=True)
        name = host.rpartition(".")[2].lower()
        country = name.encode() if name.isascii() and name.isalpha() else None
        guess = detector.guess(tld=country, allow_utf8=False)
        return encoding_of(guess) or "windows-1252"
    return "utf-8"


def _wide_encoding(sample: bytes) -> str | None:
    """UTF-16 without a byte order mark shows as NUL in every other byte."""
    if len(sample) < 4:
        return None
    half = len(sample) // 2
    if sample[1::2].count(0) > half * 0.4 and sample[0::2].count(0) < half * 0.05:
        return "utf-16le"
    if sample[0::2].count(0) > half * 0.4 and sample[1::2].count(0) < half * 0.05:
        return "utf-16be"
    return None


PageKind: TypeAlias = Literal["html", "markdown", "text", "pdf", "office"]

_SNIFFED_BYTES = 512
_MAGIC = re.compile(
    rb"(?P<a_ZIP_archive_or_office_document>PK\x03\x04)|(?P<an_old_office_document>\xd0\xcf\x11\xe0)"
    rb"|(?P<an_ELF_program>\x7fELF)|(?P<a_Windows_program>MZ\x90)|(?P<a_program>\xcf\xfa\xed\xfe|\0asm)"
    rb"|(?P<a_gzip_archive>\x1f\x8b)|(?P<an_SQLite_database>SQLite format 3\0)|(?P<a_font>wOF[F2])"
    rb"|(?P<an_archive>BZh|\xfd7zXZ\0|7z\xbc\xaf\x27\x1c|Rar!\x1a\x07|\(\xb5/\xfd)"
    rb"|(?P<a_PNG_image>\x89PNG\r\n)|(?P<a_JPEG_image>\xff\xd8\xff)|(?P<a_GIF_image>GIF8[79]a)"
    rb"|(?P<a_recording>OggS|fLaC|ID3)|(?P<an_RTF_document>\{\\rtf)"
    rb"|(?P<an_image__sound_or_film>RIFF|....ftyp)",
    re.DOTALL,
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
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
"""Media types of pages that are read as HTML."""
_UNKNOWN_TYPES = frozenset(
    {"", "application/octet-stream", "application/x-download", "unknown/unknown"}
)
_CODE_TYPES = frozenset({"text/css", "text/javascript", "text/xml", "text/event-stream"})
_MARKDOWN_PATHS = (".md", ".markdown", ".mdown", "/llms.txt", "/llms-full.txt")
# Readers accept a PDF's header after some stray bytes; text that mentions it has it mid-line.
_PDF = re.compile(rb"\A(?:\xef\xbb\xbf)?[\s\x00]*+%PDF-\d")
_PDF_SEARCHED_BYTES = 1_024
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


# A ZIP archive that says what it is in its first file, as OpenDocument has it.
_OPEN_DOCUMENT = re.compile(
    rb"(?s:PK\x03\x04.{26})mimetypeapplication/vnd\.oasis\.opendocument\."
    rb"(?:text|spreadsheet|presentation)"
)


class UnreadableContent(ValueError):
    """The answer is of no kind that is read; the message says what it is."""


def page_kind(content_type: str, body: bytes, path: str) -> PageKind:
    """Decide how a body is to be read, trusting its bytes over its label.

    The URL's `path` is for servers that send Markdown as plain text. What is no prose raises
    UnreadableContent.
    """
    media_type = media_type_of(content_type)
    head = body[:_SNIFFED_BYTES]
    if _PDF.search(body[:_PDF_SEARCHED_BYTES]):
        return "pdf"
    if _OPEN_DOCUMENT.match(head):
        return "office"
    _refuse_binary(head)
    if media_type in HTML_TYPES:
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
    if (magic := _MAGIC.match(head)) and magic.lastgroup:
        raise UnreadableContent(magic.lastgroup.replace("__", ", ").replace("_", " "))
    is_wide_text = head.startswith(_BYTE_ORDER_MARKS) or _wide_encoding(head) is not None
    controls = sum(1 for byte in head if byte < 9 or 13 < byte < 27 or 27 < byte < 32)
    if not is_wide_text and controls > len(head) // 10:
        raise UnreadableContent("binary data")

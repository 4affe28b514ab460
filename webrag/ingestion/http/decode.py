"""An answer's bytes to text: what they are, and one charset decision per page."""

import codecs
import re
from typing import Final, Literal, TypeAlias

from webrag.ingestion.characters import storable

_LABELS: Final = {
    "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8",
    "cp866": "866 cp866 csibm866 ibm866",
    "iso8859-2": "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987"
    " l2 latin2",
    "iso8859-3": "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988"
    " l3 latin3",
    "iso8859-4": "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988"
    " l4 latin4",
    "iso8859-5": "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5"
    " iso_8859-5:1988",
    "iso8859-6": "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6"
    " iso-8859-6-e iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987",
    "iso8859-7": "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7"
    " iso88597 iso_8859-7 iso_8859-7:1987 sun_eu_greek",
    "iso8859-8": "csiso88598e csiso88598i csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e"
    " iso-8859-8-i iso-ir-138 iso8859-8 iso88598 iso_8859-8 iso_8859-8:1988 logical visual",
    "iso8859-10": "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "iso8859-13": "iso-8859-13 iso8859-13 iso885913",
    "iso8859-14": "iso-8859-14 iso8859-14 iso885914",
    "iso8859-15": "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9",
    "iso8859-16": "iso-8859-16",
    "koi8-r": "cskoi8r koi koi8 koi8-r koi8_r",
    "koi8-u": "koi8-ru koi8-u",
    "mac_roman": "csmacintosh mac macintosh x-mac-roman",
    "cp874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874",
    "cp1250": "cp1250 windows-1250 x-cp1250",
    "cp1251": "cp1251 windows-1251 x-cp1251",
    "cp1252": "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1"
    " iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252",
    "cp1253": "cp1253 windows-1253 x-cp1253",
    "cp1254": "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9"
    " iso_8859-9:1989 l5 latin5 windows-1254 x-cp1254",
    "cp1255": "cp1255 windows-1255 x-cp1255",
    "cp1256": "cp1256 windows-1256 x-cp1256",
    "cp1257": "cp1257 windows-1257 x-cp1257",
    "cp1258": "cp1258 windows-1258 x-cp1258",
    "mac_cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "gb18030": "chinese csgb2312 csiso58gb231280 gb18030 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58"
    " x-gbk",
    "big5hkscs": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc_jp": "cseucpkdfmtjapanese euc-jp x-euc-jp",
    "iso2022_jp": "csiso2022jp iso-2022-jp",
    "cp932": "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis",
    "cp949": "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601"
    " ksc_5601 windows-949",
    "utf-16-be": "unicodefffe utf-16be",
    "utf-16-le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
}

# Spellings that are in use without being in the standard.
_MORE_LABELS: Final = {"latin-1": "cp1252", "euckr": "cp949", "cp367": "cp1252"}

_CODECS: Final = _MORE_LABELS | {
    label: codec for codec, labels in _LABELS.items() for label in labels.split()
}

# Not text, or readings that browsers refuse because they hide markup from filters: the EBCDIC
# family, escape sequences that switch the alphabet, UTF-7 and UTF-32.
_REFUSED: Final = frozenset(
    """cp037 cp1026 cp1140 cp273 cp424 cp500 cp875 hz idna iso2022_jp_1 iso2022_jp_2
    iso2022_jp_2004 iso2022_jp_3 iso2022_jp_ext iso2022_kr punycode raw_unicode_escape
    unicode_escape utf_32 utf_32_be utf_32_le utf_7""".split()  # noqa: SIM905
)


def python_codec(label: str | None) -> str | None:
    """Return the Python codec for a charset label, None when it is unknown or refused.

    Args:
        label: As sent or written, or a codec's own name.
    """
    name = (label or "").strip().lower()
    if not name:
        return None
    if name in _CODECS:
        return _CODECS[name]
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    # `lookup` also knows hex, zip and the like, which do not decode to text.
    is_text = getattr(codec, "_is_text_encoding", True)
    is_refused = codec.name.replace("-", "_") in _REFUSED
    return codec.name if is_text and not is_refused else None


_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_HEADER_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s\"';,]+)", re.IGNORECASE)

_META_CHARSET = re.compile(
    rb"<meta[^>]{0,300}?charset\s*+=\s*+[\"']?\s*+([^\s\"'/>;]+)", re.IGNORECASE
)

_XML_ENCODING = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([^\"']+)", re.IGNORECASE)

_META_SEARCHED_BYTES = 1_024

_DETECTION_SAMPLE_BYTES = 65_536


def decode(body: bytes, *, header_charset: str | None = None) -> str:
    """Return the page's text: byte order mark, then header, then meta tag, then detection.

    Never fails: what cannot be decoded, NUL and lone surrogates become U+FFFD.

    Args:
        body: Decompressed bytes.
        header_charset: From the Content-Type header, as sent.
    """
    for bom, codec in _BOMS:
        if body.startswith(bom):
            return storable(body[len(bom) :].decode(codec, errors="replace"))
    codec_name = python_codec(header_charset) or _declared(body) or _detected(body)
    return storable(body.decode(codec_name, errors="replace"))


def charset_of_header(content_type: str) -> str | None:
    """Return the charset parameter of a Content-Type header, None when it names none."""
    match = _HEADER_CHARSET.search(content_type)
    return match.group(1) if match else None


def _declared(body: bytes) -> str | None:
    head = body[:_META_SEARCHED_BYTES]
    match = _META_CHARSET.search(head) or _XML_ENCODING.search(head)
    codec = python_codec(match.group(1).decode("ascii", errors="ignore")) if match else None
    # The tag was read as ASCII, so the page cannot be UTF-16 whatever it says.
    return "utf-8" if codec and codec.startswith("utf-16") else codec


def _detected(body: bytes) -> str:
    sample = body[:_DETECTION_SAMPLE_BYTES]
    wide = _wide_codec(sample)
    if wide:
        return wide
    # The sample may end inside a character; only what comes before counts.
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(sample)
    except UnicodeDecodeError:
        from charset_normalizer import from_bytes

        best = from_bytes(sample).best()
        return (python_codec(best.encoding) if best else None) or "cp1252"
    return "utf-8"


def _wide_codec(sample: bytes) -> str | None:
    """UTF-16 without a byte order mark shows as NUL in every other byte."""
    if len(sample) < 4:
        return None
    half = len(sample) // 2
    if sample[1::2].count(0) > half * 0.4 and sample[0::2].count(0) < half * 0.05:
        return "utf-16-le"
    if sample[0::2].count(0) > half * 0.4 and sample[1::2].count(0) < half * 0.05:
        return "utf-16-be"
    return None


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

_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


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
    is_wide_text = head.startswith(_BYTE_ORDER_MARKS) or _is_wide(head)
    controls = sum(1 for byte in head if byte < 9 or 13 < byte < 27 or 27 < byte < 32)
    if not is_wide_text and controls > len(head) // 10:
        raise UnreadableContent("binary data")


def _is_wide(head: bytes) -> bool:
    """UTF-16 without a byte order mark: NUL in every other byte only."""
    even, odd = head[0::2].count(0), head[1::2].count(0)
    return max(even, odd) > len(head) // 5 and min(even, odd) <= len(head) // 40

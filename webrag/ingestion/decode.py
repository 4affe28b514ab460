"""Bytes to text, one charset decision per page; it does not look at what the text says."""

import codecs
import re

from charset_normalizer import from_bytes

__all__ = ["charset_of_header", "decode", "python_codec", "readable"]

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HEADER_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s\"';,]+)", re.IGNORECASE)
_META_CHARSET = re.compile(
    rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([^\s\"'/>;]+)", re.IGNORECASE
)
_XML_ENCODING = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([^\"']+)", re.IGNORECASE)
_META_SEARCHED_BYTES = 1_024
_DETECTION_SAMPLE_BYTES = 65_536
_NUL_OR_SURROGATE = re.compile(r"[\x00\ud800-\udfff]")

# The WHATWG encoding standard reads these labels as supersets; Python takes them literally.
_WHATWG = {
    "cp1252": "ansi_x3.4-1968 ascii us-ascii iso-8859-1 iso8859-1 iso88591 iso_8859-1 latin1 l1"
    " latin-1 cp819 ibm819 windows-1252 x-cp1252 cp1252",
    "gb18030": "gb2312 gb_2312 gb_2312-80 gbk x-gbk chinese csgb2312 iso-ir-58 gb18030",
    "cp932": "shift_jis shift-jis sjis x-sjis ms_kanji ms932 windows-31j csshiftjis",
    "cp949": "euc-kr euckr ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 korean windows-949",
    "big5hkscs": "big5 big5-hkscs cn-big5 x-x-big5 csbig5",
    "cp1254": "iso-8859-9 iso8859-9 iso88599 latin5 l5 windows-1254 x-cp1254",
    "cp874": "iso-8859-11 iso8859-11 tis-620 dos-874 windows-874",
    "iso8859-8": "iso-8859-8-i iso-8859-8-e logical visual hebrew",
    "utf-16-le": "utf-16 utf-16le ucs-2 unicode iso-10646-ucs-2 csunicode unicodefeff",
    "utf-16-be": "utf-16be unicodefffe",
    "utf-8": "utf8 utf-8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8",
    "mac_roman": "macintosh mac csmacintosh x-mac-roman",
    "mac_cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "koi8-u": "koi8-ru koi8-u",
    "cp866": "866 cp866 csibm866 ibm866",
}
_CODEC_BY_LABEL = {label: codec for codec, labels in _WHATWG.items() for label in labels.split()}
# Not text encodings, or ones browsers refuse because they hide markup from filters.
_REFUSED_CODECS = frozenset({"utf_7", "punycode", "idna", "unicode_escape", "raw_unicode_escape"})


def decode(body: bytes, *, header_charset: str | None = None) -> str:
    """Return the page's text: byte order mark, then header, then meta tag, then detection.

    Never fails: what cannot be decoded, NUL and lone surrogates become U+FFFD.

    Args:
        body: Decompressed bytes.
        header_charset: From the Content-Type header, as sent.
    """
    for bom, codec in _BOMS:
        if body.startswith(bom):
            return readable(body[len(bom) :].decode(codec, errors="replace"))
    codec_name = python_codec(header_charset) or _declared(body) or _detected(body)
    return readable(body.decode(codec_name, errors="replace"))


def readable(text: str) -> str:
    """Replace NUL and lone surrogates, which neither parsers nor Postgres take, by U+FFFD."""
    return _NUL_OR_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def charset_of_header(content_type: str) -> str | None:
    """Return the charset parameter of a Content-Type header, None when it names none."""
    match = _HEADER_CHARSET.search(content_type)
    return match.group(1) if match else None


def python_codec(label: str | None) -> str | None:
    """Return the Python codec for a charset label, None when it is unknown or refused."""
    name = (label or "").strip().lower()
    if not name:
        return None
    if name in _CODEC_BY_LABEL:
        return _CODEC_BY_LABEL[name]
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    # `lookup` also knows hex, zip and the like, which do not decode to text.
    is_text = getattr(codec, "_is_text_encoding", True)
    is_refused = codec.name.replace("-", "_") in _REFUSED_CODECS
    return codec.name if is_text and not is_refused else None


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

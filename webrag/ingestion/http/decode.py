"""Bytes to text, one charset decision per page; it does not look at what the text says."""

import codecs
import re

from charset_normalizer import from_bytes

from webrag.ingestion.http.charset_labels import python_codec

__all__ = ["charset_of_header", "decode", "readable"]

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
_NUL_OR_SURROGATE = re.compile(r"[\x00\ud800-\udfff]")


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

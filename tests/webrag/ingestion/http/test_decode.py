import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webrag.ingestion.http.decode import charset_of_header, decode

TEXT = "Żółć — naïve “quotes”"


@pytest.mark.parametrize(
    ("body", "header", "text"),
    [
        (codecs.BOM_UTF8 + "é".encode(), "iso-8859-1", "é"),
        (codecs.BOM_UTF16_LE + "é".encode("utf-16-le"), "utf-8", "é"),
        (codecs.BOM_UTF16_BE + "é".encode("utf-16-be"), None, "é"),
        (b'<meta charset="utf-8">\xe9', "windows-1252", '<meta charset="utf-8">é'),
        ('<meta charset="koi8-r">Да'.encode("koi8-r"), None, '<meta charset="koi8-r">Да'),
        (
            "<meta http-equiv=x content='text/html; charset=Shift_JIS'>日本".encode("cp932"),
            None,
            "<meta http-equiv=x content='text/html; charset=Shift_JIS'>日本",
        ),
        (
            '<?xml version="1.0" encoding="iso-8859-2"?>Ł'.encode("iso-8859-2"),
            None,
            '<?xml version="1.0" encoding="iso-8859-2"?>Ł',
        ),
        (TEXT.encode(), None, TEXT),
        (TEXT.encode(), "no-such-charset", TEXT),
        (("<p>" + TEXT).encode("utf-16-le"), None, "<p>" + TEXT),
        (b"\x93smart\x94 \x80", "iso-8859-1", "“smart” €"),
        ("㏒".encode("gb18030"), "gb2312", "㏒"),
        (b'<meta charset="utf-16">a\xc3\xa9', None, '<meta charset="utf-16">aé'),
    ],
)
def test_one_charset_decision(body: bytes, header: str | None, text: str) -> None:
    assert decode(body, header_charset=header) == text


def test_undeclared_single_byte_text_is_detected() -> None:
    text = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 5

    assert decode(text.encode("cp1251")) == text


def test_nul_becomes_a_replacement_character() -> None:
    assert decode(b"a\x00b", header_charset="utf-8") == "a\ufffdb"


def test_broken_bytes_become_replacement_characters() -> None:
    assert decode(b"a\xff\xfeb\xe2\x28", header_charset="utf-8") == "a\ufffd\ufffdb\ufffd("


@pytest.mark.parametrize(
    ("header", "charset"),
    [
        ("text/html; charset=UTF-8", "UTF-8"),
        ("text/html;charset='latin1'", "latin1"),
        ("text/html", None),
        ("", None),
    ],
)
def test_charset_is_read_from_the_content_type(header: str, charset: str | None) -> None:
    assert charset_of_header(header) == charset


@settings(deadline=None)  # detection loads its tables at its first use
@given(st.binary(max_size=300), st.sampled_from([None, "utf-8", "utf-16", "gbk", "x", "euc-jp"]))
def test_any_bytes_become_storable_text(body: bytes, header: str | None) -> None:
    text = decode(body, header_charset=header)

    assert "\x00" not in text
    text.encode()

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webrag.ingestion.http.decode import charset_of_header, decode, media_type_of

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


UNDECLARED = {
    "windows-1252": "Café “naïve” – 5 € a piece",
    "windows-1250": "Zażółć gęślą jaźń, to jest strona o psach i kotach w Łodzi",
    "iso8859-2": "Zażółć gęślą jaźń, to jest strona o psach i kotach w Łodzi",
    "koi8-r": "Привет, мир, это простая страница о собаках и кошках",
    "windows-1253": "Αυτή είναι μια σελίδα για σκύλους και γάτες",
    "windows-1254": "Bu sayfa köpekler ve kediler hakkındadır, İstanbul",
    "windows-1255": "זהו דף על כלבים וחתולים",
    "shift_jis": "これは日本語のページです。犬と猫について。",
    "euc-jp": "これは日本語のページです。犬と猫について。",
    "euc-kr": "이것은 개와 고양이에 관한 페이지입니다.",
    "gb18030": "这是一个关于狗和猫的中文网页。",
    "big5": "這是一個關於狗和貓的中文網頁。",
}


@pytest.mark.parametrize("around", ["{}", "<p>{}</p>" + "<p>plain words here and there</p>" * 30])
@pytest.mark.parametrize(("charset", "text"), UNDECLARED.items())
def test_page_that_names_no_charset_is_read_as_browsers_do(
    charset: str, text: str, around: str
) -> None:
    page = around.format(text)
    assert decode(page.encode(charset)) == page


def test_country_of_the_host_tells_what_a_few_bytes_mean() -> None:
    assert decode("It costs £5".encode("windows-1252"), host="shop.example.uk") == "It costs £5"


TYPES = {
    "text/html; charset=utf-8": "text/html",
    "text/html, text/html; charset=utf-8": "text/html",
    "text/plain, text/html": "text/html",
    "text/html, junk": "text/html",
    "TEXT/HTML ;x=y": "text/html",
    "": "",
    "junk": "",
}


@pytest.mark.parametrize(("header", "media_type"), TYPES.items())
def test_last_media_type_of_a_header_counts(header: str, media_type: str) -> None:
    assert media_type_of(header) == media_type


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

"""Forty files that say one thing about their charset and are another."""

import pytest

from webrag.ingestion.http.decode import charset_of_header, decode

GERMAN = "Grüße aus Köln: 5 € für Müßiggang"
RUSSIAN = "Съешь ещё этих мягких французских булок, да выпей чаю. " * 3
JAPANESE = "日本語の文章です。検索できるようにします。テスト。" * 4
CHINESE = "这是一个测试页面，用来检查编码。" * 5
KOREAN = "이것은 시험 페이지입니다. 검색할 수 있어야 합니다. " * 4
GREEK = "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. " * 4
HEBREW = "דג סקרן שט בים מאוכזב ולפתע מצא חברה. " * 4
BAD = "\N{REPLACEMENT CHARACTER}"


def meta(charset: str) -> str:
    return f'<meta charset="{charset}">'


def old_meta(charset: str) -> str:
    return f'<meta http-equiv="Content-Type" content="text/html; charset={charset}">'


# Name, bytes, Content-Type header, what must be in the text.
TABLE = [
    ("plain utf-8", GERMAN.encode(), "text/html", GERMAN),
    ("header utf-8", GERMAN.encode(), "text/html; charset=UTF-8", GERMAN),
    ("header quoted", GERMAN.encode(), 'text/html; charset="utf-8"', GERMAN),
    ("header single quotes", GERMAN.encode(), "text/html;charset='utf8'", GERMAN),
    ("bom beats header", b"\xef\xbb\xbf" + GERMAN.encode(), "text/html; charset=latin1", GERMAN),
    (
        "bom beats meta",
        b"\xef\xbb\xbf" + (meta("windows-1252") + GERMAN).encode(),
        "text/html",
        GERMAN,
    ),
    ("utf-16 le bom", b"\xff\xfe" + GERMAN.encode("utf-16-le"), "text/html", GERMAN),
    ("utf-16 be bom", b"\xfe\xff" + GERMAN.encode("utf-16-be"), "text/html", GERMAN),
    (
        "utf-16 bom beats utf-8 header",
        b"\xff\xfe" + GERMAN.encode("utf-16-le"),
        "text/html; charset=utf-8",
        GERMAN,
    ),
    ("utf-16 le without bom", ("<p>" + GERMAN).encode("utf-16-le"), "text/html", GERMAN),
    ("utf-16 be without bom", ("<p>" + GERMAN).encode("utf-16-be"), "text/html", GERMAN),
    ("utf-16 header", GERMAN.encode("utf-16-le"), "text/html; charset=utf-16", GERMAN),
    ("utf-16be header", GERMAN.encode("utf-16-be"), "text/html; charset=utf-16be", GERMAN),
    ("meta utf-16 is a lie", (meta("utf-16") + GERMAN).encode(), "text/html", GERMAN),
    ("latin-1 means windows-1252", "5 €".encode("cp1252"), "text/html; charset=ISO-8859-1", "5 €"),
    ("ascii means windows-1252", "“x”".encode("cp1252"), "text/html; charset=us-ascii", "“x”"),
    ("meta windows-1252", (meta("windows-1252") + GERMAN).encode("cp1252"), "text/html", GERMAN),
    ("old meta", (old_meta("iso-8859-15") + GERMAN).encode("iso-8859-15"), "text/html", GERMAN),
    (
        "meta after a comment",
        ("<!-- " + "x" * 500 + " -->" + meta("cp1252") + GERMAN).encode("cp1252"),
        "text/html",
        GERMAN,
    ),
    (
        "header beats meta",
        (meta("utf-8") + GERMAN).encode("cp1252"),
        "text/html; charset=windows-1252",
        GERMAN,
    ),
    (
        "unknown header falls to meta",
        (meta("windows-1251") + RUSSIAN).encode("cp1251"),
        "text/html; charset=martian",
        RUSSIAN,
    ),
    ("empty header charset", GERMAN.encode(), "text/html; charset=", GERMAN),
    (
        "xml declaration",
        b"<?xml version='1.0' encoding='koi8-r'?>" + RUSSIAN.encode("koi8-r"),
        "application/xhtml+xml",
        RUSSIAN,
    ),
    ("koi8-r meta", (meta("koi8-r") + RUSSIAN).encode("koi8-r"), "text/html", RUSSIAN),
    ("windows-1251 undeclared", RUSSIAN.encode("cp1251"), "text/html", RUSSIAN),
    ("shift_jis meta", (meta("Shift_JIS") + JAPANESE).encode("cp932"), "text/html", JAPANESE),
    (
        "shift_jis with windows letters",
        "①髙".encode("cp932"),
        "text/html; charset=shift_jis",
        "①髙",
    ),
    ("euc-jp header", JAPANESE.encode("euc-jp"), "text/html; charset=euc-jp", JAPANESE),
    ("iso-2022-jp", JAPANESE.encode("iso2022_jp"), "text/html; charset=iso-2022-jp", JAPANESE),
    ("gb2312 means gb18030", "镕朱".encode("gb18030"), "text/html; charset=gb2312", "镕朱"),
    ("gbk meta", (meta("gbk") + CHINESE).encode("gbk"), "text/html", CHINESE),
    ("big5 header", "測試頁面".encode("big5"), "text/html; charset=big5", "測試頁面"),
    (
        "euc-kr means windows-949",
        "똠방각하".encode("cp949"),
        "text/html; charset=euc-kr",
        "똠방각하",
    ),
    ("korean meta", (meta("ks_c_5601-1987") + KOREAN).encode("cp949"), "text/html", KOREAN),
    ("greek", (meta("iso-8859-7") + GREEK).encode("iso-8859-7"), "text/html", GREEK),
    ("logical hebrew", (meta("iso-8859-8-i") + HEBREW).encode("iso-8859-8"), "text/html", HEBREW),
    ("turkish", "ığüşİ".encode("cp1254"), "text/html; charset=iso-8859-9", "ığüşİ"),
    ("thai", "ภาษาไทย".encode("cp874"), "text/html; charset=tis-620", "ภาษาไทย"),
    ("utf-7 is refused", b"+ADw-script+AD4-", "text/html; charset=utf-7", "+ADw-script+AD4-"),
    ("codec that is no charset", GERMAN.encode(), "text/html; charset=hex", GERMAN),
    ("invalid bytes", b"ok \xff\xfe\xfa ok", "text/html; charset=utf-8", f"ok {BAD}{BAD}{BAD} ok"),
    ("cut-off character", "Köln".encode()[:2], "text/html; charset=utf-8", f"K{BAD}"),
    ("nul bytes", b"a\x00b", "text/html; charset=utf-8", f"a{BAD}b"),
    ("surrogates in utf-8", b"a\xed\xa0\x80b", "text/html; charset=utf-8", f"a{BAD * 3}b"),
    ("lone surrogate in utf-16", b"\xff\xfea\x00\x00\xd8b\x00", "text/html", f"a{BAD}"),
    ("mac roman", "Größe".encode("mac_roman"), "text/html; charset=macintosh", "Größe"),
    (
        "x-user-defined is none of ours",
        GERMAN.encode(),
        "text/html; charset=x-user-defined",
        GERMAN,
    ),
]


@pytest.mark.parametrize(
    ("body", "header", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_text_is_what_its_author_wrote(body: bytes, header: str, expected: str) -> None:
    text = decode(body, header_charset=charset_of_header(header))

    assert expected in text
    assert "\x00" not in text
    text.encode()


def test_table_is_large_enough() -> None:
    assert len(TABLE) >= 40

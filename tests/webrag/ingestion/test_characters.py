import re
import unicodedata
from collections.abc import Callable

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from webrag.ingestion.characters import (
    DEFAULT_IGNORABLE,
    normalize_characters,
    storable,
    storable_values,
    strip_private_use,
)
from webrag.ingestion.models import NormalizedDocument

Convert = Callable[..., NormalizedDocument]


def test_line_breaks_and_spaces_become_plain() -> None:
    assert normalize_characters("a\r\nb\rc\u2028d\u00a0e\u2003f\tg") == "a\nb\nc\nd e f\tg"


@given(st.text())
def test_result_is_stable_and_holds_nothing_invisible(text: str) -> None:
    once = normalize_characters(text)

    assert normalize_characters(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert not {char for char in once if unicodedata.category(char) == "Cc"} - {"\n", "\t"}


MEANT = {
    "Persian half-space": "می\u200cخواهم کتاب\u200cها",
    "Sinhala conjunct": "ශ්\u200dරී",
    "Devanagari without its conjunct": "क्\u200cष क्\u200dष",
    "Mongolian joiner": "ᠮᠣᠩ\u200dᠭᠣᠯ",
    "family": "👨\u200d👩\u200d👧",
    "flag of two signs": "🏳\ufe0f\u200d🌈",
    "skin tone": "👩🏽\u200d🚀",
    "red heart": "❤\ufe0f",
    "text form of a sign": "☎\ufe0e",
    "keycap": "1\ufe0f⃣ #\ufe0f⃣",
}


@pytest.mark.parametrize("text", MEANT.values(), ids=MEANT)
def test_joiners_and_selectors_that_a_reader_sees_the_work_of_stay(text: str) -> None:
    assert normalize_characters(text) == text


SMUGGLED = [
    "a\u200cb",
    "a\u200d b",
    "1\ufe0f",
    "می\u200c",
    "❤\ufe0f\ufe0f",
    "a\ufe0f\u200d❤",
    "👨\u200d",
]
SMUGGLED += ["می\u200c\u200cخ", "می\u200b\u200cخ", "👨\u200d\u200d👧", "🏴\U000e0067\U000e007f"]


@pytest.mark.parametrize("text", SMUGGLED)
def test_joiners_and_selectors_that_do_nothing_go(text: str) -> None:
    shown = [char for char in text if char not in "\u200b\u200c\u200d\ufe0f\U000e0067\U000e007f"]
    kept = "❤\ufe0f" if text.startswith("❤") else "".join(shown)
    assert normalize_characters(text) == kept


JOINERS = st.text(
    st.sampled_from("a1# \u200b\u200c\u200d\ufe0e\ufe0f\u20e3\u0338\u2126❤👨میශ්\u115f\u0653ا")
)


@given(JOINERS)
@example("\u0627\u115f\u0338\u0653\u200c\u0627")
def test_what_is_left_of_joiners_is_stable(text: str) -> None:
    once = normalize_characters(text)

    assert normalize_characters(once) == once


def test_private_use_characters_are_removed_in_every_spelling() -> None:
    assert strip_private_use("a\ue000b&#xE000;c&#57344;d&#xF0000;e&#65;") == "abcde&#65;"


def test_what_no_table_takes_is_replaced() -> None:
    assert storable("a\x00b\ud83dc😀") == "a\ufffdb\ufffdc😀"


def test_what_no_table_takes_is_replaced_in_everything_that_a_value_holds() -> None:
    given = {"k\0": [1, None, ("x\udfff", {"\ud800": True})], "n": 2.5}

    assert storable_values(given) == {
        "k\ufffd": [1, None, ("x\ufffd", {"\ufffd": True})],
        "n": 2.5,
    }


def test_set_of_what_is_drawn_as_nothing_is_that_of_unicode() -> None:
    ours = re.compile(f"[{DEFAULT_IGNORABLE}]")
    theirs = regex.compile(r"\p{Default_Ignorable_Code_Point}")
    everything = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    assert [each for each in everything if ours.match(each)] == [
        each for each in everything if theirs.match(each)
    ]


IGNORABLE = [0xAD, 0x34F, 0x61C, 0x115F, 0x17B4, 0x180E, 0x200B, 0x202E, 0x2064, 0x3164, 0xFE0F]
IGNORABLE += [0xFEFF, 0xFFA0, 0xFFF0, 0x1BCA0, 0x1BCA3, 0x1D173, 0xE0001, 0xE0041, 0xE0100, 0xE0FFF]


@pytest.mark.parametrize("form", ["{}", "&#{};", "&#x{:x};", "&#x0000{:X};", "&#000{}"])
def test_nothing_that_is_drawn_as_nothing_is_stored(convert: Convert, form: str) -> None:
    written = [chr(code) if form == "{}" else form.format(code) for code in IGNORABLE]
    paragraphs = "".join(f"<p>some{each}&shy;&zwj; words</p>" for each in written)
    assert convert(paragraphs).markdown == "\n\n".join(["some words"] * len(written))


REFERENCES = [
    "&#x00000E000;",
    "&#x00000E000",
    "&#X0000000000000000000000F8FF;",
    "&#0000000057344;",
    "&#057344 ",
    "&#xe000g",
    "&#57344a",
    "&#x000f0000;",
    "&#x10FFFF;",
    "&#001048576;",
    "\ue010",
    "\U00100000",
    "&#x\ue000E000;",
    "&\uf000#xE000;",
    "&#x&#xE000;E000;",
    "&#&#&#xE000;xE000;xE000;",
    "&#x&#x&#x&#xE000;E000;E000;E000;",
    "&#5&#xE000;7344;",
    "&#xE0&#57344;00;",
]


@pytest.mark.parametrize("written", REFERENCES)
def test_no_spelling_of_a_private_use_character_reaches_the_tree(written: str) -> None:
    tree = LexborHTMLParser(strip_private_use(f"<p title='{written}'>a{written}b</p>"))
    found = tree.css_first("p")
    text = found.text() + found.attributes["title"]
    assert not re.search("[\ue000-\uf8ff\U000f0000-\U0010ffff]", text)


@pytest.mark.parametrize("written", REFERENCES)
def test_private_use_character_does_not_move_a_link(convert: Convert, written: str) -> None:
    page = f"<p>Before {written} <a href='/t'>linked {written}</a> after.</p>"
    document = convert(page)
    [link] = document.links
    assert document.markdown[link.char_start : link.char_end].startswith("linked")


@pytest.mark.parametrize("written", ["&#" + "0" * 100_000 + "65;", "&#" + "9" * 100_000 + ";"])
def test_endless_reference_is_read_in_linear_time(written: str) -> None:
    assert strip_private_use(written * 20) == written * 20

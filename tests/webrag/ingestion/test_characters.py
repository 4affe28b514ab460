import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from webrag.ingestion.characters import normalize_characters, storable, strip_private_use


def test_line_breaks_and_spaces_become_plain() -> None:
    assert normalize_characters("a\r\nb\rc\u2028d\u00a0e\u2003f\tg") == "a\nb\nc\nd e f\tg"


@given(st.text())
def test_result_is_stable_and_holds_nothing_invisible(text: str) -> None:
    once = normalize_characters(text)

    assert normalize_characters(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert not {char for char in once if unicodedata.category(char) == "Cc"} - {"\n", "\t"}


def test_private_use_characters_are_removed_in_every_spelling() -> None:
    assert strip_private_use("a\ue000b&#xE000;c&#57344;d&#xF0000;e&#65;") == "abcde&#65;"


def test_what_no_table_takes_is_removed() -> None:
    assert storable("a\x00b\ud83dc😀") == "ab?c😀"

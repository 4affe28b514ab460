import random

from webrag.crawling.traps import KnownTexts, text_signature

WORDS = ["node", "replica", "snapshot", "volume", "primary", "log", "entry", "lag", "retry"]


def text(seed: int, words: int = 300) -> str:
    chosen = random.Random(seed)
    return " ".join(f"{chosen.choice(WORDS)}{chr(97 + chosen.randrange(26))}" for _ in range(words))


def test_texts_that_differ_in_numbers_only_have_one_signature() -> None:
    page = text(1)

    assert text_signature(f"{page} 11 2026") == text_signature(f"{page} 12 1999")


def test_different_texts_are_told_apart() -> None:
    known = KnownTexts()

    assert not any(known.add(text_signature(text(seed)) or 0) for seed in range(300))


def test_text_with_one_word_changed_is_known() -> None:
    known, page = KnownTexts(), text(7, words=2_000)
    known.add(text_signature(page) or 0)

    assert known.add(text_signature(page.replace(page.split()[900], "other", 1)) or 0)


def test_short_text_has_no_signature() -> None:
    assert text_signature("See also: the index.") is None


def test_memory_of_texts_is_bounded() -> None:
    known = KnownTexts()
    for number in range(20_000):
        known.add(number * 0x9E3779B97F4A7C15 % 2**64)

    assert len(known._bands) <= 16_000

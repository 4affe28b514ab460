import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.ingestion.characters import SentenceRule, sentence_ends, sentences

RULES: tuple[SentenceRule, ...] = ("prose", "line", "typed", "statement")
texts = st.text(alphabet="aB1 .!?:;\n\"')*\u3002", max_size=40)


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        ("prose", 'Use it. "Or" not, e.g. Monday.', ["Use it.", '"Or" not, e.g. Monday.']),
        ("prose", "Set **it.** Then go. 3 times", ["Set **it.**", "Then go. 3 times"]),
        ("prose", "\u7b2c\u4e00\u3002\u7b2c\u4e8c", ["\u7b2c\u4e00\u3002", "\u7b2c\u4e8c"]),
        ("prose", "Am 26. und 27. Januar. Dann", ["Am 26. und 27. Januar.", "Dann"]),
        ("prose", "Seit 2021. Januar war kalt", ["Seit 2021.", "Januar war kalt"]),
        ("line", "See it. 3 times\nor more", ["See it.", "3 times", "or more"]),
        ("typed", "my disk is full. what now?", ["my disk is full.", "what now?"]),
        ("statement", "Reads: all; writes\nnone", ["Reads:", "all;", "writes", "none"]),
    ],
)
def test_each_rule_ends_sentences_where_its_texts_do(
    rule: SentenceRule, text: str, expected: list[str]
) -> None:
    assert sentences(text, rule=rule) == expected


@given(texts, st.sampled_from(RULES))
def test_ends_ascend_and_sentences_lose_nothing_but_white_space(
    text: str, rule: SentenceRule
) -> None:
    ends = list(sentence_ends(text, rule=rule))

    assert ends == sorted(set(ends))
    assert "".join("".join(sentences(text, rule=rule)).split()) == "".join(text.split())


@given(texts, st.sampled_from(RULES), st.integers(0, 40), st.integers(0, 40))
def test_what_lies_behind_the_end_is_not_looked_at(
    text: str, rule: SentenceRule, start: int, end: int
) -> None:
    stop = min(end, len(text))

    found = list(sentence_ends(text, start, stop, rule=rule))

    assert found == list(sentence_ends(text[:stop], start, rule=rule))

import re

from webrag.pattern_file import PatternFile

SUPPORT = PatternFile("webrag.answering", "support.ini")
QUESTIONS = PatternFile("webrag.orchestration.question", "patterns.ini")


def test_lines_of_a_pattern_are_put_together() -> None:
    assert "entire(?:ly)?|both|never" in SUPPORT.patterns["universal"].pattern


def test_a_doubled_dollar_sign_is_the_end_of_a_text() -> None:
    assert SUPPORT.patterns["condition"].pattern.endswith("(?:,|$)")


def test_a_pattern_takes_in_a_shared_one_and_ignores_case() -> None:
    elliptic = QUESTIONS.patterns["elliptic"]

    assert elliptic.match("WHICH is")
    assert "${" not in elliptic.pattern


def test_a_blank_at_the_end_of_a_line_counts() -> None:
    assert re.fullmatch(QUESTIONS.patterns["article"], "the ")


def test_entries_are_given_in_order_without_shared_ones() -> None:
    before, between = QUESTIONS.lines("comparisons")[0]

    assert (before[-3:], between) == ("[ ]", "[ ]and[ ]")
    assert QUESTIONS.texts("comparisons")[0] == before + between
    assert len(QUESTIONS.lines("comparisons")) == 10

"""Cuts texts into words and into windows of about two sentences; it compares nothing."""

import re

__all__ = ["sentence_windows", "simple_question_terms", "simple_terms"]

# About two sentences: the span in which an answer usually stands. One sentence loses references,
# whole chunks dilute it.
_WINDOW_CHARS = 220
_BREAK = re.compile(r"(?<=[.!?])\s++|(?<!\s)[^\S\n]*+\n\s*+|(?<=[\u3002\uff01\uff1f])")
# The same without the last: beginning with white space, it is found three times as fast.
_SPACED_BREAK = re.compile(r"\s(?:(?<=[.!?]\s)\s*+|(?<=\n)\s*+|(?<!\s\s)[^\S\n]*+\n\s*+)")
_WORD = re.compile(r"\w+")
_SMALL_TALK = """
a about an and any are as at be been by can could did do does for from get had has have how i if in
into is it its me my of on or should so some than that the their them then there these they this to
was we were what when where which who why will with would you your
"""
_QUESTION_WORDS = frozenset(_SMALL_TALK.split())


def simple_terms(text: str) -> list[str]:
    """Words of a text, case-folded."""
    return _WORD.findall(text.casefold())


def simple_question_terms(text: str) -> list[str]:
    """Distinct words of a question without the words questions are put in, if others are left."""
    words = simple_terms(text)
    return list(dict.fromkeys([word for word in words if word not in _QUESTION_WORDS] or words))


def sentence_windows(text: str) -> list[str]:
    """Neighbouring sentences or lines, joined up to the window size; at least one window."""
    windows: list[str] = []
    current = ""
    for sentence in (_SPACED_BREAK if text.isascii() else _BREAK).split(text):
        joined = f"{current} {sentence}".strip()
        if current and len(joined) > _WINDOW_CHARS:
            windows.append(current)
            current = sentence
        else:
            current = joined
    return [*windows, current] if current or not windows else windows

"""Token counts of texts of any shape; knows nothing about markdown."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

__all__ = ["TokenCounter"]

Tokenizer = Callable[[str], Sequence[Any]]

# One unbroken run costs a BPE tokenizer more than linear time, and tiktoken's regular expression
# fails on very long white space. 4096 characters are harmless, and no word is that long.
_MAX_RUN: Final = 4096
_WIDE_SPACE: Final = re.compile(r"\s{64,}+")


class TokenCounter:
    """Counts tokens with any tokenizer, in time linear in the text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def count(self, text: str) -> int:
        """Number of tokens of a text; exact unless it holds a run longer than 4096 characters."""
        if len(text) <= _MAX_RUN or _longest_run(text) <= _MAX_RUN:
            return len(self._tokenizer(text))
        parts = (text[at : at + _MAX_RUN] for at in range(0, len(text), _MAX_RUN))
        return sum(len(self._tokenizer(part)) for part in parts)


def _longest_run(text: str) -> int:
    word = max(map(len, text.split()), default=0)
    space = max((match.end() - match.start() for match in _WIDE_SPACE.finditer(text)), default=0)
    return max(word, space)

"""Turns texts into token numbers word by word, remembering the words; it embeds nothing."""

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

__all__ = ["WordTokens"]

Numbers = NDArray[np.int64]

# Nothing is ever merged across the ends of these: the mark of a word's beginning, which stands for
# a space, comes only first in a token, and a line feed in no token of several characters.
_WORDS = re.compile(r"\n[^ \n]*| *[^ \n]+| +")
_MARK = "\u2581"
_LONGEST_REMEMBERED = 40  # characters; longer are URLs, data and scripts without spaces
_REMEMBERED = 50_000  # words, about 10 MB


class WordTokens:
    """Tokenises as a byte-pair tokenizer without pre-tokenisation does, several times as fast.

    Such a tokenizer reads a whole text as if it were one word. Texts repeat their words, so here
    each word is tokenised once. Thread-safe.

    Args:
        tokenizer: Puts U+2581 before a text and in place of its spaces, and changes nothing else.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
        self._added = re.compile("|".join(map(re.escape, added)) or r"(?!)")
        self._known: dict[str, tuple[int, ...]] = {}

    def ids(self, texts: Sequence[str]) -> tuple[Numbers, Numbers]:
        """The tokens of texts.

        Returns:
            The tokens of all texts, one after another, and how many each text has.
        """
        words = [self._words(text) for text in texts]
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        places: defaultdict[str, int] = defaultdict()
        places.default_factory = places.__len__  # numbers words as they come
        found = map(places.__getitem__, chain.from_iterable(words))
        numbers = np.fromiter(found, np.int64, int(lengths.sum()))
        tokens = self._tokens(places)
        sizes = np.fromiter(map(len, tokens), np.int64, len(tokens))
        flat = np.fromiter(chain.from_iterable(tokens), np.int64, int(sizes.sum()))
        counts = sizes[numbers]
        ends = np.r_[0, np.cumsum(counts)]
        shifts = (np.cumsum(sizes) - sizes)[numbers] - ends[:-1]
        every = flat[np.arange(ends[-1]) + np.repeat(shifts, counts)]
        return every, np.diff(ends[np.r_[0, np.cumsum(lengths)]])

    def _words(self, text: str) -> list[str]:
        """A text cut up: each word without the one space before it, or with its line feed.

        A text that spells a control token is one piece, told by two line feeds: control tokens
        are cut out of a text first, wherever they stand.
        """
        if self._added.search(text):
            return ["\n\n" + text]
        if _MARK in text:
            text = text.replace(_MARK, " ")
        words = text.split(" ")
        if "\n" not in text and "" not in words:
            return words
        found = _WORDS.findall(" " + text) if text else []
        return [word[1:] if word[0] == " " else word for word in found]

    def _tokens(self, words: Collection[str]) -> list[tuple[int, ...]]:
        known = self._known
        fresh = {word: self._tokenised(word) for word in words if word not in known}
        found = [fresh[word] if word in fresh else known[word] for word in words]
        if fresh:
            short = {word: ids for word, ids in fresh.items() if len(word) <= _LONGEST_REMEMBERED}
            # Replaced and never emptied: other threads may be reading the old one.
            if len(known) + len(short) > _REMEMBERED:
                self._known = short
            else:
                known.update(short)
        return found

    def _tokenised(self, word: str) -> tuple[int, ...]:
        if word.startswith("\n\n"):
            return tuple(self._tokenizer.encode(word[2:], add_special_tokens=False).ids)
        marked = word if word.startswith("\n") else f" {word}"
        return tuple(each.id for each in self._tokenizer.model.tokenize(marked.replace(" ", _MARK)))

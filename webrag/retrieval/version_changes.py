"""Tells what two versions say differently, passage by passage; it searches and loads nothing."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from webrag.frozen import FrozenModel
from webrag.retrieval.citation_checks import VERBATIM, Finding, WordChange, find_quote, word_changes
from webrag.retrieval.citations import passage_link
from webrag.retrieval.markup import plain_text

ChangeKind = Literal["added", "removed", "reworded"]

_SAME: Final = frozenset({*VERBATIM, "reformatted"})
_LEAST_WORDS: Final = 4
_BLOCK_END: Final = re.compile(r"\n[ \t]*\n")
_ORDER: Final = {"reworded": 0, "added": 1, "removed": 2}


class VersionPassage(FrozenModel):
    """A passage of a stored page, verbatim, and the link that opens the page there."""

    url: str
    text: str
    char_start: int
    char_end: int
    link: str


class VersionChange(FrozenModel):
    """A passage that one of two versions has, or both in other words, told word by word."""

    kind: ChangeKind
    old: VersionPassage | None = None
    new: VersionPassage | None = None
    words: tuple[WordChange, ...] = ()


class VersionComparison(FrozenModel):
    """The changes between two versions, each `library@version`, that matter for a question."""

    question: str
    old: str
    new: str
    changes: tuple[VersionChange, ...] = ()
    unchanged: int = 0
    pages: int = 0

    def __repr__(self) -> str:
        return f"<VersionComparison {self.old} {self.new}: {len(self.changes)} changes>"

    __str__ = __repr__  # the passages would fill the screen


def blocks_of(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Places of the paragraphs, lists and listings of a page that a span touches."""
    begin = max((found.end() for found in _BLOCK_END.finditer(text, 0, start + 1)), default=0)
    places: list[tuple[int, int]] = []
    while begin < end:
        found = _BLOCK_END.search(text, begin)
        stop = found.start() if found else len(text)
        block = text[begin:stop]
        lead = len(block) - len(block.lstrip())
        if block.strip():
            places.append((begin + lead, begin + len(block.rstrip())))
        begin = found.end() if found else len(text)
    return places


def changed_passages(
    old: Mapping[str, Sequence[tuple[int, int]]],
    new: Mapping[str, Sequence[tuple[int, int]]],
    texts: tuple[Mapping[str, str], Mapping[str, str]],
) -> tuple[list[VersionChange], int]:
    """Tell what became of passages, by URL and place, in all texts of the other version."""
    changes: dict[tuple[object, ...], VersionChange] = {}
    unchanged: set[str] = set()
    for versions, own, other, is_old in ((new, texts[1], texts[0], False), (old, *texts, True)):
        places = ((url, place) for url in versions for place in dict.fromkeys(versions[url]))
        for passage in (_passage(url, own[url], *place) for url, place in places):
            words = sum(any(map(str.isalnum, word)) for word in passage.text.split())
            if words < _LEAST_WORDS or passage.text.lstrip().startswith("#"):
                continue
            match, url = _best_match(passage.text, other)
            if match is not None and match.state in _SAME:
                unchanged.add(" ".join(passage.text.split()))
                continue
            change = _change(passage, _counterpart(match, url, other), is_old=is_old)
            changes.setdefault(_identity(change), change)
    ordered = sorted(changes.values(), key=lambda each: _ORDER[each.kind])
    return ordered, len(unchanged)


def _passage(url: str, text: str, start: int, end: int) -> VersionPassage:
    quoted = text[start:end]
    link = passage_link(url, plain_text(quoted)) if url.startswith("http") else url
    return VersionPassage(url=url, text=quoted, char_start=start, char_end=end, link=link)


def _best_match(quote: str, texts: Mapping[str, str]) -> tuple[Finding | None, str]:
    best: Finding | None = None
    best_url = ""
    for url, text in texts.items():
        match = find_quote(text, quote)
        if match.state in _SAME:
            return match, url
        if best is None or match.similarity > best.similarity:
            best, best_url = match, url
    return best, best_url


def _counterpart(
    match: Finding | None, url: str, texts: Mapping[str, str]
) -> VersionPassage | None:
    """The whole paragraph that says the same in other words."""
    if match is None or match.char_start is None or match.char_end is None:
        return None
    blocks = blocks_of(texts[url], match.char_start, match.char_end)
    return _passage(url, texts[url], blocks[0][0], blocks[-1][1]) if blocks else None


def _change(
    passage: VersionPassage, other: VersionPassage | None, *, is_old: bool
) -> VersionChange:
    old, new = (passage, other) if is_old else (other, passage)
    if old is None or new is None:
        return VersionChange(kind="removed" if is_old else "added", old=old, new=new)
    return VersionChange(kind="reworded", old=old, new=new, words=word_changes(old.text, new.text))


def _identity(change: VersionChange) -> tuple[object, ...]:
    """A passage that is reworded is found from both sides, and from several pages."""
    sides = (change.old, change.new)
    return change.kind, *(" ".join(each.text.split()) for each in sides if each is not None)

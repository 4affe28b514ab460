"""Compares the passages for a question in two stored versions of a library, word by word."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from webrag.concurrency import all_of, in_background
from webrag.errors import InputError
from webrag.frozen import FrozenModel
from webrag.ingestion.versions import checked_version, edition_root
from webrag.orchestration.models import OrchestrationResult
from webrag.question import Question
from webrag.retrieval.citation_checks import VERBATIM, Finding, WordChange, find_quote, word_changes
from webrag.retrieval.citations import passage_link
from webrag.retrieval.markup import plain_text

if TYPE_CHECKING:
    from webrag.corpus.pages import Corpus
    from webrag.orchestration.engine import OrchestratorEngine

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


def versioned_name(version: str, library: str | None) -> str:
    """A version as sites are filtered by, `library@version`.

    Raises:
        InputError: It is none, or names another library.
    """
    name, at, number = version.rpartition("@")
    if at and library:
        raise InputError(f"{version!r} names its library already; leave {library!r} out.")
    return f"{name if at else library or ''}@{checked_version(number)}"


async def compare_versions(
    engine: "OrchestratorEngine",
    corpus: "Corpus",
    question: str,
    old: str,
    new: str,
    *,
    top_k: int,
) -> VersionComparison:
    """Find passages for a question in both versions and tell what became of each.

    A passage counts as added or removed when neither the page in its place nor any page found
    in the other version has it. Versions are as `versioned_name` gives them; at most `top_k`
    passages are taken of each. One that is not stored is an InputError.
    """
    found = await all_of(
        engine.run(Question.of(question, sites=each, top_k=top_k)) for each in (old, new)
    )
    urls = [[item.chunk.source_url for item in result.chunks] for result in found]
    # Of a page found in one version, the same page of the other.
    sides = [
        dict.fromkeys((*own, *_counterparts(other, own)))
        for own, other in ((urls[0], urls[1]), (urls[1], urls[0]))
    ]
    read = [{url: await corpus.markdown(url) for url in side} for side in sides]
    texts = [{url: text for url, text in side.items() if text is not None} for side in read]
    places = [_places(result, held) for result, held in zip(found, texts, strict=True)]
    changes, unchanged = await in_background(
        _changed_passages, places[0], places[1], (texts[0], texts[1])
    )
    return VersionComparison(
        question=question,
        old=old,
        new=new,
        changes=tuple(changes),
        unchanged=unchanged,
        pages=sum(map(len, texts)),
    )


def _counterparts(urls: Iterable[str], others: Sequence[str]) -> list[str]:
    """Addresses of the same pages in another edition, of which `others` are pages."""
    prefixes = dict.fromkeys(prefix for url in others if (prefix := _prefix(url)))
    return [
        f"{other}{url.removeprefix(own)}"
        for url in urls
        if (own := _prefix(url))
        for other in prefixes
        if other != own
    ]


def _prefix(url: str) -> str:
    """The part of an address that stands for its edition."""
    root = edition_root(url)
    place = url.find(root)
    return url[: place + len(root)] if place >= 0 else ""


def _places(result: OrchestrationResult, texts: dict[str, str]) -> dict[str, list[tuple[int, int]]]:
    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for item in sorted(result.chunks, key=lambda item: -item.reranked_score):
        text = texts.get(item.chunk.source_url)
        if text is not None:
            best = item.chunk.focus or item.chunk
            places[item.chunk.source_url] += _blocks_of(text, best.char_start, best.char_end)
    return places


def _blocks_of(text: str, start: int, end: int) -> list[tuple[int, int]]:
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


def _changed_passages(
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
            change = _change(passage, _paragraph_of(match, url, other), is_old=is_old)
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


def _paragraph_of(
    match: Finding | None, url: str, texts: Mapping[str, str]
) -> VersionPassage | None:
    """The whole paragraph that says the same in other words."""
    if match is None or match.char_start is None or match.char_end is None:
        return None
    blocks = _blocks_of(texts[url], match.char_start, match.char_end)
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

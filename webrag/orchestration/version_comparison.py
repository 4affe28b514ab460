"""Compares the passages for a question in two stored versions of a library."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from webrag.concurrency import all_of, in_background
from webrag.errors import InputError
from webrag.ingestion.versions import checked_version, edition_root
from webrag.orchestration.models import OrchestrationResult
from webrag.question import Question
from webrag.retrieval.version_changes import VersionComparison, blocks_of, changed_passages

if TYPE_CHECKING:
    from webrag.corpus.pages import Corpus
    from webrag.orchestration.engine import OrchestratorEngine

_MOST_PASSAGES: Final = 8


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
    top_k: int = _MOST_PASSAGES,
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
        changed_passages, places[0], places[1], (texts[0], texts[1])
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
            places[item.chunk.source_url] += blocks_of(text, best.char_start, best.char_end)
    return places

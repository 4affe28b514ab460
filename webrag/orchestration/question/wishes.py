"""Reads the wishes for the evidence out of constraints and intent, without a model.

Wishes order what was found, or leave sites out of it; they search nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from llama_index.postprocessor.webrag.selection import age_years

from webrag.argument_checks import shown_value
from webrag.errors import InputError
from webrag.orchestration.models import RankedChunk
from webrag.orchestration.question.analyzer import content_named
from webrag.orchestration.question.patterns import is_denial
from webrag.pattern_file import PatternFile
from webrag.question import QueryType
from webrag.retrieval.filters import ContentKind, SearchFilters
from webrag.retrieval.models import RetrievedChunk

Ranking = tuple[RankedChunk, ...]

# How far a wish lifts a passage: past one that scores 15% more. Chosen, not measured; with twice as
# much a passage that only looks right would pass one that answers.
_LIFT: Final = 0.15

_KINDS_OF_INTENT: Final[Mapping[QueryType, tuple[ContentKind, ...]]] = {
    "how_to": ("steps", "code"),
    "factual": ("table", "definition_list"),
    "comparison": ("table",),
    "exploratory": (),
}

_RE: Final = PatternFile(__package__, "patterns.ini").patterns
_KINDS: Final[tuple[ContentKind, ...]] = (
    *("code", "table", "steps", "math", "definition_list", "admonition"),
)
_WANTED_KINDS: Final = tuple((kind, _RE[f"wants_{kind}"]) for kind in _KINDS)


@dataclass(frozen=True, slots=True)
class Wish:
    """One constraint, or the intent, and what it means for the evidence.

    Attributes:
        kinds: Passages that hold one of them are preferred.
        recent: Passages of pages published lately are preferred.
        sites: Passages of other hosts are left out; empty for none.
        is_searched: Its words were searched for, so it had an effect whatever was found.
    """

    text: str
    kinds: tuple[ContentKind, ...] = ()
    recent: bool = False
    sites: tuple[str, ...] = ()
    is_searched: bool = False


def read_wishes(
    constraints: Iterable[str], intent: QueryType | None, *, named_sites: Iterable[str]
) -> tuple[Wish, ...]:
    """Read constraints and intent; a denied wish ("no code") asks for nothing.

    The named sites, those of the pages the caller named, count as the official ones.
    """
    official = tuple(dict.fromkeys(named_sites))
    wishes = [_wish(each, official) for each in constraints if each.strip()]
    if intent is not None:
        wishes.insert(0, Wish(f"intent {intent}", kinds=_KINDS_OF_INTENT[intent]))
    return tuple(wishes)


def _wish(constraint: str, official: tuple[str, ...]) -> Wish:
    text = " ".join(constraint.split())
    bare = text.rstrip(" .!")
    searched = content_named(text) is not None
    only = _RE["wants_only"].fullmatch(bare)
    if only:
        return Wish(text, sites=_host(only["host"] or only["first"]), is_searched=searched)
    if is_denial(bare):
        return Wish(text, is_searched=searched)
    return Wish(
        text,
        kinds=tuple(kind for kind, pattern in _WANTED_KINDS if pattern.search(bare)),
        recent=bool(_RE["wants_recent"].search(bare)),
        sites=official if _RE["wants_official"].search(bare) else (),
        is_searched=searched,
    )


def _host(text: str) -> tuple[str, ...]:
    try:
        return SearchFilters.of(sites=text).sites or ()
    except InputError:
        return ()


def fulfilled(rankings: Sequence[Ranking], wishes: Sequence[Wish], now: datetime) -> list[Ranking]:
    """Order the rankings of a question's parts as the wishes would have them, best first.

    No passage is added. The best score of all stays what it was, so that thresholds and confidence
    keep their meaning; a wish for sites that would leave nothing is passed over. Ages are counted
    from `now`.
    """
    kept = list(rankings)
    for wish in wishes:
        narrowed = [tuple(each for each in part if _is_on(each.chunk, wish)) for part in kept]
        kept = narrowed if any(narrowed) else kept
    preferences = [wish for wish in wishes if wish.kinds or wish.recent]
    if not preferences:
        return kept
    lifted = [[_lifted(each, preferences, now) for each in part] for part in kept]
    before = max((each.reranked_score for part in kept for each in part), default=0.0)
    after = max((score for part in lifted for score in part), default=0.0)
    scale = before / after if after else 1.0
    rescored = (
        [
            each.model_copy(update={"reranked_score": min(score * scale, 1.0)})
            for each, score in zip(part, scores, strict=True)
        ]
        for part, scores in zip(kept, lifted, strict=True)
    )
    return [tuple(sorted(part, key=lambda each: -each.reranked_score)) for part in rescored]


def _lifted(ranked: RankedChunk, wishes: Iterable[Wish], now: datetime) -> float:
    score = ranked.reranked_score
    for wish in wishes:
        share = 1.0 if _holds(ranked.chunk, wish.kinds) else 0.0
        if wish.recent and ranked.chunk.published_at is not None:
            share = max(share, 0.5 ** age_years(ranked.chunk.published_at, now))
        score *= 1.0 + _LIFT * share
    return score


def without_effect(wishes: Iterable[Wish], chunks: Sequence[RetrievedChunk]) -> str | None:
    """Name the wishes nothing came of in the evidence, each with the reason; None without any."""
    told = [(wish, reason) for wish in wishes if (reason := _reason(wish, chunks))]
    if not chunks or not told:
        return None
    listed = "; ".join(f"{shown_value(wish.text)} ({reason})" for wish, reason in told)
    return f"Wishes without effect: {listed}."


def _reason(wish: Wish, chunks: Sequence[RetrievedChunk]) -> str | None:
    """Say why nothing came of a wish; None when something did."""
    kinds = " or ".join(kind.replace("_", " ") for kind in wish.kinds)
    tests: list[tuple[bool, Callable[[RetrievedChunk], bool], str]] = [
        (bool(wish.sites), lambda each: _is_on(each, wish), f"nothing of {', '.join(wish.sites)}"),
        (bool(wish.kinds), lambda each: _holds(each, wish.kinds), f"no {kinds}"),
        (wish.recent, lambda each: each.published_at is not None, "no page with a date"),
    ]
    asked = [(has, what) for is_asked, has, what in tests if is_asked]
    if wish.is_searched or any(has(each) for has, _ in asked for each in chunks):
        return None
    if not asked:
        return "nothing is ordered or left out by it"
    return " and ".join(what for _, what in asked) + " in the evidence"


def _holds(chunk: RetrievedChunk, kinds: Iterable[ContentKind]) -> bool:
    return any(getattr(chunk, f"has_{kind}") for kind in kinds)


def _is_on(chunk: RetrievedChunk, wish: Wish) -> bool:
    """Tell whether a passage is of the sites wished for; a host without a port means every port."""
    if not wish.sites:
        return True
    host = chunk.site.rsplit(":", 1)[0]
    return any(site in (chunk.site, host) or host.endswith(f".{site}") for site in wish.sites)

"""Turns scored children into an ordered, budgeted list of parents; pure, it loads nothing."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from llama_index.postprocessor.webrag.selection import within_budget
from llama_index.postprocessor.webrag.wordings import wordings_score

from webrag.retrieval.models import RetrievedChunk, WordingScores

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A child that matched, with what is needed to order it and its parent.

    Attributes:
        key: Child key, unique in the collection.
        text_hash: Equal for equal texts under equal titles and headings; None equals nothing.
        depth_weight: Multiplier of the page's depth.
        scores: Under the question, then under each other wording of it.
    """

    key: int
    document: int
    parent_id: UUID
    parent_tokens: int
    text_hash: bytes | None
    depth_weight: float
    scores: tuple[WordingScores, ...]

    @property
    def fused(self) -> float:
        """Fused score under the question."""
        return self.scores[0].fused

    @property
    def merit(self) -> float:
        """Fused score, with other wordings the weighted mean of all."""
        return wordings_score(tuple(each.fused for each in self.scores))

    @property
    def score(self) -> float:
        """The merit times the depth multiplier: what parents are ordered by."""
        return self.merit * self.depth_weight


@dataclass(frozen=True, slots=True)
class ParentHit:
    """A parent whose children matched.

    Attributes:
        matches: The children that matched, best first; at least one.
    """

    parent_id: UUID
    matches: tuple[Candidate, ...]

    @property
    def score(self) -> float:
        """Best child's score; the maximum, so that one strong passage is not diluted."""
        return self.matches[0].score

    @property
    def tokens(self) -> int:
        """Tokens of the parent."""
        return self.matches[0].parent_tokens


def drop_repeated_texts(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Keep one of several children with the same text, in the order given.

    A text stays with the page whose best child is best, which keeps a whole page together; after
    that, with the page nearer to the ones the user named.
    """
    best_of_page: dict[int, float] = {}
    for candidate in candidates:
        best = best_of_page.get(candidate.document, 0.0)
        best_of_page[candidate.document] = max(best, candidate.fused)
    owners: dict[bytes, Candidate] = {}

    def preference(candidate: Candidate) -> tuple[float, float, int]:
        best = best_of_page[candidate.document]
        return (best, candidate.depth_weight, -candidate.key)

    for candidate in candidates:
        if candidate.text_hash is not None:
            rival = owners.get(candidate.text_hash)
            if rival is None or preference(candidate) > preference(rival):
                owners[candidate.text_hash] = candidate
    return [c for c in candidates if c.text_hash is None or owners[c.text_hash] is c]


def group_by_parent(candidates: Iterable[Candidate]) -> list[ParentHit]:
    """Each parent once, best first; ties keep the order in which parents were first seen."""
    members: dict[UUID, list[Candidate]] = {}
    for candidate in candidates:
        members.setdefault(candidate.parent_id, []).append(candidate)
    hits = [
        ParentHit(parent_id, tuple(sorted(children, key=lambda child: -child.merit)))
        for parent_id, children in members.items()
    ]
    return sorted(hits, key=lambda hit: -hit.score)


def fit_budget(items: Sequence[T], tokens: Callable[[T], int], budget: int) -> tuple[list[T], bool]:
    """The longest prefix within a token budget, at least one item if there is any.

    Tells as well whether anything was cut.
    """
    kept = within_budget(map(tokens, items), budget)
    return list(items[:kept]), kept < len(items)


def in_reading_order(
    items: Iterable[T], chunk: Callable[[T], RetrievedChunk], score: Callable[[T], float]
) -> tuple[T, ...]:
    """One group per page, groups by best score, chunks of a page as they stand on it."""
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(chunk(item).source_url, []).append(item)
    ordered = sorted(groups.values(), key=lambda group: -max(map(score, group)))
    return tuple(
        item for group in ordered for item in sorted(group, key=lambda one: chunk(one).chunk_index)
    )

"""What one run was asked for and what it knows so far; it does no work itself."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from webrag.errors import InputError
from webrag.ingestion.links import canonical_url
from webrag.orchestration.expander import Frontier
from webrag.orchestration.link_rules import LinkScope
from webrag.orchestration.merger import Merged
from webrag.orchestration.models import (
    Action,
    EvaluationSignals,
    ExpansionConfig,
    ExpansionDecision,
    ExpansionOutcome,
    ExpansionStep,
    OrchestrationTiming,
    QueryAnalysis,
    QueryType,
    SubQueryResult,
)
from webrag.orchestration.page_budget import PageBudget
from webrag.retrieval.filters import NO_FILTERS, SearchFilters
from webrag.retrieval.request import RetrievalMode

__all__ = ["PendingStep", "RunClock", "RunRequest", "RunState"]

MAX_SEEDS = 20
MAX_PAGES = 25


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One call, checked and with every default filled in.

    Attributes:
        urls: Canonical addresses to start from; empty for a search of what is stored.
        max_iterations: Rounds of expansion; 0 for none.
        max_pages: Pages that may be obtained after the named ones.
        filters: For a search: what may be returned.
        top_k: For a search: chunks at most.
        expansion_budget: As the caller gave it.
        is_search: Nothing may be fetched.
    """

    query: str
    urls: tuple[str, ...] = ()
    intent: QueryType | None = None
    known_context: str | None = None
    constraints: tuple[str, ...] = ()
    max_iterations: int = 0
    max_pages: int = 0
    retrieval_mode: Literal["chunk", "full_context", "auto"] = "chunk"
    filters: SearchFilters = NO_FILTERS
    top_k: int | None = None
    expansion_budget: int | None = None
    is_search: bool = False
    warnings: tuple[str, ...] = ()

    @classmethod
    def answer(
        cls,
        urls: str | Sequence[str],
        query: str,
        *,
        intent: QueryType | None,
        known_context: str | None,
        constraints: Sequence[str] | None,
        expansion_budget: int | None,
        research_mode: Literal["fast", "deep"],
        retrieval_mode: Literal["chunk", "full_context", "auto"],
        max_pages: int | None,
        config: ExpansionConfig,
    ) -> "RunRequest":
        """Check a call of `OrchestratorEngine.run`.

        Raises:
            InputError: A value cannot be used.
        """
        named = [urls] if isinstance(urls, str) else list(urls)
        seeds = tuple(dict.fromkeys(canonical_url(url) for url in named))
        if not 1 <= len(seeds) <= MAX_SEEDS:
            raise InputError(f"{len(seeds)} URLs were given; allowed are 1 to {MAX_SEEDS}.")
        rounds, warnings = _rounds(expansion_budget, research_mode, config.max_depth)
        return cls(
            query=_checked_query(query),
            urls=seeds,
            intent=intent,
            known_context=known_context,
            constraints=tuple(constraints or ()),
            max_iterations=rounds,
            max_pages=_checked_pages(max_pages, config),
            retrieval_mode=retrieval_mode,
            expansion_budget=expansion_budget,
            warnings=warnings,
        )

    @classmethod
    def search(
        cls,
        query: str,
        *,
        filters: SearchFilters,
        intent: QueryType | None,
        top_k: int | None,
        retrieval_mode: RetrievalMode,
    ) -> "RunRequest":
        """Check a call of `OrchestratorEngine.search`.

        Raises:
            InputError: A value cannot be used.
        """
        if top_k is not None and top_k < 1:
            raise InputError(f"top_k is {top_k}; it must be 1 or more.")
        return cls(
            query=_checked_query(query),
            intent=intent,
            filters=filters,
            top_k=top_k,
            retrieval_mode=retrieval_mode,
            is_search=True,
        )


@dataclass(slots=True)
class RunClock:
    """Time spent and time left, in seconds of `time.monotonic`.

    Attributes:
        work_until: From then on no further work is begun and the result is assembled.
    """

    started: float
    work_until: float
    spent_ms: dict[str, float] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Whether the time for work has passed."""
        return time.monotonic() >= self.work_until

    @property
    def left_s(self) -> float:
        """Seconds left for work, at least 0."""
        return max(self.work_until - time.monotonic(), 0.0)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time the block takes to a field of `OrchestrationTiming`."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.add(name, begun)

    def add(self, name: str, begun: float) -> None:
        """Add the time since `begun` to a field of `OrchestrationTiming`."""
        elapsed = (time.monotonic() - begun) * 1000
        self.spent_ms[name] = self.spent_ms.get(name, 0.0) + elapsed

    def timing(self) -> OrchestrationTiming:
        """Everything measured, with the total so far."""
        total = (time.monotonic() - self.started) * 1000
        return OrchestrationTiming(**self.spent_ms, total_ms=total)


@dataclass(slots=True)
class PendingStep:
    """An action whose effect is not known before the next ranking."""

    decision: ExpansionDecision
    signals: EvaluationSignals
    chunk_ids: frozenset[str]
    begun: float
    outcome: ExpansionOutcome = field(default_factory=ExpansionOutcome)
    new_queries: tuple[str, ...] = ()
    pages_joined: int = 0


@dataclass(slots=True)
class RunState:
    """Everything a run has found out; changed by its steps, one at a time.

    Attributes:
        pages: Canonical URLs of the pages named or fetched in this run, in that order.
        joined: Stored pages inside the scope that are searched as well.
        is_widened: Whether the search has gone beyond the named pages.
        scorer_failed: The reranker failed, so everything is ranked by raw similarity.
        discovery_failed: A mapping service failed, so it is not asked again.
        fetched: URL of each page obtained in this run to the page source it came from.
        frontier: Links to follow next; None when they must be looked for again.
        closed: Actions that came back empty.
        iteration: Rounds that brought something.
    """

    request: RunRequest
    clock: RunClock
    scope: LinkScope
    budget: PageBudget
    analysis: QueryAnalysis | None = None
    pages: dict[str, None] = field(default_factory=dict)
    joined: tuple[str, ...] = ()
    is_widened: bool = False
    wants_recall: bool = False
    scorer_failed: bool = False
    discovery_failed: bool = False
    extra_queries: tuple[str, ...] = ()
    results: tuple[SubQueryResult, ...] = ()
    merged: Merged = field(default_factory=Merged)
    signals: EvaluationSignals | None = None
    previous: EvaluationSignals | None = None
    confidence: float = 0.0
    frontier: Frontier | None = None
    decision: ExpansionDecision | None = None
    pending: PendingStep | None = None
    steps: list[ExpansionStep] = field(default_factory=list)
    closed: set[Action] = field(default_factory=set)
    tried: set[Action] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    iteration: int = 0
    partial: bool = False
    fetched: dict[str, str] = field(default_factory=dict)
    degraded: dict[str, None] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)

    @property
    def queries(self) -> tuple[str, ...]:
        """What is searched: the question's parts, itself when it has several, other wordings."""
        parts = self.analysis.sub_queries if self.analysis else (self.request.query,)
        # A sentence that compares two things names both; searches for each alone miss it.
        whole = (self.request.query,) if len(parts) > 1 else ()
        return tuple(dict.fromkeys((*parts, *whole, *self.extra_queries)))

    @property
    def searched_urls(self) -> tuple[str, ...] | None:
        """Pages to search; None for the whole corpus."""
        return self.filters.source_urls

    @property
    def filters(self) -> SearchFilters:
        """What is searched now."""
        if self.request.is_search or (self.is_widened and self.scope.stored_sites is None):
            return self.request.filters
        return SearchFilters(source_urls=tuple(dict.fromkeys((*self.pages, *self.joined))))

    def note_degraded(self, sentence: str | None) -> None:
        """Remember a component that did not work as configured."""
        if sentence:
            self.degraded[sentence] = None

    def warn(self, *sentences: str) -> None:
        """Remember sentences for the user; each once."""
        self.warnings.update(dict.fromkeys(sentences))


def _checked_query(query: str) -> str:
    if not query.strip():
        raise InputError("The question is empty: ask something.")
    return query


def _checked_pages(max_pages: int | None, config: ExpansionConfig) -> int:
    if max_pages is None:
        return config.max_pages_per_run
    if not 0 <= max_pages <= MAX_PAGES:
        raise InputError(f"max_pages is {max_pages}; allowed are 0 to {MAX_PAGES}.")
    return max_pages


def _rounds(
    expansion_budget: int | None, research_mode: Literal["fast", "deep"], max_depth: int
) -> tuple[int, tuple[str, ...]]:
    """Rounds allowed; an explicit budget beats the mode, the safety ceiling beats both."""
    if expansion_budget is None:
        return (max_depth if research_mode == "deep" else 0), ()
    if expansion_budget < 0:
        raise InputError(f"expansion_budget is {expansion_budget}; it must be 0 or more.")
    if expansion_budget <= max_depth:
        return expansion_budget, ()
    return max_depth, (
        f"expansion_budget {expansion_budget} was lowered to {max_depth}, the configured ceiling.",
    )

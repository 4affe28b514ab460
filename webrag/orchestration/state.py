"""The knowledge and the remaining budgets of one run; it does no work itself."""

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from webrag.corpus.models import LinkCandidate
from webrag.ingestion.addresses import is_file, site_of
from webrag.orchestration.confidence import HIGH
from webrag.orchestration.links.rules import (
    ExpansionOutcome,
    FailureKind,
    Frontier,
    LinkScope,
)
from webrag.orchestration.models import (
    Action,
    AnswerUnit,
    EvaluationSignals,
    ExpansionDecision,
    ExpansionStep,
    NextLink,
    OrchestrationConfig,
    OrchestrationTiming,
    QueryAnalysis,
    SubQueryResult,
)
from webrag.orchestration.ranking.reranker import Merged
from webrag.question import Question
from webrag.retrieval.filters import SearchFilters

FAILURES_PER_PAGE: Final = 3

"""Fetches that may fail for each page wanted, in a run and in each of its rounds."""

# What a page under way is taken to cost until it has arrived: pages fetched at once must not read
# several times what is left. Some four of five pages of documentation are smaller.
_PAGE_BYTES: Final = 250_000

# A second round knows more links; without it an answer two links away is out of reach.
_FIRST_ROUND_SHARE: Final = 0.6


@dataclass(slots=True)
class PageBudget:
    """Pages, bytes and failures of one run; never negative.

    Attributes:
        pages: Pages that may still be obtained.
        bytes: Bytes that may still be read from the network; a page is begun while any are left.
        failures: Fetches that may still fail.
    """

    pages: int
    bytes: int
    failures: int

    @classmethod
    def of(cls, max_pages: int, max_bytes: int) -> "PageBudget":
        """A full budget; three times as many failures as pages are allowed."""
        return cls(max_pages, max_bytes, FAILURES_PER_PAGE * max_pages)

    @property
    def is_spent(self) -> bool:
        """True when no further fetch may be begun."""
        return self.spent_part is not None

    @property
    def spent_part(self) -> str | None:
        """Clause for users that says why no further fetch may be begun; None while one may."""
        if self.pages <= 0:
            return "the page budget is used up"
        if self.bytes <= 0:
            return "as many bytes were read as allowed"
        return "too many fetches failed" if self.failures <= 0 else None

    def may_begin(self, running: int) -> bool:
        """Tell whether one more fetch may be begun while others are under way."""
        return not self.is_spent and self.bytes > running * _PAGE_BYTES

    def spend(self, *, pages: int = 0, size: int = 0, failures: int = 0) -> None:
        """Take off what was used."""
        self.pages = max(self.pages - pages, 0)
        self.bytes = max(self.bytes - size, 0)
        self.failures = max(self.failures - failures, 0)

    def round_size(self, cap: int, *, is_first: bool, rounds_left: int) -> int:
        """Pages to obtain in the next round, at most `cap`; the rounds left include it.

        The first round leaves four tenths of the pages for a second one when there will be one.
        """
        if self.is_spent:
            return 0
        is_shared = is_first and rounds_left > 1
        share = math.ceil(self.pages * _FIRST_ROUND_SHARE) if is_shared else self.pages
        return max(min(cap, share), 1)


GAIN: Final = 0.02

"""Least growth of the best score, or of the confidence, that counts as evidence gained."""

# Kept back from the whole time for the last retrieval and for assembling the result.
_RESERVE_SHARE: Final = 0.1

_MAX_RESERVE_S: Final = 5.0


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
        """True when the time for work has passed."""
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
            spent_ms = (time.monotonic() - begun) * 1000
            self.spent_ms[name] = self.spent_ms.get(name, 0.0) + spent_ms

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
        rounds: Rounds of expansion that are allowed.
        pages: Canonical URLs of the pages named or fetched in this run, in that order.
        wordings_by_part: The other wordings that fit each part of a question of several parts.
        joined: Stored pages inside the scope, the nearest to a named page, not more than their
            links are wanted of.
        joined_count: How many there are that the run has not obtained itself.
        is_widened: The search has gone beyond the named pages.
        scorer_failed: The reranker failed, so everything is ranked by raw similarity.
        discovery_failed: A mapping service failed, so it is not asked again.
        aliases: Addresses that turned out to be another one of a known page.
        fetched: URL of each page obtained in this run to the page source it came from.
        units: What answers most likely, best first.
        chance: That everything asked is answered, [0, 1], by more than lists of links.
        surest: The chance when it last grew.
        in_vain: Chance by their links' scores that none of the pages read since then answers.
        part_confidence: In each part of a question of several parts, [0, 1], the worst first.
        failure_kinds: Why links brought no page; those cut off once may be followed again.
        frontier: Links to follow next; None when they must be looked for again.
        links: Those of the pages that were looked at for links, as they are stored.
        closed: Actions that came back empty.
        iteration: Rounds that brought something.
        blocked: Sentence that says why nothing more can be searched; None while it can.
    """

    question: Question
    clock: RunClock
    scope: LinkScope
    budget: PageBudget
    rounds: int = 0
    analysis: QueryAnalysis | None = None
    wordings_by_part: dict[str, tuple[str, ...]] = field(default_factory=dict)
    pages: dict[str, None] = field(default_factory=dict)
    joined: tuple[str, ...] = ()
    joined_count: int = 0
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
    chance: float = 0.0
    surest: float = -1.0
    in_vain: float = 1.0
    part_confidence: dict[str, float] = field(default_factory=dict)
    units: tuple[AnswerUnit, ...] = ()
    frontier: Frontier | None = None
    links: dict[str, list[LinkCandidate]] = field(default_factory=dict)
    decision: ExpansionDecision | None = None
    pending: PendingStep | None = None
    steps: list[ExpansionStep] = field(default_factory=list)
    closed: set[Action] = field(default_factory=set)
    tried: set[Action] = field(default_factory=set)
    failure_kinds: dict[str, FailureKind] = field(default_factory=dict)
    aliases: set[str] = field(default_factory=set)
    iteration: int = 0
    partial: bool = False
    blocked: str | None = None
    fetched: dict[str, str] = field(default_factory=dict)
    degraded: dict[str, None] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)

    @classmethod
    def begin(cls, question: Question, config: OrchestrationConfig) -> "RunState":
        """The state of a run that begins now, with full budgets."""
        now = time.monotonic()
        work_s = config.timeout_s - min(config.timeout_s * _RESERVE_SHARE, _MAX_RESERVE_S)
        if config.soft_deadline_s is not None:
            work_s = min(work_s, config.soft_deadline_s)
        expansion, warnings = config.expansion, dict[str, None]()
        # An explicit budget beats the mode, the safety ceiling beats both.
        rounds = question.expansion_budget
        if rounds is None or question.is_search:
            rounds = expansion.max_depth if question.is_deep and not question.is_search else 0
        if rounds > expansion.max_depth:
            lowered = f"was lowered to {expansion.max_depth}, the configured ceiling."
            warnings[f"expansion_budget {rounds} {lowered}"] = None
            rounds = expansion.max_depth
        pages = expansion.max_pages_per_run if question.max_pages is None else question.max_pages
        return cls(
            question=question,
            clock=RunClock(started=now, work_until=now + work_s),
            scope=LinkScope.of(
                expansion.scope, (*question.urls, *question.stored), expansion.allowed_domains
            ),
            budget=PageBudget.of(0 if question.is_search else pages, expansion.max_bytes_per_run),
            rounds=rounds,
            warnings=warnings,
        )

    @property
    def parts(self) -> tuple[str, ...]:
        """The separate needs of the question; itself alone where it asks for one thing."""
        return self.analysis.sub_queries if self.analysis else (self.question.text,)

    @property
    def open_parts(self) -> tuple[str, ...]:
        """The parts that are not answered, the worst first; all of them where that is not known."""
        if not self.part_confidence:
            return self.parts
        return tuple(part for part, found in self.part_confidence.items() if found < HIGH)

    @property
    def also_searched(self) -> dict[str, str]:
        """Words that the searched pages lack, and what they have in their place."""
        return dict(p for each in self.results for p in each.retrieval.also_searched.items())

    @property
    def wordings(self) -> tuple[str, ...]:
        """Other wordings of the whole question."""
        return (*self.question.wordings, *(self.analysis.wordings if self.analysis else ()))

    @property
    def queries(self) -> tuple[str, ...]:
        """The texts searched: the question's parts, itself when it has several, other wordings."""
        parts = self.parts
        # A sentence that compares two things names both; searches for each alone miss it. A
        # language model's wording is not trusted to stand for the question.
        is_reworded = self.analysis is not None and self.analysis.method == "llm"
        whole = (self.question.text,) if len(parts) > 1 or is_reworded else ()
        return tuple(dict.fromkeys((*parts, *whole, *self.extra_queries)))

    def wordings_of(self, query: str) -> tuple[str, ...]:
        """Other wordings of one of `queries`: of a part, or of the whole question.

        A wish adds words to the question, so the question as asked may not be among the queries;
        the first then stands for it.
        """
        if query in self.wordings_by_part:
            return self.wordings_by_part[query]
        asked, queries = self.question.text, self.queries
        whole = asked if asked in queries else queries[0]
        return self.wordings if query == whole else ()

    @property
    def pages_followed(self) -> int:
        """Number of links this run has followed."""
        return sum(len(step.candidates_expanded) for step in self.steps)

    @property
    def seconds_per_page(self) -> float:
        """Mean cost of a page of this run with the search after it; 0 before the first."""
        return sum(step.duration_ms for step in self.steps) / 1000 / max(self.pages_followed, 1)

    @property
    def may_look_through(self) -> bool:
        """True when links of a named page that does not answer may be followed in a fast run."""
        question = self.question
        is_fast = not (question.is_search or self.rounds or question.expansion_budget == 0)
        is_at_end = self.clock.is_over or self.budget.is_spent or self.blocked
        return is_fast and question.as_of is None and not is_at_end

    @property
    def sites_in_scope(self) -> tuple[str, ...] | None:
        """The sites whose stored pages a widened search may read; None for every site."""
        if self.scope.stored_sites is None:
            return None
        # Links may have led to subdomains of an allowed host.
        return tuple(dict.fromkeys((*self.scope.stored_sites, *map(site_of, self.pages))))

    @property
    def names_files(self) -> bool:
        """True when a page is a file: the site of that is every file of this machine."""
        return any(map(is_file, self.pages))

    @property
    def filters(self) -> SearchFilters:
        """The limits of the search as it is now."""
        asked = self.question.filters
        if self.question.is_search:
            return asked
        if not self.is_widened or self.names_files or self.question.as_of is not None:
            return replace(asked, source_urls=tuple(self.pages))
        return replace(asked, sites=asked.sites or self.sites_in_scope, near=self.question.urls)

    def weigh(self, chance: float, followed: Iterable[NextLink]) -> None:
        """Remember how likely everything is answered, and which pages made that no likelier."""
        self.chance = chance
        self.in_vain *= math.prod(1 - link.score for link in followed)
        if chance >= self.surest + GAIN:
            self.surest, self.in_vain = chance, 1.0

    def take(self, outcome: ExpansionOutcome) -> None:
        """Remember what following links brought; after new pages rephrasing is open again."""
        obtained = dict.fromkeys(candidate.url for candidate in outcome.ingested)
        self.pages.update(obtained)
        self.fetched.update((url, outcome.sources.get(url, "")) for url in obtained)
        for url, kind in outcome.failure_kinds.items():
            # What was cut off is asked for once more: a later round may have the time.
            is_again = kind == self.failure_kinds.get(url) == "cut off"
            self.failure_kinds[url] = "without an answer" if is_again else kind
        for url in (*obtained, *outcome.aliases):
            self.failure_kinds.pop(url, None)
        self.aliases.update(outcome.aliases)
        if obtained:
            # What is wanting now, which a model is told, is not what was wanting before.
            self.closed.discard("expand_intent")

    def note_degraded(self, sentence: str | None) -> None:
        """Remember a component that did not work as configured."""
        if sentence:
            self.degraded[sentence] = None

    def warn(self, *sentences: str) -> None:
        """Remember sentences for the user; each once."""
        self.warnings.update(dict.fromkeys(sentences))

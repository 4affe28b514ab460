"""The contract between orchestration and what presents its results. No I/O here."""

from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, Protocol
from uuid import UUID

from pydantic import Field

from webrag.errors import ConfigurationError, how_to_install
from webrag.frozen import FrozenModel, Seconds, Share
from webrag.question import QueryType
from webrag.retrieval.models import (
    CitationSpan,
    CorpusStats,
    RetrievalConfig,
    RetrievalResult,
    RetrievedChunk,
)

if TYPE_CHECKING:
    from pandas import DataFrame

Action = Literal["stop", "expand_breadth", "expand_recall", "expand_intent"]
ConfidenceBand = Literal["high", "medium", "low", "none"]

_SHOWN_PASSAGES = 5


class ProgressCallback(Protocol):
    """Told at each phase what is being done; must return quickly."""

    def __call__(
        self, phase: str, detail: str, iteration: int | None = None, total: int | None = None
    ) -> Awaitable[None]:
        """Report one phase."""


class ScoreProfile(FrozenModel):
    """Thresholds that fit the scale of one scorer; docs/experiments.md says how they were found.

    Attributes:
        mediocre_score_floor: Means below it are mediocre.
        score_cliff_threshold: Gap between rank 1 and rank K that counts as a cliff.
        plateau_variance_threshold: Variance of the top N below which scores form a plateau.
        near_top_delta: Chunks within this distance of the best one count as good.
        confidence_floor: Least mean confidence, where the scorer gives one.
        answered_score: Top score from which the evidence is taken to hold the answer.
        irrelevant_score: Score up to which a passage is off the topic.
    """

    name: str
    mediocre_score_floor: float = 0.5
    score_cliff_threshold: float = 0.15
    plateau_variance_threshold: float = 0.02
    near_top_delta: float = 0.10
    confidence_floor: float = 0.3
    answered_score: float = 0.8
    irrelevant_score: float = 0.05


class QueryAnalysis(FrozenModel):
    """The needs and the kind of a question.

    Attributes:
        sub_queries: One to four; the original alone when it is one question.
        wordings: Other wordings of the question besides the caller's: a model's where the caller
            gave none, without a model what the caller said to know.
    """

    original_query: str
    sub_queries: tuple[str, ...]
    query_type: QueryType
    complexity: Literal["simple", "moderate", "complex"]
    key_concepts: tuple[str, ...]
    method: Literal["llm", "rule_based", "none"]
    wordings: tuple[str, ...] = ()


_TABLE: Final = (
    *("score", "source_url", "title", "section", "text", "char_start", "char_end", "similarity"),
    *("depth", "published_at", "fetched_at", "chunk_id"),
)


class RankedChunk(FrozenModel):
    """A retrieved chunk with its reranked score.

    Attributes:
        chunk: Its `matches` are reordered so that `focus` is the child the scorer liked best.
        reranked_score: In [0, 1] on the scale of the score profile; 0.0 for adjacent context. In
            a result it may be one of another passage's, dealt out in the order of the best units;
            `wording_scores` and `best_wording` stay the passage's own.
        confidence: Given by some rerankers only.
        is_locality_expanded: Neighbour of a strong chunk, not itself matched.
        wording_scores: Scores of the focus under the question and under each other wording of it;
            empty when the caller gave none.
        best_wording: The wording under which the focus scored best; None for the question itself.
    """

    chunk: RetrievedChunk
    reranked_score: float
    confidence: float | None = None
    is_locality_expanded: bool = False
    source_sub_query: str | None = None
    wording_scores: tuple[float, ...] = ()
    best_wording: str | None = None


class SubQueryResult(FrozenModel):
    """One sub-query's retrieval and ranking."""

    sub_query: str
    retrieval: RetrievalResult
    ranked: tuple[RankedChunk, ...]


class EvaluationSignals(FrozenModel):
    """The numbers the evaluator decides on; every field is computed from scores of one scorer."""

    top_score: float
    score_at_k: float
    score_cliff: float
    score_variance: float
    score_mean: float
    chunks_above_threshold: int
    token_fill_ratio: float
    redundancy_ratio: float
    source_document_count: int
    avg_confidence: float | None
    is_plateau: bool
    is_cliff: bool
    is_saturated: bool
    is_mediocre_plateau: bool
    has_high_redundancy: bool


class ExpansionDecision(FrozenModel):
    """The next action and the rule of the table that chose it, by its number from 1.

    The number is 0 for `deadline` and `provider_failed`, which cut a run short.
    """

    action: Action
    reason: str
    confidence: Literal["high", "medium", "low"]
    rule: str
    rule_number: int


class ExpansionStep(FrozenModel):
    """Record of one iteration of the loop, with the signals its action was decided on.

    Attributes:
        candidates_expanded: URLs obtained.
        candidates_failed: URL to reason.
        scores: URL obtained to the score of its link, [0, 1].
        fetch_ms: URL obtained to the milliseconds it took, indexing included.
        parents: URL obtained to the URL it was found on.
        found_in: URL obtained to the map of the site that named it, as in "the site's search
            index"; those that pages link to are absent.
        chunks_by_url: URL obtained to child chunks added.
        new_queries: Other wordings that were searched.
        pages_joined: Stored pages that were searched from this iteration on, without a fetch.
    """

    iteration: int
    depth: int
    source_url: str
    candidates_scored: int = 0
    candidates_expanded: tuple[str, ...] = ()
    candidates_failed: dict[str, str] = Field(default_factory=dict)
    scores: dict[str, float] = Field(default_factory=dict)
    fetch_ms: dict[str, float] = Field(default_factory=dict)
    parents: dict[str, str | None] = Field(default_factory=dict)
    found_in: dict[str, str] = Field(default_factory=dict)
    chunks_by_url: dict[str, int] = Field(default_factory=dict)
    chunks_added: int = 0
    top_score_before: float
    top_score_after: float
    decision: Action
    reason: str
    rule: str
    rule_number: int = 0
    signals: EvaluationSignals | None = None
    new_queries: tuple[str, ...] = ()
    pages_joined: int = 0
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class NextLink:
    """A link that was not followed yet; its canonical URL is not stored.

    Attributes:
        anchor: The link's words; may be empty.
        heading: Nearest heading above it.
        page_url: Page it stands on, or that named the map it was found in; None for a folder above
            a named page.
        score: Probability that its page answers the question, [0, 1].
        found_in: The map of the site that names it, as in "the site's search index"; empty when a
            page links to it.
        depth: Links from a named page, if this link is followed.
    """

    url: str
    anchor: str
    heading: str | None
    page_url: str | None
    score: float
    found_in: str = ""
    depth: int = 1


class AnswerUnit(FrozenModel):
    """Sentences, a row, a list or lines of code of a passage, which may answer the question.

    Offsets are those of the page's markdown. The lead stands above the unit and names its subject,
    such as the term of a definition or the header of a table. Scores order the units of one result.
    """

    chunk_id: UUID
    char_start: int
    char_end: int
    lead: tuple[int, int] | None = None
    score: float

    def overlaps(self, other: "AnswerUnit") -> bool:
        """Tell whether some of the text is in both."""
        is_same = self.chunk_id == other.chunk_id
        return is_same and self.char_start < other.char_end and other.char_start < self.char_end


class PartCoverage(FrozenModel):
    """Coverage of one part of a question, as it was searched.

    Attributes:
        confidence: Probability-like, [0, 1], that what was found answers it.
        chunk_id: The best passage for it; None where there is none.
    """

    text: str
    confidence: float
    confidence_band: ConfidenceBand
    chunk_id: UUID | None = None

    @property
    def is_open(self) -> bool:
        """True unless it is answered for sure."""
        return self.confidence_band != "high"


class OrchestrationTiming(FrozenModel):
    """Milliseconds spent, cumulative over iterations."""

    ingestion_ms: float = 0.0
    query_analysis_ms: float = 0.0
    retrieval_ms: float = 0.0
    reranking_ms: float = 0.0
    expansion_ms: float = 0.0
    locality_ms: float = 0.0
    merge_ms: float = 0.0
    total_ms: float = 0.0


class OrchestrationResult(FrozenModel):
    """Evidence for a question, how it was found and how far to trust it.

    Attributes:
        seed_urls: Canonical URLs the caller named.
        as_of: Moment whose texts were searched; None for those that are stored now.
        chunks: Grouped by source, reading order within; adjacent context in its reading place.
        citations: One full-chunk span per chunk.
        term_idf: Weights of the query terms, for choosing quotations.
        wordings: Other wordings of the question, each with the weights of its terms.
        also_searched: Words of the question that the searched pages lack, and what they have in
            their place.
        absent_words: Words of the question that may name a subject and that no searched page
            has, also in no other spelling.
        units: What answers most likely, best first; of several parts the best of each in turn.
        parts: How far each part is answered; empty where the question is one.
        confidence: Probability-like, [0, 1], that the evidence answers the question; of several
            parts, that of the part that is met worst.
        confidence_band: `none` means that the corpus seems not to hold the answer.
        degraded: Sentences naming each component that did not work as configured.
        warnings: Other sentences for the user.
        description: The words in which the page that is summarised describes itself, at most 400
            characters that stand beside its text: untrusted, and no quotation.
        partial: A deadline cut the run short.
        urls_fetched: Pages obtained from the network in this run, seed included.
        next_links: The best links that were not followed, best first: of a deep run, and of any
            whose confidence is not high.
        page_sources: For each page fetched, the name of the page source it came from.
        rounds_allowed: Rounds of expansion this run might have taken; 0 for a fast one.
        rounds_ceiling: Rounds the configuration allows any run; None when it is not known.
        relevance_floor: Score up to which passages are off the topic, on the scale of the scorer.
        likely_floor: Score, on the same scale, from which a passage may hold the answer: as good
            as the confidence at which the band `low` begins.
    """

    query: str
    seed_urls: tuple[str, ...]
    as_of: datetime | None = None
    chunks: tuple[RankedChunk, ...]
    citations: tuple[CitationSpan, ...]
    query_analysis: QueryAnalysis
    units: tuple[AnswerUnit, ...] = ()
    parts: tuple[PartCoverage, ...] = ()
    expansion_steps: tuple[ExpansionStep, ...] = ()
    corpus_stats: CorpusStats
    timing: OrchestrationTiming
    mode: Literal["full_context", "chunk"]
    final_decision: ExpansionDecision
    final_signals: EvaluationSignals | None = None
    term_idf: dict[str, float] = Field(default_factory=dict)
    wordings: dict[str, dict[str, float]] = Field(default_factory=dict)
    also_searched: dict[str, str] = Field(default_factory=dict)
    absent_words: tuple[str, ...] = ()
    total_iterations: int = 0
    total_urls_ingested: int = 0
    urls_fetched: tuple[str, ...] = ()
    next_links: tuple[NextLink, ...] = ()
    page_sources: dict[str, str] = Field(default_factory=dict)
    expansion_budget: int | None = None
    rounds_allowed: int = 0
    rounds_ceiling: int | None = None
    relevance_floor: float = 0.05
    likely_floor: float = 0.3
    confidence: float
    confidence_band: ConfidenceBand
    degraded: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    description: str = ""
    partial: bool = False

    def to_pandas(self) -> "DataFrame":
        """Give the passages that matched as a table, best first, one row each.

        Columns are `score`, `source_url`, `title`, `section`, `text`, `char_start`, `char_end`,
        `similarity` (cosine, empty where a page was read whole), `depth`, `published_at`,
        `fetched_at` and `chunk_id`.

        Raises:
            ConfigurationError: pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise ConfigurationError(
                "to_pandas() needs the package pandas.", hint=how_to_install("pandas")
            ) from error
        matched = [item for item in self.chunks if not item.is_locality_expanded]
        rows = [
            {
                **dict(item.chunk),
                "score": item.reranked_score,
                "section": " > ".join(item.chunk.heading_path),
                "similarity": item.chunk.raw_similarity,
                "chunk_id": str(item.chunk.chunk_id),
            }
            for item in sorted(matched, key=lambda item: -item.reranked_score)
        ]
        return DataFrame(rows, columns=_TABLE)

    def __repr__(self) -> str:
        return f"<OrchestrationResult {self._summary()}>"

    def __str__(self) -> str:
        """The question, how far to trust the evidence, and where the best of it stands."""
        best = sorted(self.chunks, key=lambda item: item.reranked_score, reverse=True)
        places = [
            f"  {item.reranked_score:.2f}  {item.chunk.source_url}"
            f"  characters {item.chunk.char_start} to {item.chunk.char_end}"
            for item in best[:_SHOWN_PASSAGES]
        ]
        return "\n".join((self._summary(), *places))

    def _summary(self) -> str:
        return (
            f"{self.query!r}: {len(self.chunks)} passages, "
            f"confidence {self.confidence:.2f} ({self.confidence_band})"
        )


class SiteMapConfig(FrozenModel):
    """Limits on reading the maps that sites keep of themselves."""

    enabled: bool = Field(
        default=True,
        description="A site's own search index, index page or sitemap is read to find"
        " pages that no page links to.",
    )
    max_bytes: int = Field(
        default=10_000_000,
        gt=0,
        description="A larger map of a site, as sent or as decompressed, is not read.",
    )
    timeout_s: float = Field(
        default=10.0, gt=0, description="Reading the maps of a site in one round."
    )
    fresh_s: float = Field(
        default=86_400.0, gt=0, description="A map of a site is read again when it is older."
    )


class ExpansionConfig(FrozenModel):
    """Limits on following links."""

    max_depth: int = Field(default=20, ge=0, le=20, description="Rounds of the loop at most.")
    max_candidates_per_iteration: int = Field(
        default=5, ge=1, le=25, description="Pages fetched in one round."
    )
    candidates_to_score_per_iteration: int = Field(
        default=20,
        ge=1,
        description="Best-scored links kept per round, from which the pages to fetch are taken.",
    )
    map_limit: int = Field(
        default=100, ge=1, description="Addresses asked from Firecrawl's map of a site."
    )
    min_candidate_score: float = Field(
        default=0.0, ge=0, le=1, description="Links that score lower are never followed, [0, 1]."
    )
    scope: Literal["same_site", "allow_list", "any"] = Field(
        default="same_site",
        description="Which links may be followed; `allow_list` means the allowed domains.",
    )
    allowed_domains: tuple[str, ...] = Field(
        default=(), description="Hosts that may be followed to, with their subdomains."
    )
    max_pages_per_run: int = Field(
        default=25,
        ge=0,
        le=100,
        description="Pages obtained at most in one run after those you named.",
    )
    max_bytes_per_run: int = Field(
        default=20_000_000,
        ge=1,
        le=10_000_000_000,
        description="Bytes read from the network at most in one run after the pages you named.",
    )
    iteration_timeout_s: Seconds = Field(default=30.0, description="One round of following links.")
    site_map: SiteMapConfig = Field(
        default=SiteMapConfig(), description="Reading the maps of sites."
    )


class OrchestrationConfig(FrozenModel):
    """Numbers that steer the loop."""

    reranker_top_n: int = Field(default=20, ge=1, description="Chunks kept after reranking.")
    context_budget: int = Field(
        default=RetrievalConfig().context_budget, ge=1, description="Tokens of evidence at most."
    )
    children_limit: int = Field(
        default=RetrievalConfig().children_limit,
        ge=1,
        description="Candidates of an ordinary retrieval.",
    )
    similarity_floor: float = Field(
        default=RetrievalConfig().similarity_floor,
        description="Least cosine of what only dense search finds in an ordinary retrieval.",
    )
    token_budget_saturation_ratio: float = Field(
        default=0.8,
        gt=0,
        le=1,
        allow_inf_nan=False,
        description="Share of the context budget that counts as filled.",
    )
    redundancy_ceiling: Share = Field(
        default=0.85,
        description="Similarity of two passages (Jaccard of word 3-shingles) from which one is a"
        " repetition.",
    )
    high_redundancy_ratio: float = Field(
        default=0.5, description="Share of repeated passages that counts as high."
    )
    score_cliff_rank_k: int = Field(default=5, ge=2, description="Rank compared with rank 1.")
    plateau_top_n: int = Field(
        default=10, ge=3, description="Scores that variance and mean are taken over."
    )
    diminishing_return_delta: float = Field(
        default=0.03,
        description="Least relative growth of good passages that is worth another round.",
    )
    locality_enabled: bool = Field(
        default=True, description="Neighbours of strong passages are added."
    )
    locality_radius: int = Field(default=1, ge=0, description="Neighbours added on each side.")
    timeout_s: Seconds = Field(
        default=120.0, description="Whole run; what was found by then is returned."
    )
    soft_deadline_s: float | None = Field(
        default=None,
        description="After it a partial result is assembled; None to work until `timeout_s`.",
    )
    expansion: ExpansionConfig = Field(default=ExpansionConfig(), description="Following links.")

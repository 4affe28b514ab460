"""The contract between retrieval and what is built on it. No I/O here."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal, get_args
from uuid import UUID

from pydantic import Field

from webrag.corpus.models import ParentChunk
from webrag.frozen import FrozenModel, Share
from webrag.ingestion.addresses import place_in_file
from webrag.ingestion.models import Anchor
from webrag.instrumentation import FoundPassage

RetrievalMode = Literal["chunk", "full_context", "auto"]

RETRIEVAL_MODES: tuple[RetrievalMode, ...] = get_args(RetrievalMode)


class RetrievalConfig(FrozenModel):
    """Numbers that steer retrieval; docs/scoring.md explains each."""

    full_context_threshold: int = Field(
        default=30_000,
        ge=0,
        le=10_000_000,
        description="A corpus of at most this many tokens is returned whole in `auto` mode; clamped"
        " to the context budget with a warning.",
    )
    context_budget: int = Field(
        default=40_000, ge=1, le=10_000_000, description="Tokens of parent text returned at most."
    )
    children_limit: int = Field(
        default=80,
        ge=1,
        le=1000,
        description="Candidates taken from each of the dense and lexical searches, and kept after"
        " fusion.",
    )
    similarity_floor: float = Field(
        default=0.3,
        ge=-1,
        le=1,
        description="Least cosine of a candidate that only the dense search found.",
    )
    depth_decay_rate: Share = Field(
        default=0.05,
        description="Share of the score lost per link of distance from a page you named.",
    )
    depth_floor: Share = Field(
        default=0.80, description="Least multiplier that distance can cause."
    )
    hnsw_ef_search: int = Field(
        default=200,
        ge=1,
        le=1000,
        description="Graph entries visited per dense search: recall against time.",
    )
    exact_scan_limit: int = Field(
        default=20_000,
        description="A filter that leaves at most this many chunks is searched exactly.",
    )
    fusion_method: Literal["score", "rrf"] = Field(
        default="score",
        description="How dense and lexical results are merged: by score, or by reciprocal rank.",
    )
    lexical_weight: float = Field(
        default=0.4, description="Share of BM25 in score fusion; the rest is dense."
    )
    page_weight: float = Field(
        default=0.2, description="Added share of the whole page's BM25 in a chunk's fused score."
    )


class WordingScores(FrozenModel):
    """The scores of a child under one wording of the question.

    Attributes:
        similarity: Cosine of the embeddings, [-1, 1].
        lexical: BM25 of the child, >= 0.
        page_lexical: BM25 of the whole page divided by the best page's, [0, 1].
        fused: The score candidates are ordered by; only comparable within one retrieval.
    """

    similarity: float
    lexical: float
    page_lexical: float
    fused: float


class ChildMatch(WordingScores):
    """A child chunk that matched, `markdown[char_start:char_end]`, with its scores.

    `wordings` are those under each other wording, in the order of `RetrievalResult.wordings`.
    """

    node_id: str
    char_start: int
    char_end: int
    text: str
    heading_path: tuple[str, ...] = ()
    wordings: tuple[WordingScores, ...] = ()


class RetrievedChunk(ParentChunk):
    """A parent chunk selected as evidence, with its page.

    It has its best child's fused score, with other wordings the weighted mean, times the depth
    multiplier; 1.0 and no matches where everything was read. Matches come best first. Anchors are
    places of a PDF or file that a URL can point to; a repository's file was read at the `commit`.
    With `as_of` the text is the one of that moment. The description is the page's own, beside its
    text, where nothing can be cited.
    """

    document_id: UUID
    parent_id: UUID | None = None
    source_url: str
    site: str
    title: str | None
    description: str | None = None
    score: float
    raw_similarity: float | None = None
    depth: int
    anchors: tuple[Anchor, ...] = ()
    commit: str | None = None
    version: str | None = None
    library: str | None = None
    with_login: bool = False
    author: str | None = None
    site_name: str | None = None
    published_at: datetime | None = None
    modified_at: datetime | None = None
    fetched_at: datetime
    as_of: datetime | None = None
    matches: tuple[ChildMatch, ...] = ()

    @property
    def focus(self) -> ChildMatch | None:
        """The child that matched best; None in full-context mode."""
        return self.matches[0] if self.matches else None


def passages(chunks: Iterable[RetrievedChunk]) -> Iterator[FoundPassage]:
    """Give chunks as listeners are told of them."""
    for chunk in chunks:
        yield FoundPassage(str(chunk.chunk_id), chunk.text, chunk.source_url, chunk.score)


class CorpusStats(FrozenModel):
    """Pages searched, their parents and tokens, URLs that matched, and the size of their sites."""

    total_documents: int
    total_parent_chunks: int
    total_tokens: int
    documents_matched: tuple[str, ...] = ()
    stored_of_sites: dict[str, int] = Field(default_factory=dict)


class TimingInfo(FrozenModel):
    """Milliseconds spent."""

    embed_ms: float = 0.0
    search_ms: float = 0.0
    total_ms: float = 0.0


class RetrievalResult(FrozenModel):
    """Everything orchestration needs to judge and use one retrieval.

    Chunks are grouped by source, groups by best score, and stand in reading order. Terms, also of
    other wordings, have their inverse document frequency. Words that the searched pages lack are
    absent if they may name a subject, or others were `also_searched` in their place. What the
    question itself found is `truncated` by the child limit or the token budget. Warnings are
    sentences for the user.
    """

    mode: Literal["full_context", "chunk"]
    chunks: tuple[RetrievedChunk, ...]
    term_idf: dict[str, float] = Field(default_factory=dict)
    wordings: dict[str, dict[str, float]] = Field(default_factory=dict)
    also_searched: dict[str, str] = Field(default_factory=dict)
    absent_words: tuple[str, ...] = ()
    truncated: bool = False
    warnings: tuple[str, ...] = ()
    corpus_stats: CorpusStats
    timing: TimingInfo

    @property
    def is_empty(self) -> bool:
        """Nothing was found: the corpus is empty or the query is off topic."""
        return not self.chunks

    @property
    def top_score(self) -> float:
        """Highest chunk score; 0.0 when empty."""
        return max((chunk.score for chunk in self.chunks), default=0.0)

    @property
    def source_urls(self) -> list[str]:
        """URLs that contributed, in order of first appearance."""
        return list(dict.fromkeys(chunk.source_url for chunk in self.chunks))


class CitationSpan(FrozenModel):
    """A verbatim quotation and where it stands.

    Attributes:
        verbatim_text: `document.markdown[char_start:char_end]`, exactly.
        plain_text: The same without markup, as a reader of the page sees it.
        link: Address that opens the page at the passage, by a text fragment or a PDF's page.
        token_start: Of the chunk the quotation was taken from, as `token_end`.
        as_of: The page's text at this moment is quoted; None for the one it has.
    """

    verbatim_text: str
    plain_text: str
    link: str
    source_url: str
    section_heading: str | None
    char_start: int
    char_end: int
    token_start: int
    token_end: int
    title: str | None
    chunk_id: UUID
    as_of: datetime | None = None

    @property
    def place(self) -> str | None:
        """File and line as people write them, `docs/guide.md:42`; None for a page of the web."""
        return place_in_file(self.source_url, self.link)

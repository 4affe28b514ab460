"""Configuration of a brief, and the passages that it prints; no I/O."""

from typing import Literal
from uuid import UUID

from pydantic import Field

from webrag.frozen import FrozenModel
from webrag.retrieval.models import CitationSpan, RetrievalConfig

# What documentation servers that models like answer with is about as long.
DEFAULT_MAX_TOKENS = 4_000

Seen = tuple[UUID, int, int]
"""A passage and the offsets of what a reader has of it."""

Caller = Literal["mcp", "cli"]
"""Who reads: a model through a tool, or a person in a terminal."""


class BriefConfig(FrozenModel):
    """Layout of a brief, whose text never exceeds `token_budget` tokens.

    A caller may ask for as many as `ceiling`; a model, which calls over MCP, is told how to answer.
    Every passage means all in the order of relevance, the first two with their parents; `full` adds
    what the loop decided on; what was `seen` is named only; pages of up to `full_context_threshold`
    tokens are offered to be read whole.
    """

    token_budget: int = Field(default=20_000, ge=0)
    ceiling: int | None = None
    every_passage: bool = False
    full_context_threshold: int = Field(default=RetrievalConfig().full_context_threshold, ge=0)
    detail: Literal["brief", "full"] = "brief"
    caller: Caller = "mcp"
    seen: tuple[Seen, ...] = ()


class Quote(FrozenModel):
    """A quotation of a passage.

    Attributes:
        columns: Header of the table in whose body the quotation stands; None elsewhere.
        lead: What stands above it and names its subject, such as the term of a definition.
        heading: Nearest heading above it in its passage; None where that has none there.
        place: Its place among all units of the result, the best one being 0.
    """

    citation: CitationSpan
    columns: str | None = None
    lead: str | None = None
    heading: str | None = None
    place: int = 0


class EvidenceBlock(FrozenModel):
    """One passage that a brief prints.

    Attributes:
        source_number: Its page's number in [SOURCES], from 1.
        heading: Nearest heading above the passage.
        text: The slice of the page's markdown as it is printed: control characters removed, lines
            that imitate the brief's own structure marked with a prefix.
        char_start: Where the passage begins in the page's markdown.
        char_end: Where it ends.
        rest: Characters of its section that are not in it.
        relevance: Reranked score, [0, 1]; 0.0 for adjacent context.
        confidence: Given by some rerankers only.
        is_adjacent: Neighbour of a strong result, not itself matched.
        is_cut: The end is missing because the budget ran out.
        sub_query: Part of the question that it was found for; None where that is the whole.
        quotes: The first of its units that are likely to answer, the finest first.
        addresses_reader: The passage gives orders to a model that reads it, or claims to speak for
            its system.
        columns: Header of the table in whose body the passage begins; None elsewhere.
    """

    source_number: int
    url: str
    title: str | None
    heading: str | None
    text: str
    char_start: int
    char_end: int
    rest: int = 0
    relevance: float
    confidence: float | None = None
    is_adjacent: bool = False
    is_cut: bool = False
    sub_query: str | None = None
    chunk_id: UUID
    quotes: tuple[Quote, ...] = ()
    addresses_reader: bool = False
    columns: str | None = None

    @property
    def citation(self) -> CitationSpan | None:
        """The finest quotation of the passage; None when it holds nothing quotable."""
        return self.quotes[0].citation if self.quotes else None

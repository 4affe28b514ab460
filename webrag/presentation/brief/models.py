"""What the presentation layer is configured with and what it hands out. No I/O here."""

from typing import Literal
from uuid import UUID

from pydantic import Field

from webrag.frozen import FrozenModel
from webrag.retrieval.models import CitationSpan, RetrievalConfig

# What documentation servers that models like answer with is about as long.
DEFAULT_MAX_TOKENS = 4_000


class BriefConfig(FrozenModel):
    """How a brief is laid out.

    Attributes:
        token_budget: Tokens of the whole text at most; never exceeded.
        ceiling: Tokens the text may have where the caller asks for more; None for the budget.
        whole_results: How many of the best results are printed as whole parent chunks; the
            others are printed as the child that matched best. A second one costs a fifth of a
            brief and displaces as many answers as it holds.
        every_passage: Print also what is below the relevance of the others, as far as it fits.
        include_guide: Print [PRESENTATION GUIDE], which addresses a model, not a person.
        full_context_threshold: Pages of at most this many tokens are offered to be read whole,
            when the budget holds them.
        detail: `full` adds what the loop decided on, and the time of each phase.
        caller: Whose vocabulary [FOLLOW-UP OPTIONS] uses: MCP tools or the command line.
    """

    token_budget: int = Field(default=20_000, ge=0)
    ceiling: int | None = None
    whole_results: int = Field(default=1, ge=0)
    every_passage: bool = False
    include_guide: bool = True
    full_context_threshold: int = Field(default=RetrievalConfig().full_context_threshold, ge=0)
    detail: Literal["brief", "full"] = "brief"
    caller: Literal["mcp", "cli"] = "mcp"


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
    """One passage of [EVIDENCE].

    Attributes:
        source_number: Its page's number in [SOURCES], from 1.
        heading: Nearest heading above the passage.
        text: The passage exactly as printed: the slice of the page's markdown, or the readable
            form of its HTML; control characters removed and forged section headers defused.
        char_start: Where the passage begins in the page's markdown.
        char_end: Where it ends.
        relevance: Reranked score, [0, 1]; 0.0 for adjacent context.
        confidence: Given by some rerankers only.
        is_whole: The whole parent chunk is printed, not only its best child.
        is_adjacent: Neighbour of a strong result, not itself matched.
        is_cut: The end is missing because the budget ran out.
        sub_query: Part of the question that it was found for; None where that is the whole.
        citation: The finest quotation of the passage; None when it holds nothing quotable, or is
            off the topic.
        quotes: Up to three, the finest first.
        addresses_reader: The passage gives orders to a model that reads it, or claims to speak for
            its system.
        columns: Header of the table in whose body the passage begins; None elsewhere.
        quoted_columns: The same for the quotation.
    """

    source_number: int
    url: str
    title: str | None
    heading: str | None
    text: str
    char_start: int
    char_end: int
    relevance: float
    confidence: float | None = None
    is_whole: bool = False
    is_adjacent: bool = False
    is_cut: bool = False
    sub_query: str | None = None
    chunk_id: UUID
    citation: CitationSpan | None = None
    quotes: tuple[Quote, ...] = ()
    addresses_reader: bool = False
    columns: str | None = None
    quoted_columns: str | None = None

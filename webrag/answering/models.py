"""The contract of the answer manager: what it is asked, plans, cites and returns. No I/O here."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from pydantic import Field

from webrag.frozen import FrozenModel, Share
from webrag.question import QueryType
from webrag.retrieval.models import CitationSpan, RetrievedChunk

ManagerState = Literal["execute_plan", "success", "fail"]
YearMode = Literal["explicit", "none"]
PartKind = Literal["prose", "list", "code", "table"]
SynthesisMethod = Literal["llm", "extractive", "none"]
Diagnosis = Literal["empty_corpus", "low_coverage"]
FinalReason = Literal[
    "confidence_high",
    "confidence_medium_caveated",
    "confidence_low_partial",
    "confidence_too_low_clarify",
    "incoherent_query",
    "guardrail_input",
    "guardrail_retrieval",
    "guardrail_output",
]


class ExecutionPlan(FrozenModel):
    """The plan for an answer; every field is always set.

    Attributes:
        revised_query: The question as it is searched for, without greetings and asides.
        coherence_reason: Why the question cannot be answered at all; None when it can.
        sub_queries: The separate needs of the question, at least one.
        wordings: Other wordings of the question: the caller's, else a model's where there is one.
    """

    original_query: str
    revised_query: str
    coherence: Literal["coherent", "incoherent"]
    coherence_reason: str | None = None
    sub_queries: tuple[str, ...]
    query_type: QueryType = "factual"
    wordings: tuple[str, ...] = ()


class RetrieveStep(FrozenModel):
    """The extent and the outcome of the search.

    Attributes:
        year_mode: `explicit` when years were requested, else `none`, which filters nothing.
        recent_year_window: Years that count as recent for the boost.
        documents: Pages that were searched.
        candidates: Distinct chunks that were retrieved.
        passages: Passages kept as evidence.
        excluded_instructions: Blocks left out because they address a model.
        excluded_secrets: Blocks left out because they look like credentials.
        also_searched: Words of the question that no searched page has, and what was searched for
            in their place.
        coverage: Share of the question's weighted terms that the passages hold, [0, 1].
        confidence: Chance that the units found answer the question, [0, 1]; of several parts the
            weakest's.
    """

    year_mode: YearMode
    requested_years: tuple[int, ...] = ()
    recent_year_window: int
    fusion_method: Literal["score", "rrf"] = "score"
    documents: int = 0
    candidates: int = 0
    passages: int = 0
    excluded_instructions: int = 0
    excluded_secrets: int = 0
    also_searched: dict[str, str] = Field(default_factory=dict)
    coverage: float = 0.0
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class UnquotableSpan:
    """Part of a page, by its offsets there, that may not be quoted."""

    start: int
    end: int
    kind: Literal["instruction", "secret"]

    def overlaps(self, start: int, end: int) -> bool:
        """Tell whether a span shares a character with it."""
        return self.start < end and start < self.end


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage an answer may quote, but for its unquotable parts.

    Its number, from 1, names it to a language model; `relevance` is the reranker's score, `order`
    that score normalised and boosted.
    """

    number: int
    chunk: RetrievedChunk
    relevance: float
    order: float
    unquotable: tuple[UnquotableSpan, ...] = ()

    def is_quotable(self, start: int, end: int) -> bool:
        """Tell whether a span of the page lies in the chunk and touches nothing unquotable."""
        inside = self.chunk.char_start <= start < end <= self.chunk.char_end
        return inside and not any(each.overlaps(start, end) for each in self.unquotable)

    def quotable_text(self, start: int, end: int) -> str:
        """A span of the page without what may not be quoted."""
        text, offset, kept = self.chunk.text, self.chunk.char_start, []
        for span in sorted(self.unquotable, key=lambda each: each.start):
            if span.overlaps(start, end):
                kept.append(text[start - offset : max(span.start, start) - offset])
                start = min(span.end, end)
        return "".join([*kept, text[start - offset : end - offset]])

    @property
    def quotable_chunk(self) -> RetrievedChunk:
        """The passage with blank lines in the place of what may not be quoted."""
        text, offset = self.chunk.text, self.chunk.char_start
        for span in self.unquotable:
            first, last = span.start - offset, span.end - offset
            text = text[:first] + "\n" * (last - first) + text[last:]
        return self.chunk.model_copy(update={"text": text}) if self.unquotable else self.chunk


@dataclass(frozen=True, slots=True)
class Proposal:
    """A citation as a writer proposes it: the number of a passage, and words of it."""

    evidence: int
    quote: str


class AnswerCitation(CitationSpan):
    """A quotation with the number, from 1 in order of first use, that it has in the answer."""

    number: int
    document_id: UUID
    author: str | None = None
    site_name: str | None = None
    published_at: datetime | None = None


class AnswerPart(FrozenModel):
    """A sentence of the answer, or a list, code block or table row, with its support.

    In an extractive answer the text is the quotation itself; its citations, by number, are never
    empty in a result.
    """

    text: str
    kind: PartKind = "prose"
    citations: tuple[int, ...]


class CitationTally(FrozenModel):
    """The fate of the citations a writer proposed.

    Attributes:
        kept: Citations of the answer.
        removed: Citations whose words are not where they were said to be.
        unsupported: Sentences dropped because their citations do not say what they say.
    """

    kept: int = 0
    removed: int = 0
    unsupported: int = 0


class Reflection(FrozenModel):
    """The judgement of an answer, with notes on it for the user interface.

    Attributes:
        original_score: How well it answers the question as asked, [0, 1]; by rules the chance that
            what was found does.
        revised_score: How well it answers the question as searched for, [0, 1].
        score: 70 % of the first and 30 % of the second.
    """

    original_score: float = Field(ge=0, le=1)
    revised_score: float = Field(ge=0, le=1)
    score: float = Field(ge=0, le=1)
    applicability_note: str
    uncertainty_note: str
    method: Literal["llm", "rules"]


class AnswerEvent(FrozenModel):
    """Something that happened while an answer was made.

    Attributes:
        kind: `state` a state was entered; `step` a step begins; `progress` what a step is doing,
            such as the page that is fetched; `part` a checked sentence is ready; `notice` something
            to know about the answer.
        detail: Name of the state or step, what is being done, or the sentence with its citation
            numbers.
        round: Of the research, from 1, where `progress` belongs to one.
        citations: The citations that `part` uses for the first time.
    """

    kind: Literal["state", "step", "progress", "part", "notice"]
    detail: str
    round: int | None = None
    part: AnswerPart | None = None
    citations: tuple[AnswerCitation, ...] = ()


EventListener: TypeAlias = Callable[[AnswerEvent], None]
"""Called on the event loop; must return quickly."""


class ManagerResult(FrozenModel):
    """An answer whose every sentence is supported by checked citations, or a polite refusal.

    Attributes:
        states: All states, in order.
        answer: The whole text with citation numbers; it holds no confidence and no reason.
        notice: Caveat, limitation or request for clarification that `answer` holds; "" when none.
        missing: Parts of the question that nothing found answers.
        citations: What the parts cite, by number.
        description: How the page that is summarised describes itself; beside its text, so that no
            citation can show it.
        confidence: [0, 1]; 0 in state `fail`.
        diagnostics: Observations that decide nothing: `empty_corpus`, nothing is stored;
            `low_coverage`, the passages hold few of the question's words.
        plan: None when the input was refused before there was one.
        retrieval: None when nothing was retrieved.
        reflection: None when there was no answer to judge.
        degraded: Sentences naming each component that did not work as configured.
        guardrail: The stage and reason of a guardrail that ended the run.
        as_of: Moment whose texts were searched; None for those that are stored now.
    """

    state: Literal["success", "fail"]
    states: tuple[ManagerState, ...]
    query: str
    answer: str
    notice: str = ""
    missing: tuple[str, ...] = ()
    parts: tuple[AnswerPart, ...] = ()
    citations: tuple[AnswerCitation, ...] = ()
    description: str = ""
    confidence: float = Field(ge=0, le=1)
    final_reason: FinalReason
    applicability_note: str = ""
    uncertainty_note: str = ""
    diagnostics: tuple[Diagnosis, ...] = ()
    plan: ExecutionPlan | None = None
    retrieval: RetrieveStep | None = None
    reflection: Reflection | None = None
    citation_tally: CitationTally = CitationTally()
    synthesis: SynthesisMethod = "none"
    degraded: tuple[str, ...] = ()
    guardrail: tuple[str, str] | None = None
    as_of: datetime | None = None
    total_ms: float = 0.0


class AnswerConfig(FrozenModel):
    """Numbers that steer the answer manager; docs/scoring.md explains each."""

    rerank_recency_boost: Share = Field(
        default=0.05,
        description="Added to the normalised score of a page published today; less for older ones.",
    )
    recent_year_window: int = Field(
        default=3, ge=1, le=100, description="Years over which that boost falls to nothing."
    )
    reflection_temperature: float = Field(
        default=0.0,
        ge=0,
        le=2,
        allow_inf_nan=False,
        description="Temperature of the model that judges an answer.",
    )
    evidence_passages: int = Field(
        default=8, ge=1, description="Passages that an answer is made from."
    )
    max_sentences: int = Field(
        default=4, ge=1, description="Sentences, lists or code blocks of an extractive answer."
    )
    synthesis_timeout_s: float = Field(
        default=40.0,
        gt=0,
        description="Whole time that a model has for an answer, its second try included.",
    )
    reflection_timeout_s: float = Field(
        default=15.0,
        gt=0,
        description="Whole time that it has for judging one, its second try included.",
    )

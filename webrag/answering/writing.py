"""Writes answers: by quoting the best sentences, or by a language model whose citations hold."""

import logging
import re
import secrets
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol
from uuid import UUID

from webrag.answering.citation_desk import CitationDesk
from webrag.answering.evidence import Gathered, is_missing
from webrag.answering.language_model import SentenceReader, attempt, stream, synthesis_messages
from webrag.answering.models import (
    AnswerConfig,
    Evidence,
    ExecutionPlan,
    PartKind,
    SynthesisMethod,
)
from webrag.answering.support import terms_of
from webrag.concurrency import in_background
from webrag.orchestration.confidence import LOW
from webrag.orchestration.judge import Judgement
from webrag.orchestration.models import AnswerUnit
from webrag.retrieval.markup import Block, read_blocks
from webrag.retrieval.units import cut_units

if TYPE_CHECKING:
    from llama_index.core.llms import LLM


_CLOSEST: Final = 3
_WORDS: Final = 160
_NEAR: Final = 2.0  # below the best score; what scores less hardly ever adds to it
_REPEATED: Final = 0.8  # Jaccard of terms from which a unit says the same again
_LIST_CHARS: Final = 400  # of a list that is shown whole
_MAX_GAP: Final = 8  # characters of markup between a name and what is said of it

_MARKER: Final = re.compile(r"(?:^|\n)[ \t>]*((?:[-*+]|\d{1,9}[.)])[ \t]+)$")
_MARKER_CHARS: Final = 60
_BY: Final = r"(?:(?:written|posted|published|updated)\s+)?(?:by|von|par|por)\s[^.!?\n]{1,80}"
_FRAGMENT: Final = re.compile(rf"[^\n]*[:\uff1a]|{_BY}", re.IGNORECASE)
_AUTHOR: Final = re.compile(_BY, re.IGNORECASE)
_BYLINE: Final = re.compile(rf"{_BY}\n\s*\n\s*", re.IGNORECASE)
# What may stand between two quotations of one paragraph, list, listing or table.
_BETWEEN: Final[Mapping[PartKind, re.Pattern[str]]] = {
    "prose": re.compile(r"(?<![ \t])(?! {2,}+\n)[ \t]*+\n?[ \t]*+"),
    "list": re.compile(r"[\s>]*"),
    "code": re.compile(r"(?<![ \t])[ \t]*+\n[ \t]*+"),
    "table": re.compile(r"(?<![ \t|])[ \t|]*+\n[ \t|>]*+"),
}
_KINDS: Final[Mapping[str, PartKind]] = {"code": "code", "row": "table"}


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A quotation as a part of an answer: `markdown[start:end]` of its page."""

    evidence: Evidence
    start: int
    end: int
    kind: PartKind

    @property
    def text(self) -> str:
        """The quotation."""
        return _slice(self.evidence, self.start, self.end)


def choose_excerpts(gathered: Gathered, *, max_excerpts: int = 4) -> list[Excerpt]:
    """Choose the units that answer best, in reading order within a page, the best page first.

    Each comes below the name, sentence or header row that it stands under. A question of several
    parts gets the best unit of each, one that nothing clearly answers three at most.
    """
    is_found = gathered.step.confidence >= LOW
    pages: dict[str, list[_Quoted]] = {}
    for each in _chosen(gathered, max_excerpts if is_found else min(max_excerpts, _CLOSEST)):
        pages.setdefault(each.evidence.chunk.source_url, []).append(each)
    return [excerpt for quoted in pages.values() for excerpt in _printed(quoted)]


@dataclass(frozen=True)
class _Quoted:
    """A unit of a passage that may be quoted."""

    evidence: Evidence
    unit: AnswerUnit

    @cached_property
    def lead(self) -> tuple[int, int] | None:
        """The place of what stands above it and names its subject."""
        lead = self.unit.lead
        if lead is None or not self.evidence.is_quotable(*lead):
            return None
        return None if _AUTHOR.fullmatch(_slice(self.evidence, *lead)) else lead

    @cached_property
    def start(self) -> int:
        """The place where it begins with its lead, if it has one."""
        return min(self.unit.char_start, *(self.lead or (self.unit.char_start,)))

    @cached_property
    def told(self) -> str:
        """The unit below its lead."""
        above = _slice(self.evidence, *self.lead) + "\n" if self.lead else ""
        return above + _slice(self.evidence, self.unit.char_start, self.unit.char_end)

    def repeats(self, other: "_Quoted") -> bool:
        """Tell whether it stands in the same place as another one, or says the same again."""
        mine, theirs = terms_of(self.told), terms_of(other.told)
        is_same_page = self.evidence.chunk.source_url == other.evidence.chunk.source_url
        overlaps = (
            self.unit.char_start < other.unit.char_end
            and other.unit.char_start < self.unit.char_end
        )
        is_alike = len(mine & theirs) >= _REPEATED * len(mine | theirs)
        return (is_same_page and overlaps) or (is_alike and bool(mine))


def _chosen(gathered: Gathered, most: int) -> list[_Quoted]:
    """The best unit of each part of several, then those worth showing beside the best."""
    known = {each.chunk.chunk_id: each for each in gathered.evidence}
    judged = [each for _, each in gathered.judged]
    whole, *parts = [list(_quotable(each, known)) for each in judged] or [[]]
    near = [each for each in whole if each.unit.score >= whole[0].unit.score - _NEAR]
    answered = zip(parts, judged[1:], strict=True)
    first = [found[0] for found, part in answered if found and not is_missing(part)]
    chosen: list[_Quoted] = []
    left = _WORDS
    for place, each in enumerate([*first, *near]):
        words = len(each.told.split())
        is_extra = place >= len(first) and (len(chosen) >= most or (chosen and words > left))
        if not is_extra and not any(map(each.repeats, chosen)):
            chosen.append(each)
            left -= words
    return chosen


def _quotable(part: Judgement, known: Mapping[UUID, Evidence]) -> Iterator[_Quoted]:
    for unit in part.units:
        evidence = known.get(unit.chunk_id)
        if evidence is None or not evidence.is_quotable(unit.char_start, unit.char_end):
            continue
        said = _slice(evidence, unit.char_start, unit.char_end)
        if byline := _BYLINE.match(said):
            unit = unit.model_copy(update={"char_start": unit.char_start + byline.end()})
        is_code = _excerpt(evidence, unit.char_start, unit.char_end).kind == "code"
        if is_code or not _FRAGMENT.fullmatch(said.strip("*_`# \n")):
            yield _Quoted(evidence, _whole_list(evidence, unit))


def _whole_list(evidence: Evidence, unit: AnswerUnit) -> AnswerUnit:
    """All of a short list in the place of some of its items, where a sentence introduces it."""
    if unit.lead is None:
        return unit
    offset, cut = evidence.chunk.char_start, cut_units(evidence.chunk.text)
    lead = unit.lead[0] - offset
    items = [
        each
        for each in cut.units
        if each.kind in ("item", "list")
        and each.lead is not None
        and cut.pieces[each.lead].start == lead
    ]
    start = offset + min((each.start for each in items), default=0)
    end = offset + max((each.end for each in items), default=0)
    is_inside = start <= unit.char_start and unit.char_end <= end <= start + _LIST_CHARS
    if not (is_inside and evidence.is_quotable(start, end)):
        return unit
    return unit.model_copy(update={"char_start": start, "char_end": end})


def _printed(quoted: Sequence[_Quoted]) -> list[Excerpt]:
    """Units of one page in reading order, each lead once; what goes on is joined."""
    found: list[Excerpt] = []
    for each in sorted(quoted, key=lambda each: each.unit.char_start):
        for excerpt in _with_lead(each):
            joined = _joined(found[-1], excerpt) if found else None
            if joined is not None:
                found[-1] = joined
            elif not any(e.start < excerpt.end and excerpt.start < e.end for e in found):
                found.append(excerpt)
    return found


def _with_lead(quoted: _Quoted) -> Iterator[Excerpt]:
    """A unit below what leads to it; a term and its definition are one quotation."""
    evidence, unit = quoted.evidence, quoted.unit
    excerpt = _excerpt(evidence, unit.char_start, unit.char_end)
    if quoted.lead is None:
        yield excerpt
        return
    gap = _slice(evidence, quoted.lead[1], unit.char_start)
    is_beside = len(gap) <= _MAX_GAP and not any(map(str.isalnum, gap))
    if excerpt.kind == "prose" and is_beside and evidence.is_quotable(quoted.start, unit.char_end):
        yield _excerpt(evidence, quoted.start, unit.char_end)
        return
    yield _excerpt(evidence, *quoted.lead)
    yield excerpt


def _joined(one: Excerpt, other: Excerpt) -> Excerpt | None:
    """Both as one quotation where they stand beside each other and belong together."""
    if one.evidence is not other.evidence or one.kind != other.kind or other.start < one.end:
        return None
    gap = _slice(one.evidence, one.end, other.start)
    fits = _BETWEEN[one.kind].fullmatch(gap) and one.evidence.is_quotable(one.start, other.end)
    return replace(one, end=other.end) if fits else None


def _excerpt(evidence: Evidence, start: int, end: int) -> Excerpt:
    """A span with its kind, and with the marker before it where it begins an item of a list."""
    text, offset = evidence.chunk.text, evidence.chunk.char_start
    blocks: Sequence[Block] = read_blocks(text)
    place = bisect_right(blocks, start - offset, key=lambda block: block.start) - 1
    block = blocks[max(0, place)] if blocks else None
    kind = _KINDS.get(block.kind, "prose") if block else "prose"
    first = start - offset
    marker = _MARKER.search(text[max(0, first - _MARKER_CHARS) : first])
    if kind == "prose" and marker and block and block.start == first:
        return Excerpt(evidence, start - len(marker[1]), end, "list")
    return Excerpt(evidence, start, end, kind)


def _slice(evidence: Evidence, start: int, end: int) -> str:
    offset = evidence.chunk.char_start
    return evidence.chunk.text[start - offset : end - offset]


_log = logging.getLogger(__name__)

_LLM_SENTENCES = 8


@dataclass(frozen=True, slots=True)
class Draft:
    """The way an answer was written, with a note of what failed."""

    method: SynthesisMethod
    gave_up: bool = False
    degraded: str | None = None


class Synthesizer(Protocol):
    """Writes an answer by handing its sentences to a citation desk."""

    async def write(self, plan: ExecutionPlan, gathered: Gathered, desk: CitationDesk) -> Draft:
        """Hand in the sentences of an answer, in order; the desk takes those that hold."""


@dataclass(frozen=True, slots=True)
class ExtractiveSynthesizer:
    """Answers with the best sentences of the best passages; it needs no model and no network."""

    config: AnswerConfig

    async def write(self, plan: ExecutionPlan, gathered: Gathered, desk: CitationDesk) -> Draft:
        """Hand in the excerpts, those of the best passage first; only the closest if none fits."""
        del plan
        most = self.config.max_sentences
        for excerpt in await in_background(choose_excerpts, gathered, max_excerpts=most):
            desk.add_excerpt(excerpt.evidence, excerpt.start, excerpt.end, kind=excerpt.kind)
        return Draft("extractive")


@dataclass(frozen=True, slots=True)
class LanguageModelSynthesizer:
    """Has a model write prose whose every sentence is checked as it arrives.

    A reply that cannot be used is asked for once more; when that fails too, or time runs out before
    one sentence held, the fallback answers. Sentences that held before a failure stay.
    """

    llm: "LLM"
    fallback: Synthesizer
    config: AnswerConfig

    async def write(self, plan: ExecutionPlan, gathered: Gathered, desk: CitationDesk) -> Draft:
        """Hand in the model's sentences, or the fallback's."""
        if not gathered.evidence:
            return Draft("none")
        work = self._two_tries(plan, gathered, desk)
        written, late = await attempt(work, self.config.synthesis_timeout_s)
        problem, gave_up = written or (late, False)
        if desk.parts:
            cut = f"The answer may be cut short: {problem}." if problem else None
            return Draft("llm", gave_up=gave_up, degraded=cut)
        draft = await self.fallback.write(plan, gathered, desk)
        if gave_up:
            return replace(draft, gave_up=True)
        note = f"The answer is made of quotations: {problem or 'the language model wrote none'}."
        _log.warning("%s", note)
        return replace(draft, degraded=note)

    async def _two_tries(
        self, plan: ExecutionPlan, gathered: Gathered, desk: CitationDesk
    ) -> tuple[str | None, bool]:
        problem: str | None = None
        for _ in range(2):
            reader = SentenceReader()
            handed_in = await self._once(plan, gathered, desk, reader, problem)
            if desk.parts or reader.gave_up:
                return None, reader.gave_up and not desk.parts
            problem = (
                "no sentence of the language model was supported by the passages it cited"
                if handed_in
                else "the language model did not reply in the form it was asked for"
            )
        return problem, False

    async def _once(
        self,
        plan: ExecutionPlan,
        gathered: Gathered,
        desk: CitationDesk,
        reader: SentenceReader,
        problem: str | None,
    ) -> int:
        messages = synthesis_messages(
            plan,
            gathered.evidence[: self.config.evidence_passages],
            nonce=secrets.token_hex(8),
            max_sentences=_LLM_SENTENCES,
            problem=problem,
        )
        handed_in = 0
        async for piece in stream(self.llm, messages):
            for sentence in reader.feed(piece):
                handed_in += 1
                if handed_in <= _LLM_SENTENCES:
                    desk.add_sentence(sentence.text, sentence.proposals)
        return handed_in

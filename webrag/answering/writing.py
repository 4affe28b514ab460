"""Writes answers: by quoting the best sentences, or by a language model whose citations hold."""

import asyncio
import logging
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Protocol

from webrag.answering.citations import CitationDesk
from webrag.answering.evidence import Evidence, Gathered
from webrag.answering.language_model import SentenceReader, as_clause, stream
from webrag.answering.models import AnswerConfig, ExecutionPlan, PartKind, SynthesisMethod
from webrag.answering.planning import wants_steps
from webrag.answering.prompts import synthesis_messages
from webrag.answering.units import Similarity, Unit, read_units
from webrag.concurrency import in_background
from webrag.errors import ProviderError
from webrag.lexical.analysis import analyze

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

__all__ = [
    "Draft",
    "Excerpt",
    "ExtractiveSynthesizer",
    "LanguageModelSynthesizer",
    "Synthesizer",
    "choose_excerpts",
]
_WORDS: Final = 120

_MORE_WORDS: Final = 180  # steps and code take more room than a fact

_LEAST_SHARE: Final = 0.6  # of the best value; what is far below it only fills the room

_ANNOUNCEMENT_WORDS: Final = 8

_ASIDE_WORDS: Final = 3

_ASIDE_CHARS: Final = 60

_ASIDE_COVERAGE: Final = 0.3

_REPEATED: Final = 0.8  # Jaccard of terms from which a sentence says the same again

_MAX_BLOCK_CHARS: Final = 900  # of code or a list that is shown whole

_MARKER: Final = re.compile(r"(?:^|\n)[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+$")

_REFERENCE: Final = re.compile(r"[a-z]|(?:This|These|That|Those|It|Here|The\s+above)\b")

_ITEM_LINE: Final = re.compile(r"\n[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Neighbouring units of one page as one part of an answer.

    Attributes:
        text: `markdown[start:end]` of the page.
    """

    evidence: Evidence
    start: int
    end: int
    kind: PartKind
    text: str


def choose_excerpts(
    query: str,
    gathered: Gathered,
    *,
    similarity: Similarity | None,
    wants_steps: bool = False,
    max_excerpts: int = 4,
) -> list[Excerpt]:
    """The sentences that answer a question best, those of the best passage first.

    Sentences of one passage keep their order and are joined when they are neighbours; one that
    announces a list or code is followed by it. Nothing unquotable is chosen, nothing twice.

    Args:
        query: The question.
        gathered: Ranked passages.
        similarity: Compares meanings; None to go by words alone.
        wants_steps: Whether the answer is likely a procedure.
        max_excerpts: Excerpts at most; those that follow each other without a gap count once.
    """
    units = read_units(query, gathered, similarity=similarity, wants_steps=wants_steps)
    chosen = _within_budget(units, _MORE_WORDS if wants_steps else _WORDS)
    chosen = _completed(chosen, units)
    groups = list(_groups(sorted(chosen, key=lambda unit: (unit.evidence.number, unit.start))))
    runs = sorted(_runs(groups), key=lambda run: -max(map(_worth, run)))
    best = [group for run in runs[:max_excerpts] for group in run]
    # Passage by passage, the one with the best sentence first; in page order within a passage.
    leading: dict[int, float] = {}
    for group in best:
        number = group[0].evidence.number
        leading[number] = max(leading.get(number, 0.0), _worth(group))
    best.sort(key=lambda group: (-leading[group[0].evidence.number], group[0].start))
    return [_excerpt(group) for group in best]


def _within_budget(units: Sequence[Unit], words: int) -> list[Unit]:
    chosen: list[Unit] = []
    left = words
    ordered = sorted(units, key=lambda each: -each.value)
    for unit in ordered:
        size = len(unit.text.split())
        if chosen and unit.value < _LEAST_SHARE * ordered[0].value:
            break
        if (chosen and size > left) or _is_aside(unit) or _says_again(unit, chosen):
            continue
        chosen.append(unit)
        left -= size
        if left <= 0:
            break
    return chosen


def _is_aside(unit: Unit) -> bool:
    """Whether it is a remark such as "See below." that does not name what was asked about."""
    is_short = len(unit.text.split()) <= _ASIDE_WORDS and len(unit.text) <= _ASIDE_CHARS
    return unit.kind == "prose" and is_short and unit.coverage < _ASIDE_COVERAGE


def _says_again(unit: Unit, chosen: Sequence[Unit]) -> bool:
    terms = set(analyze(unit.text))
    for other in chosen:
        known = set(analyze(other.text))
        if terms and len(terms & known) >= _REPEATED * len(terms | known):
            return True
    return False


def _completed(chosen: Sequence[Unit], units: Sequence[Unit]) -> list[Unit]:
    """With what an announcing sentence announces, and the sentence that announces chosen code."""
    kept = {(unit.start, unit.evidence.number): unit for unit in chosen}

    def bring(unit: Unit, by: Unit) -> None:
        # Worth as much as what brings it, lest it is left out where places are few.
        worth = replace(unit, value=max(unit.value, by.value))
        kept.setdefault((unit.start, unit.evidence.number), worth)

    for left, right in pairwise(units):
        if not _follows(left, right):
            continue
        announced = _announces(left)
        if announced and right in chosen and right.kind == "code":
            bring(left, right)
        if announced and left in chosen:
            for unit in _announced(units, right):
                bring(unit, left)
        # The sentence goes on below the code, or speaks of it.
        if left.kind == "code" and right in chosen and _REFERENCE.match(right.text):
            bring(left, right)
    places = {(unit.evidence.number, unit.place) for unit in kept.values()}
    return [unit for unit in kept.values() if not _dangles(unit, places)]


def _dangles(unit: Unit, places: set[tuple[int, int]]) -> bool:
    """Whether a unit announces what is not shown and says nothing else."""
    is_alone = (unit.evidence.number, unit.place + 1) not in places
    return _announces(unit) and is_alone and len(unit.text.split()) <= _ANNOUNCEMENT_WORDS


def _announces(unit: Unit) -> bool:
    return unit.kind == "prose" and unit.text.rstrip("*_` ").endswith(":")


def _announced(units: Sequence[Unit], first: Unit) -> Iterator[Unit]:
    """The code block, or the list items, that stand where `first` does."""
    if first.kind == "code":
        yield first
        return
    at = units.index(first)
    previous: Unit | None = None
    for unit in units[at:]:
        if unit.evidence is not first.evidence or unit.end - first.start > _MAX_BLOCK_CHARS:
            return
        if unit.kind != "prose" or (previous is None and not _is_item(unit)):
            return
        if previous is not None and not (_is_item(unit) or _joins(previous, unit)):
            return
        yield unit
        previous = unit


def _is_item(unit: Unit) -> bool:
    return bool(_MARKER.search(_before(unit)))


def _before(unit: Unit) -> str:
    chunk = unit.evidence.chunk
    return chunk.text[max(0, unit.start - chunk.char_start - 60) : unit.start - chunk.char_start]


def _joins(left: Unit, right: Unit) -> bool:
    """Whether nothing but white space within one paragraph separates two sentences."""
    return not _gap(left, right).strip() and _gap(left, right).count("\n") < 2


def _gap(left: Unit, right: Unit) -> str:
    offset = left.evidence.chunk.char_start
    return left.evidence.chunk.text[left.end - offset : right.start - offset]


def _groups(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    group: list[Unit] = []
    for unit in units:
        if group and not _belongs(group[-1], unit):
            yield group
            group = []
        group.append(unit)
    if group:
        yield group


def _runs(groups: Sequence[list[Unit]]) -> Iterator[list[list[Unit]]]:
    """Groups that follow each other without a gap, such as a sentence and its code."""
    run: list[list[Unit]] = []
    for group in groups:
        if run and not _follows(run[-1][-1], group[0]):
            yield run
            run = []
        run.append(group)
    if run:
        yield run


def _follows(left: Unit, right: Unit) -> bool:
    return left.evidence is right.evidence and right.place == left.place + 1


def _worth(group: Sequence[Unit]) -> float:
    return max(unit.value for unit in group)


def _belongs(left: Unit, right: Unit) -> bool:
    if not _follows(left, right):
        return False
    if left.kind != right.kind:
        return False
    if right.kind == "row":
        return True
    both_items = _is_item(right) and (_is_item(left) or _gap(left, right).count("\n") < 2)
    return right.kind == "prose" and (_joins(left, right) or both_items)


def _excerpt(group: Sequence[Unit]) -> Excerpt:
    first, last = group[0], group[-1]
    start, end = first.start, last.end
    offset = first.evidence.chunk.char_start
    text = first.evidence.chunk.text
    kind: PartKind = {"code": "code", "row": "table"}.get(first.kind, "prose")  # type: ignore[assignment]
    if kind == "prose" and _ITEM_LINE.search(text[start - offset : end - offset]):
        kind = "list"
        marker = _MARKER.search(_before(first))
        if marker:
            start -= len(marker[0].lstrip())
    return Excerpt(first.evidence, start, end, kind, text[start - offset : end - offset])


_log = logging.getLogger(__name__)

_LLM_SENTENCES = 8


@dataclass(frozen=True, slots=True)
class Draft:
    """How an answer was written; its sentences are at the citation desk.

    Attributes:
        method: Who wrote it.
        gave_up: The writer said that the passages do not answer the question.
        degraded: What did not work, a sentence; None when everything did.
    """

    method: SynthesisMethod
    gave_up: bool = False
    degraded: str | None = None


class Synthesizer(Protocol):
    """Writes an answer by handing its sentences to a citation desk."""

    async def write(self, plan: ExecutionPlan, gathered: Gathered, desk: CitationDesk) -> Draft:
        """Hand in the sentences of an answer, in order; the desk takes those that hold."""


class ExtractiveSynthesizer:
    """Answers with the best sentences of the best passages; it needs no model and no network.

    Args:
        config: Number of sentences.
        similarity: Cosine of a question and a text; None to go by words alone.
    """

    def __init__(self, config: AnswerConfig, similarity: Similarity | None = None) -> None:
        self._config = config
        self._similarity = similarity

    async def write(self, plan: ExecutionPlan, gathered: Gathered, desk: CitationDesk) -> Draft:
        """Hand in the excerpts, those of the best passage first."""
        excerpts = await in_background(
            choose_excerpts,
            plan.revised_query,
            gathered,
            similarity=self._similarity,
            wants_steps=wants_steps(plan),
            max_excerpts=self._config.max_sentences,
        )
        for excerpt in excerpts:
            desk.add_excerpt(excerpt.evidence, excerpt.start, excerpt.end, kind=excerpt.kind)
        return Draft("extractive")


class LanguageModelSynthesizer:
    """Has a model write prose whose every sentence is checked as it arrives.

    A reply that cannot be used is asked for once more; when that fails too, or time runs out
    before one sentence held, the fallback answers. Sentences that held before a failure stay.

    Args:
        llm: Any.
        fallback: Writes when the model does not.
        config: Time and number of sentences.
    """

    def __init__(self, llm: "LLM", fallback: Synthesizer, config: AnswerConfig) -> None:
        self._llm = llm
        self._fallback = fallback
        self._config = config

    async def write(self, plan: ExecutionPlan, gathered: Gathered, desk: CitationDesk) -> Draft:
        """Hand in the model's sentences, or the fallback's."""
        if not gathered.evidence:
            return Draft("none")
        try:
            async with asyncio.timeout(self._config.synthesis_timeout_s):
                problem, gave_up = await self._two_tries(plan, gathered, desk)
        except TimeoutError:
            limit = self._config.synthesis_timeout_s
            problem, gave_up = f"the language model did not finish within {limit:g} s", False
        except ProviderError as error:
            problem, gave_up = as_clause(error), False
        if desk.parts:
            cut = f"The answer may be cut short: {problem}." if problem else None
            return Draft("llm", gave_up=gave_up, degraded=cut)
        written = await self._fallback.write(plan, gathered, desk)
        if gave_up:
            return Draft(written.method, gave_up=True)
        note = f"The answer is made of quotations: {problem or 'the language model wrote none'}."
        _log.warning("%s", note)
        return Draft(written.method, degraded=note)

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
            gathered.evidence,
            nonce=secrets.token_hex(8),
            max_sentences=_LLM_SENTENCES,
            problem=problem,
        )
        handed_in = 0
        async for piece in stream(self._llm, messages):
            for sentence in reader.feed(piece):
                handed_in += 1
                if handed_in <= _LLM_SENTENCES:
                    desk.add_sentence(sentence.text, sentence.proposals)
        return handed_in

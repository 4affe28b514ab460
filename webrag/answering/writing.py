"""Writes answers: by quoting the best sentences, or by a language model whose citations hold."""

import asyncio
import logging
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from webrag.answering.citation_desk import CitationDesk
from webrag.answering.evidence import Gathered
from webrag.answering.extraction import choose_excerpts
from webrag.answering.language_model import SentenceReader, as_clause, stream
from webrag.answering.models import AnswerConfig, ExecutionPlan, SynthesisMethod
from webrag.answering.prompts import synthesis_messages
from webrag.concurrency import in_background
from webrag.errors import ProviderError

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

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
    """

    def __init__(self, config: AnswerConfig) -> None:
        self._config = config

    async def write(self, plan: ExecutionPlan, gathered: Gathered, desk: CitationDesk) -> Draft:
        """Hand in the excerpts, those of the best passage first; only the closest if none fits."""
        del plan
        most = self._config.max_sentences
        for excerpt in await in_background(choose_excerpts, gathered, max_excerpts=most):
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
            return replace(written, gave_up=True)
        note = f"The answer is made of quotations: {problem or 'the language model wrote none'}."
        _log.warning("%s", note)
        return replace(written, degraded=note)

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
            gathered.evidence[: self._config.evidence_passages],
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

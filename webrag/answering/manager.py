"""The answer manager: one deterministic pass from a question to an answer with checked citations.

Plan, retrieve, rerank, synthesise, reflect; no step is repeated, and the confidence alone decides
how a coherent question ends.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, runtime_checkable

from webrag.answering.bands import answer_confidence, band_of, diagnoses, without_answer
from webrag.answering.citations import CitationDesk
from webrag.answering.conflicts import find_conflicts
from webrag.answering.evidence import EvidenceFinder, Gathered
from webrag.answering.guardrails import DEFAULT_GUARDRAILS, Checked, Guardrail, check_stage
from webrag.answering.models import (
    AnswerCitation,
    AnswerEvent,
    AnswerPart,
    AnswerRequest,
    Conflict,
    EventListener,
    ExecutionPlan,
    ManagerResult,
    Reflection,
    RetrieveStep,
)
from webrag.answering.outcome import answer_text
from webrag.answering.planner import Planner
from webrag.answering.reflection import Reflector
from webrag.answering.run import Run, incoherent_result, stopped_result
from webrag.answering.synthesizer import Draft, Synthesizer
from webrag.answering.tracing import Tracer
from webrag.answering.units import Similarity, read_units
from webrag.background import in_background
from webrag.concurrency import all_of
from webrag.errors import GuardrailsViolationError
from webrag.indexing.models import CorpusStatus

__all__ = ["Manager", "PageCounter", "PageReader", "PageScope"]

_log = logging.getLogger(__name__)


class PageReader(Protocol):
    """Where stored pages are read; `webrag.indexing.corpus.Corpus` is one.

    A reader that can count them, too, is a `PageCounter`.
    """

    async def markdown(self, url: str) -> str | None:
        """Stored text of a page; None when it is not stored."""


@runtime_checkable
class PageCounter(Protocol):
    """Where stored pages are counted, to tell an empty corpus from filters that leave nothing."""

    async def status(self, *, include_urls: bool) -> CorpusStatus:
        """How much is stored."""


PageScope = Callable[[AnswerRequest], Awaitable[tuple[Sequence[str] | None, tuple[str, ...]]]]
"""Gets the pages of a request and tells which to search, None for all, and what did not work."""


class Manager:
    """Answers questions; holds no state of a run, so it may be used from several tasks at once.

    Args:
        planner: Plans, and recognises what cannot be answered.
        scope: Gets the pages a request names.
        finder: Retrieves and reranks.
        synthesizer: Writes.
        reflector: Judges.
        pages: Stored text that citations are checked against.
        similarity: Cosine of two texts; None to compare words alone.
        guardrails: Checks; more can be added to the default ones.
        tracer: Spans of the steps.
    """

    def __init__(
        self,
        *,
        planner: Planner,
        scope: PageScope,
        finder: EvidenceFinder,
        synthesizer: Synthesizer,
        reflector: Reflector,
        pages: PageReader,
        similarity: Similarity | None = None,
        guardrails: Sequence[Guardrail] = DEFAULT_GUARDRAILS,
        tracer: Tracer | None = None,
    ) -> None:
        self._planner = planner
        self._scope = scope
        self._finder = finder
        self._synthesizer = synthesizer
        self._reflector = reflector
        self._pages = pages
        self._similarity = similarity
        self._guardrails = tuple(guardrails)
        self._tracer = tracer or Tracer()

    async def run(
        self, request: AnswerRequest, *, on_event: EventListener | None = None
    ) -> ManagerResult:
        """Answer a question.

        Args:
            request: The question and where to look.
            on_event: Told of states, steps and each checked sentence as soon as it is known.

        Returns:
            State `success` for coherent questions, however sure the answer is; `fail` with a
            polite reply for incoherent ones and where a guardrail objects.

        Raises:
            FetchError: No page that was named could be obtained.
            ProviderError: The question could not be embedded.
            StorageError: The database failed.
        """
        run = Run(request, on_event)
        inputs = {"query": request.query, "urls": list(request.urls)}
        return await self._tracer.step("answer", lambda: self._guarded(run), inputs)

    async def _guarded(self, run: Run) -> ManagerResult:
        run.enter("execute_plan")
        try:
            return await self._execute(run)
        except GuardrailsViolationError as error:
            _log.warning("%s", error)
            return stopped_result(run, error)

    async def _execute(self, run: Run) -> ManagerResult:
        request = run.request
        check_stage("input", Checked(request.query), self._guardrails)
        run.step("plan")
        plan, problem = await self._tracer.step(
            "plan", lambda: self._planner.plan(request.query, request.requested_years)
        )
        run.plan = plan
        run.note(problem)
        if plan.coherence == "incoherent":
            return incoherent_result(run)
        gathered = await self._tracer.step(
            "retrieve", lambda: self._gather(run, plan), {"query": plan.revised_query}
        )
        desk = await self._desk(run, gathered)
        run.step("synthesize")
        draft = await self._tracer.step(
            "synthesize",
            lambda: self._synthesizer.write(plan, gathered, desk),
            {"query": plan.original_query, "passages": len(gathered.evidence)},
        )
        run.note(draft.degraded)
        conflicts = await in_background(self._conflicts, plan, gathered, desk)
        run.step("reflect")
        reflection, problem = await self._tracer.step(
            "reflect", lambda: self._reflector.reflect(plan, gathered, desk)
        )
        run.note(problem)
        stored = await self._stored_pages(gathered.step)
        return self._answered(run, desk, draft, conflicts, reflection, stored)

    async def _gather(self, run: Run, plan: ExecutionPlan) -> Gathered:
        request = run.request
        if request.urls:
            run.step("read pages")
        urls, problems = await self._scope(request)
        run.step("retrieve")
        gathered = await self._finder.find(plan, urls=urls, years=request.requested_years)
        run.gathered = gathered
        run.note(*problems, *gathered.degraded)
        check_stage("retrieval", Checked(request.query, gathered.evidence), self._guardrails)
        return gathered

    async def _desk(self, run: Run, gathered: Gathered) -> CitationDesk:
        # Read again, after retrieval: what is cited must be what is stored now.
        urls = list(dict.fromkeys(each.chunk.source_url for each in gathered.evidence))
        texts = await all_of(self._pages.markdown(url) for url in urls)
        stored = {url: text for url, text in zip(urls, texts, strict=True) if text is not None}

        def accepted(part: AnswerPart, citations: tuple[AnswerCitation, ...]) -> None:
            self._check_output(run, (part,))
            run.part(part, citations)

        return CitationDesk(
            gathered.evidence, stored, similarity=self._similarity, on_part=accepted
        )

    def _check_output(
        self, run: Run, parts: tuple[AnswerPart, ...], texts: tuple[str, ...] = ()
    ) -> None:
        assert run.gathered is not None
        checked = Checked(run.request.query, run.gathered.evidence, parts, texts)
        check_stage("output", checked, self._guardrails)

    def _conflicts(
        self, plan: ExecutionPlan, gathered: Gathered, desk: CitationDesk
    ) -> tuple[Conflict, ...]:
        if not desk.parts:
            return ()
        found = []
        units = read_units(plan.revised_query, gathered, similarity=self._similarity)
        for each in find_conflicts(units):
            left = desk.cite(each.left.evidence, each.left.start, each.left.end)
            right = desk.cite(each.right.evidence, each.right.start, each.right.end)
            if left and right:
                found.append(Conflict(kind=each.kind, citations=(left.number, right.number)))
        return tuple(found)

    async def _stored_pages(self, step: RetrieveStep) -> int:
        """Pages that are stored; counted only where none was searched and the reader can count."""
        if step.documents or not isinstance(self._pages, PageCounter):
            return step.documents
        return (await self._pages.status(include_urls=False)).documents

    def _answered(
        self,
        run: Run,
        desk: CitationDesk,
        draft: Draft,
        conflicts: tuple[Conflict, ...],
        reflection: Reflection,
        stored: int,
    ) -> ManagerResult:
        assert run.gathered is not None
        step = run.gathered.step
        confidence = answer_confidence(
            step.confidence,
            reflection.score,
            desk.tally,
            gave_up=draft.gave_up,
            has_conflict=bool(conflicts),
        )
        band = band_of(confidence) if desk.parts else without_answer(step, stored=stored)
        text = answer_text(desk.parts, desk.citations, conflicts, band)
        texts = (text, reflection.applicability_note, reflection.uncertainty_note)
        self._check_output(run, tuple(desk.parts), texts)
        result = run.end(
            "success",
            answer=text,
            confidence=confidence,
            final_reason=band.reason,
            notice=band.notice,
            parts=tuple(desk.parts),
            citations=desk.citations,
            conflicts=conflicts,
            applicability_note=reflection.applicability_note,
            uncertainty_note=reflection.uncertainty_note,
            diagnostics=diagnoses(step, stored=stored),
            reflection=reflection,
            citation_tally=desk.tally,
            synthesis=draft.method if desk.parts else "none",
        )
        if band.notice:
            run.tell(AnswerEvent(kind="notice", detail=band.notice))
        return result

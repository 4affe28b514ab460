"""One deterministic pass from a question to an answer with checked citations."""

import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, TypeVar, cast
from uuid import UUID

from llama_index_instrumentation import get_dispatcher

from webrag.answering.citation_desk import CitationDesk
from webrag.answering.evidence import EvidenceFinder, Gathered
from webrag.answering.guardrails import DEFAULT_GUARDRAILS, Checked, Guardrail, check_stage
from webrag.answering.judging import (
    Reflector,
    answer_confidence,
    band_of,
    diagnoses,
    with_missing,
    without_answer,
)
from webrag.answering.models import (
    AnswerCitation,
    AnswerEvent,
    AnswerPart,
    CitationTally,
    EventListener,
    ExecutionPlan,
    FinalReason,
    ManagerResult,
    ManagerState,
    Reflection,
)
from webrag.answering.page_summary import asks_for_summary
from webrag.answering.planning import Planner
from webrag.answering.writing import Draft, Synthesizer
from webrag.concurrency import all_of
from webrag.corpus.pages import Corpus
from webrag.errors import GuardrailsViolationError
from webrag.orchestration.judge import Encode
from webrag.orchestration.models import ProgressCallback
from webrag.question import Question
from webrag.retrieval.filters import SearchFilters

_INCOHERENT = (
    "Sorry, I cannot make out what is asked, so nothing was searched. {reason} Please put it in"
    " a few words that name what you want to know."
)


_WHICH_PAGE = "{reason} Give its address, or ask about something that is on one of them."


def part_text(part: AnswerPart) -> str:
    """A sentence with the numbers of its citations; code in a fence, rows with their frame."""
    marks = "".join(f"[{number}]" for number in part.citations)
    if part.kind == "code":
        runs = re.findall("`+", part.text)
        fence = "`" * max([3, *(len(run) + 1 for run in runs)])
        return f"{fence}\n{part.text}\n{fence}\n{marks}"
    if part.kind == "table":
        lines = (re.sub(r"\A[\s>]++(?=\|)", "", line) for line in part.text.splitlines())
        rows = (line.strip().strip("|").strip() for line in lines)
        return "\n".join(f"| {row} |" for row in rows) + f"\n{marks}"
    return f"{part.text} {marks}"


def answer_text(
    parts: Sequence[AnswerPart], citations: Sequence[AnswerCitation], before: str, after: str
) -> str:
    """The parts as one text, between sentences that may be empty."""
    said = [part_text(part) for part in whole_tables(parts, citations)]
    return "\n\n".join(filter(None, [before, *said, after]))


def whole_tables(
    parts: Sequence[AnswerPart], citations: Iterable[AnswerCitation]
) -> list[AnswerPart]:
    """The parts with rows of a page that follow each other, a header among them, as one table."""
    page_of = {each.number: each.document_id for each in citations}
    told: list[AnswerPart] = []
    for part in parts:
        if told and told[-1].kind == part.kind == "table" and _alike(told[-1], part, page_of):
            before = told.pop()
            numbers = tuple(dict.fromkeys((*before.citations, *part.citations)))
            text = f"{before.text}\n{part.text}"
            part = part.model_copy(update={"text": text, "citations": numbers})
        told.append(part)
    return told


def _alike(one: AnswerPart, other: AnswerPart, page_of: Mapping[int, UUID]) -> bool:
    """Tell rows that may stand in one table: they are of one page and have as many cells."""
    rows = (*one.text.splitlines(), *other.text.splitlines())
    pages = {page_of.get(number) for number in (*one.citations, *other.citations)}
    return len(pages) == 1 and len({row.strip().strip("|").count("|") for row in rows}) == 1


@dataclass(slots=True)
class Run:
    """The knowledge of one run so far."""

    question: Question
    listener: EventListener | None
    started: float = field(default_factory=time.monotonic)
    states: list[ManagerState] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    plan: ExecutionPlan | None = None
    gathered: Gathered | None = None

    def enter(self, state: ManagerState) -> None:
        """Go into a state."""
        self.states.append(state)
        self.tell("state", state)

    async def progress(
        self, phase: str, detail: str, iteration: int | None = None, total: int | None = None
    ) -> None:
        """Say what a step is doing."""
        del total
        self.tell("progress", detail or phase, round=iteration)

    def note(self, *sentences: str | None) -> None:
        """Remember what did not work, each once."""
        self.degraded += [each for each in sentences if each and each not in self.degraded]

    def tell(
        self, kind: Literal["state", "step", "progress", "part", "notice"], detail: str, **more: Any
    ) -> None:
        """Tell the listener."""
        if self.listener is not None:
            self.listener(AnswerEvent(kind=kind, detail=detail, **more))

    def end(
        self,
        state: Literal["success", "fail"],
        *,
        answer: str,
        confidence: float,
        final_reason: FinalReason,
        **details: Any,
    ) -> ManagerResult:
        """Go into a terminal state; the result holds what is known of the run."""
        self.enter(state)
        return ManagerResult(
            state=state,
            states=tuple(self.states),
            query=self.question.text,
            as_of=self.question.as_of,
            answer=answer,
            confidence=confidence,
            final_reason=final_reason,
            plan=self.plan,
            retrieval=self.gathered.step if self.gathered else None,
            degraded=tuple(self.degraded),
            total_ms=(time.monotonic() - self.started) * 1000,
            **details,
        )


T = TypeVar("T")

_dispatcher = get_dispatcher(__name__)


@_dispatcher.span
async def traced_step(
    step: str, work: Callable[[], Awaitable[Any]], inputs: Mapping[str, Any]
) -> Any:
    """A step as LlamaIndex's instrumentation sees it; handlers read `step` and `inputs`."""
    del step, inputs
    return await work()


async def in_span(
    step: str, work: Callable[[], Awaitable[T]], inputs: Mapping[str, Any] | None = None
) -> T:
    """Run a step in a span of its own; `inputs` is what a handler of spans may record."""
    return cast(T, await traced_step(step, work, inputs or {}))


_log = logging.getLogger(__name__)


PageScope = Callable[
    [Question, ProgressCallback], Awaitable[tuple[Sequence[str] | None, tuple[str, ...]]]
]

"""Gets the pages of a question and tells which to search, None for all, and what did not work."""


def _incoherent(run: Run, plan: ExecutionPlan, form: str = _INCOHERENT) -> ManagerResult:
    """The end of a run whose question makes no sense."""
    answer = " ".join(form.format(reason=plan.coherence_reason or "").split())
    return run.end("fail", answer=answer, confidence=0.0, final_reason="incoherent_query")


@dataclass(frozen=True, kw_only=True, slots=True)
class Manager:
    """Answers questions; holds no state of a run, so it may be used from several tasks at once.

    The scope gets the pages a question names, and citations are checked against the stored text of
    `pages`; without `encode` words alone are compared.
    """

    planner: Planner
    scope: PageScope
    finder: EvidenceFinder
    synthesizer: Synthesizer
    reflector: Reflector
    pages: Corpus
    encode: Encode | None = None
    guardrails: Sequence[Guardrail] = DEFAULT_GUARDRAILS

    async def run(
        self, question: Question, *, on_event: EventListener | None = None
    ) -> ManagerResult:
        """Answer a question; the listener is told of states, steps and checked sentences at once.

        Returns:
            State `success` for coherent questions, however sure the answer is; `fail` with a
            polite reply for incoherent ones and where a guardrail objects.

        Raises:
            FetchError: No page that was named could be obtained.
            ProviderError: The question could not be embedded.
            StorageError: The database failed.
        """
        run = Run(question, on_event)
        inputs = {"query": question.text, "urls": list(question.urls)}
        return await in_span("answer", lambda: self._guarded(run), inputs)

    async def _guarded(self, run: Run) -> ManagerResult:
        run.enter("execute_plan")
        try:
            return await self._execute(run)
        except GuardrailsViolationError as error:
            _log.warning("%s", error)
            return run.end(
                "fail",
                answer=error.safe_reply,
                confidence=0.0,
                final_reason=f"guardrail_{error.stage}",  # type: ignore[arg-type]
                guardrail=(error.stage, error.reason),
            )

    async def _execute(self, run: Run) -> ManagerResult:
        check_stage("input", Checked(run.question.text), self.guardrails)
        run.tell("step", "plan")
        plan, problem = await in_span("plan", lambda: self.planner.plan(run.question))
        run.plan = plan
        run.note(problem)
        if plan.coherence == "incoherent":
            return _incoherent(run, plan)
        filters = await self._scoped(run)
        is_about_a_page = asks_for_summary(plan.revised_query)
        find = self._summary if is_about_a_page else self._found
        gathered = run.gathered = await find(run, plan, filters)
        plan = run.plan
        if gathered is None:
            return _incoherent(run, plan, _WHICH_PAGE)
        check_stage("retrieval", Checked(run.question.text, gathered.evidence), self.guardrails)
        desk = await self._desk(run, gathered)
        run.tell("step", "synthesize")
        draft = await in_span(
            "synthesize",
            lambda: self.synthesizer.write(plan, gathered, desk),
            {"query": plan.original_query, "passages": len(gathered.evidence)},
        )
        run.note(draft.degraded)
        for place in gathered.outline if desk.parts else ():
            desk.add_excerpt(*place, kind="list", mark="- ")
        run.tell("step", "reflect")
        reflection, problem = await in_span(
            "reflect", lambda: self.reflector.reflect(plan, gathered, desk)
        )
        run.note(problem)
        stored = gathered.step.documents  # counted only where none was searched
        stored = stored or (await self.pages.status(include_urls=False)).documents
        return self._answered(run, desk, draft, reflection, stored)

    async def _summary(
        self, run: Run, plan: ExecutionPlan, filters: SearchFilters
    ) -> Gathered | None:
        """Let the page speak of itself; None where it is not said which page is meant."""
        gathered, pages = await in_span(
            "retrieve",
            lambda: self.finder.summary(plan, filters),
            {"query": plan.revised_query},
        )
        if gathered is None and pages > 1:
            reason = f"There are {pages:,} pages, and it is not said which one is meant."
            run.plan = plan.model_copy(
                update={"coherence": "incoherent", "coherence_reason": reason}
            )
            return None
        return gathered or await self._found(run, plan, filters)

    async def _found(self, run: Run, plan: ExecutionPlan, filters: SearchFilters) -> Gathered:
        """The best passages for a question."""
        candidates = await in_span(
            "retrieve",
            lambda: self.finder.retrieve(plan, filters),
            {"query": plan.revised_query, "wordings": list(plan.wordings)},
        )
        run.note(*candidates.warnings)
        run.plan = plan = candidates.as_searched(plan)
        run.tell("step", "rerank")
        gathered = await in_span(
            "rerank",
            lambda: self.finder.rank(candidates),
            {"query": plan.revised_query, "candidates": candidates.count},
        )
        run.note(*gathered.degraded)
        return gathered

    async def _scoped(self, run: Run) -> SearchFilters:
        """Get the pages that a question names, and tell what is searched."""
        question = run.question
        if question.urls and question.as_of is None:
            run.tell("step", "read pages")
        urls, problems = await self.scope(question, run.progress)
        run.tell("step", "retrieve")
        run.note(*problems)
        return replace(question.filters, source_urls=None if urls is None else tuple(urls))

    async def _desk(self, run: Run, gathered: Gathered) -> CitationDesk:
        # Read again, after retrieval: what is cited must be what is stored now.
        urls = list(dict.fromkeys(each.chunk.source_url for each in gathered.evidence))
        texts = await all_of(self._text(url, run.question.as_of) for url in urls)
        stored = {url: text for url, text in zip(urls, texts, strict=True) if text is not None}

        def accepted(part: AnswerPart, citations: tuple[AnswerCitation, ...]) -> None:
            self._check_output(run, (part,))
            run.tell("part", part_text(part), part=part, citations=citations)

        return CitationDesk(gathered.evidence, stored, encode=self.encode, on_part=accepted)

    async def _text(self, url: str, as_of: datetime | None) -> str | None:
        if as_of is None:
            return await self.pages.markdown(url)
        return await self.pages.markdown_as_of(url, as_of)

    def _check_output(
        self, run: Run, parts: tuple[AnswerPart, ...], texts: tuple[str, ...] = ()
    ) -> None:
        assert run.gathered is not None
        checked = Checked(run.question.text, run.gathered.evidence, parts, texts)
        check_stage("output", checked, self.guardrails)

    def _answered(
        self,
        run: Run,
        desk: CitationDesk,
        draft: Draft,
        reflection: Reflection,
        stored: int,
    ) -> ManagerResult:
        assert run.gathered is not None
        step, missing = run.gathered.step, run.gathered.missing
        confidence = answer_confidence(
            step.confidence,
            reflection.score,
            # A sentence that a model made up before quotations took its place does not count.
            CitationTally(kept=len(desk.citations)) if draft.method == "extractive" else desk.tally,
            gave_up=draft.gave_up,
            is_in_part=bool(missing),
        )
        band = band_of(confidence) if desk.parts else without_answer(step, stored=stored)
        band = with_missing(band, missing)
        notice = (band.notice, "") if band.comes_first else ("", band.notice)
        text = answer_text(desk.parts, desk.citations, *notice)
        description = run.gathered.description if desk.parts else ""
        texts = (text, description, reflection.applicability_note, reflection.uncertainty_note)
        self._check_output(run, tuple(desk.parts), texts)
        result = run.end(
            "success",
            answer=text,
            confidence=confidence,
            final_reason=band.reason,
            notice=band.notice,
            missing=missing,
            parts=tuple(desk.parts),
            citations=desk.citations,
            description=description,
            applicability_note=reflection.applicability_note,
            uncertainty_note=reflection.uncertainty_note,
            diagnostics=diagnoses(step, stored=stored),
            reflection=reflection,
            citation_tally=desk.tally,
            synthesis=draft.method if desk.parts else "none",
        )
        if band.notice:
            run.tell("notice", band.notice)
        return result

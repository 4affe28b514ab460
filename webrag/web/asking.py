"""Questions and their answers: the form, the run behind it, and the finished answer."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from sse_starlette import EventSourceResponse, JSONServerSentEvent
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from webrag.answering.page_summary import asks_for_summary
from webrag.concurrency import in_background
from webrag.errors import FetchError, InputError, WebRAGError
from webrag.ingestion.addresses import as_address, sites_and_addresses, split_words
from webrag.ingestion.files.folder import named_address
from webrag.presentation.reports import counted
from webrag.presentation.steps import STEPS, in_plain_words
from webrag.question import MAX_QUESTION_CHARS, Question
from webrag.web.questions import Turn, in_thread, suggested_questions, thread_markdown
from webrag.web.rendering import FRAGMENT_HEADER, HEADERS
from webrag.web.runs import WatchedRun
from webrag.web.site import Site, failure_of_error, may_allow_hosts, may_run, number, status_of
from webrag.wiring.language_models import uses_language_model

if TYPE_CHECKING:
    from uuid import UUID

    from webrag.answering.models import AnswerCitation, AnswerEvent, ManagerResult

_PING_S = 15
_ID_CHARS = 40
_MOST_TURNS = 30
_MOST_ROUNDS = 20  # as of `MAX_EXPANSION_DEPTH`


def asked_question(values: Any) -> Question:
    """Read a question from a form or an address; equal forms give equal addresses."""
    rounds = str(values.get("rounds") or "").strip()
    deep = bool(values.get("deep"))
    text = str(values.get("q", "")).strip()
    wordings = "\n".join(map(str, values.getlist("wording"))).splitlines()
    named, rest = split_words(text.split(), takes_paths=False)
    sites, pages = sites_and_addresses(named, takes_paths=False)
    return Question.of(
        rest if named else text,
        urls=addresses([*pages, *values.getlist("url")]),
        sites=_words([*sites, *values.getlist("site")]) or None,
        years=sorted({number(each, "The year", 9999) for each in _words(values.getlist("year"))})
        or None,
        wordings=list(dict.fromkeys(filter(None, map(str.strip, wordings)))) or None,
        research_mode="deep" if deep else "fast",
        # Nothing is followed otherwise, and a number left in the form does no harm.
        expansion_budget=number(rounds, "The number of rounds", _MOST_ROUNDS)
        if rounds and deep
        else None,
    )


def addresses(texts: Iterable[Any]) -> list[str]:
    """The addresses in fields of a form; a host without a scheme gets one, and so does a path."""
    return [
        named_address(word) if word.startswith(("/", "~/")) else as_address(word, takes_paths=False)
        for word in _words(texts)
    ]


def _words(texts: Iterable[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for text in texts for word in str(text).split()))


def where_to_look(question: Question) -> str:
    """Name in a few words the limits of a question; "" when it has none."""
    linked = " and what it links to" if question.is_deep else ""
    pages = [f"{counted(len(question.urls), 'page')}{linked}"] if question.urls else []
    return ", ".join([*pages, *(question.sites or ()), *map(str, question.years or ())])


def address_of(question: Question, after: str = "") -> str:
    """The address that asks a question, in the thread of the run it comes after."""
    pairs = [
        ("q", question.text),
        *([("after", after)] if after else []),
        *(("url", each) for each in question.urls),
        *(("site", each) for each in question.sites or ()),
        *(("year", each) for each in question.years or ()),
        *(("wording", each) for each in question.wordings),
        *([("deep", 1)] if question.is_deep else []),
        *([("rounds", each)] if (each := question.expansion_budget) else []),
    ]
    return f"/?{urlencode(pairs)}"


def follow_ups(asked: Question, result: "ManagerResult") -> list[tuple[str, Question]]:
    """Suggest what may be asked next, each with the words for it."""
    if result.state == "fail":
        return []

    def changed(**values: Any) -> Question:
        return asked.model_copy(update=values)

    shallow: dict[str, Any] = {"research_mode": "fast", "expansion_budget": None}
    found = [
        (f"Ask only: {part}", changed(text=part, wordings=(), **shallow)) for part in result.missing
    ]
    is_sure = result.final_reason == "confidence_high"
    if asked.urls and not asked.is_deep and not is_sure:
        found.append(("Follow the links of the page too", changed(research_mode="deep")))
    if asked.years and not is_sure:
        found.append(("Ask in pages of every year", changed(years=None)))
    if (asked.urls or asked.sites) and not is_sure:
        found.append(("Ask everything that is stored", Question(text=asked.text)))
    return found


def understood_in(asked: Question, turns: Sequence[Turn]) -> Question:
    """A question in a thread: about its subject, or the page that was cited last."""
    if not asks_for_summary(asked.text):
        return asked.model_copy(update={"text": in_thread(asked.text, turns)})
    cited = [turn.result.citations[0] for turn in turns if turn.result and turn.result.citations]
    if asked.urls or not cited:
        return asked
    return asked.model_copy(update={"source_urls": (cited[-1].source_url,)})


class _AskHandlers:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def home(self, request: Request) -> Response:
        """The form; with a question, the whole answer beneath it."""
        asked = asked_question(request.query_params)
        if not asked.text or not may_run(request):
            around = await self._surroundings(request, suggests=not asked.text)
            return self._page(request, asked, around, run=None, result=None)
        run = self._start(request, asked, request.query_params)
        try:
            async for name, _ in run.followed():
                if name == "end" or await request.is_disconnected():
                    break
        finally:
            # Nobody else can stop what a reader without scripts has left.
            await self._site.runs.stop(run)
        return await self._shown(request, run)

    async def start(self, request: Request) -> Response:
        form = await self._site.checked_form(request)
        asked = asked_question(form)
        if not asked.text:
            raise InputError("The question is empty: ask something.")
        run = self._start(request, asked, form)
        return JSONResponse({"run": f"/runs/{run.id}"}, status_code=201)

    async def show(self, request: Request) -> Response:
        return await self._shown(request, self._site.run_of(request))

    async def events(self, request: Request) -> Response:
        run = self._site.run_of(request)
        told = (
            JSONServerSentEvent(dict(values), event=name) async for name, values in run.followed()
        )
        return EventSourceResponse(told, ping=_PING_S)

    async def stop(self, request: Request) -> Response:
        await self._site.checked_form(request)
        run = self._site.run_of(request)
        await self._site.runs.stop(run)
        return RedirectResponse(f"/runs/{run.id}", status_code=303)

    def _start(self, request: Request, asked: Question, values: Any) -> WatchedRun:
        """Begin to answer, going on from a run that is kept or from questions that are told."""
        site, after = self._site, str(values.get("after") or "")[:_ID_CHARS]
        told = str(values.get("about") or "")[:MAX_QUESTION_CHARS].splitlines()
        turns = self._turns(request, after) or [Turn(each, None) for each in told]
        understood = understood_in(asked, turns)
        if understood.text != asked.text and uses_language_model(site.settings()):
            before = f"The conversation was about this question: {turns[-1].question}"
            understood = understood.model_copy(update={"known_context": before})

        async def work(run: WatchedRun) -> "ManagerResult":
            # Pages that are named are fetched and stored, as `answer` does.
            async with site.enter(request, "answer" if asked.urls else "search") as rag:
                return await rag.answer_to(understood, on_event=lambda event: _tell(run, event))

        given = {"asked": asked, "understood": understood.text, "after": after}
        return site.runs.start("answer", given, work, owner=site.owner_of(request))

    def _thread(self, request: Request, run_id: str) -> list[WatchedRun]:
        """The questions that led to a run, itself last, as far as they are kept."""
        owner, found = self._site.owner_of(request), list[WatchedRun]()
        while run_id and len(found) < _MOST_TURNS:
            run = self._site.runs.get(run_id, owner)
            if run is None or run.kind != "answer" or run in found:
                break
            found.append(run)
            run_id = run.asked["after"]
        return found[::-1]

    def _turns(self, request: Request, run_id: str) -> list[Turn]:
        return [Turn(run.asked["asked"].text, run.result) for run in self._thread(request, run_id)]

    async def thread(self, request: Request) -> Response:
        """A thread that the browser keeps, where its script shows it."""
        around = await self._surroundings(request)
        thread = request.path_params["thread_id"]
        return self._page(request, Question(text=""), around, run=None, result=None, thread=thread)

    async def markdown(self, request: Request) -> Response:
        run = self._site.run_of(request)
        turns = self._turns(request, run.id)
        return PlainTextResponse(
            thread_markdown(turns), media_type="text/markdown", headers=dict(HEADERS)
        )

    async def _surroundings(self, request: Request, *, suggests: bool = False) -> dict[str, Any]:
        """Choices of the form, or why there are none; the script has the form already."""
        nothing: dict[str, Any] = {"sites": [], "years": {}, "suggested": (), "problem": None}
        if FRAGMENT_HEADER in request.headers:
            return nothing
        try:
            async with self._site.enter(request, "status") as rag:
                sites, years = await rag.sites(), await rag.years()
                names = [each.site for each in sites] if suggests else []
                suggested = await suggested_questions(rag, names)
                return {**nothing, "sites": sites, "years": years, "suggested": suggested}
        except WebRAGError as error:
            return {**nothing, "problem": error}

    async def _shown(self, request: Request, run: WatchedRun) -> Response:
        if run.kind != "answer":
            site = self._site
            may = {"may_forget": site.may_forget, "may_allow": may_allow_hosts(site)}
            may["may_again"] = not isinstance(run.error, InputError)
            return site.page(request, "job.html", run=run, report=run.result, **may)
        asked: Question = run.asked["asked"]
        around = await self._surroundings(request)
        # Looked at last: a run that ended meanwhile must not be shown without its answer.
        if run.result is None:
            return self._page(request, asked, around, run=run, result=None)
        shown = await in_background(_answer_values, asked, run.result)
        return self._page(request, asked, around, run=run, **shown)

    def _page(
        self, request: Request, asked: Question, around: dict[str, Any], **values: Any
    ) -> Response:
        site = self._site
        run: WatchedRun | None = values["run"]
        failed = run.error if run and isinstance(run.error, FetchError) else None
        return site.page(
            request,
            "ask.html",
            failure=failed and failure_of_error(failed, asked.urls),
            may_allow=may_allow_hosts(site),
            may_again=not (run and isinstance(run.error, InputError)),
            everywhere=Question(text=asked.text),
            status_code=200 if around["problem"] is None else status_of(around["problem"]),
            asked=asked,
            longest_s=site.research_s,
            research_s=site.research_s if asked.is_deep else None,
            earlier=self._thread(request, run.asked["after"]) if run else [],
            has_model=uses_language_model(site.settings()),
            where=where_to_look(asked),
            address_of=address_of,
            asks_for_summary=asks_for_summary,
            **around,
            **{"thread": None, **values},
        )


def _answer_values(asked: Question, result: "ManagerResult") -> dict[str, Any]:
    from webrag.answering.manager import whole_tables
    from webrag.presentation.answer import ranges, trust
    from webrag.presentation.stored_page import page_html

    told = whole_tables(result.parts, result.citations)
    parts = [(part, page_html(_as_markdown(part)).html) for part in told]
    pages: dict[UUID, list[AnswerCitation]] = {}
    for each in result.citations:
        pages.setdefault(each.document_id, []).append(each)
    sources = [(ranges([each.number for each in same]), same) for same in pages.values()]
    return {
        "result": result,
        "parts": parts,
        "citations": {each.number: each for each in result.citations},
        "sources": sources,
        "trust": trust(result),
        "follow_ups": follow_ups(asked, result),
    }


def _as_markdown(part: Any) -> str:
    """Code in a fence, rows of a table as what they are; the rest says what it says."""
    from webrag.answering.manager import part_text
    from webrag.presentation.stored_page import empty_table_head

    text = part_text(part.model_copy(update={"citations": ()}))
    if part.kind == "table":
        rows = [line for line in text.splitlines() if line.strip()]
        return empty_table_head(rows[0]) + "\n".join(rows) if rows else ""
    return str(text)


def _tell(run: WatchedRun, event: "AnswerEvent") -> None:
    if event.kind == "step":
        run.tell("step", text=STEPS.get(event.detail, event.detail))
    elif event.kind == "progress":
        run.tell("line", text=in_plain_words(event.detail), round=event.round or 0)
    elif event.kind == "part" and event.part is not None:
        run.tell("part", text=event.part.text)


def ask_routes(site: Site) -> list[Route]:
    """Route where questions are asked and watched."""
    handlers = _AskHandlers(site)
    return [
        Route("/", handlers.home, methods=["GET"]),
        Route("/threads/{thread_id}", handlers.thread, methods=["GET"]),
        Route("/runs", handlers.start, methods=["POST"]),
        Route("/runs/{run_id}", handlers.show, methods=["GET"]),
        Route("/runs/{run_id}/markdown", handlers.markdown, methods=["GET"]),
        Route("/runs/{run_id}/events", handlers.events, methods=["GET"]),
        Route("/runs/{run_id}/stop", handlers.stop, methods=["POST"]),
    ]

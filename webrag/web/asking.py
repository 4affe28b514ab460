"""Questions and their answers: the form, the run behind it, and the finished answer."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from sse_starlette import EventSourceResponse, JSONServerSentEvent
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from webrag.argument_checks import shown_value
from webrag.concurrency import in_background
from webrag.errors import InputError, WebRAGError
from webrag.presentation.reports import counted
from webrag.presentation.steps import STEPS, in_plain_words
from webrag.question import MAX_QUESTION_CHARS
from webrag.web.rendering import FRAGMENT_HEADER, HEADERS
from webrag.web.runs import WatchedRun
from webrag.web.site import Site, may_run, status_of
from webrag.web.suggestions import suggested_questions
from webrag.web.thread import Turn, in_thread, thread_markdown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from webrag.answering.models import AnswerCitation, AnswerEvent, ManagerResult

_RECENT = 8
_PING_S = 15
_ID_CHARS = 40
_MOST_TURNS = 30


@dataclass(frozen=True)
class Asked:
    """A question as the form holds it; equal forms give equal addresses.

    Attributes:
        urls: As typed, one or more.
        deep: Follow links of `urls`.
        rounds: Rounds of that at most; None for what the server is set to.
        after: The run that the question goes on from; "" for none.
        about: The questions before, one a line, of a thread whose runs only the browser keeps.
    """

    question: str = ""
    urls: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    years: tuple[int, ...] = ()
    wordings: tuple[str, ...] = ()
    deep: bool = False
    rounds: int | None = None
    after: str = ""
    about: str = ""

    @property
    def where(self) -> str:
        """What limits the question, in a few words; "" when nothing does."""
        named = [counted(len(self.urls), "page")] if self.urls else []
        named += ["and what it links to"] if self.deep and named else []
        named += [*self.sites, *map(str, self.years)]
        return ", ".join(named).replace(", and", " and")

    @property
    def address(self) -> str:
        """The address that asks this."""
        pairs = [("q", self.question)]
        pairs += [("url", each) for each in self.urls]
        pairs += [("site", each) for each in self.sites]
        pairs += [("year", str(each)) for each in self.years]
        pairs += [("wording", each) for each in self.wordings]
        pairs += [("deep", "1")] if self.deep else []
        pairs += [("rounds", str(self.rounds))] if self.rounds else []
        pairs += [("after", self.after)] if self.after else []
        return f"/?{urlencode(pairs)}"


def parse_asked(values: Any) -> Asked:
    """A question from a form or an address.

    Args:
        values: Of the fields `q`, `url`, `site`, `year`, `wording`, `deep`, `rounds`, `after` and
            `about`.

    Raises:
        InputError: A year or the rounds are no number.
    """
    return Asked(
        question=str(values.get("q", "")).strip(),
        urls=_words(values.getlist("url")),
        sites=_words(values.getlist("site")),
        years=tuple(sorted({_year(each) for each in _words(values.getlist("year"))})),
        wordings=_lines(values.getlist("wording")),
        deep=bool(values.get("deep")),
        rounds=_rounds(str(values.get("rounds") or "").strip()),
        after=str(values.get("after") or "")[:_ID_CHARS],
        about=str(values.get("about") or "")[:MAX_QUESTION_CHARS],
    )


def _words(texts: list[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for text in texts for word in str(text).split()))


def _lines(texts: list[Any]) -> tuple[str, ...]:
    lines = (line.strip() for text in texts for line in str(text).splitlines())
    return tuple(dict.fromkeys(filter(None, lines)))


def _year(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= len(text) <= 4):
        raise InputError(f"The year is {shown_value(text)}; give a number such as 2025.")
    return int(text)


def _rounds(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 3 and int(text)):
        raise InputError(f"The number of rounds is {shown_value(text)}; give one from 1 to 99.")
    return int(text)


def follow_ups(asked: Asked, result: "ManagerResult") -> list[tuple[str, Asked]]:
    """What may be asked next, each with the words for it."""
    if result.state == "fail":
        return []
    found = [
        (f"Ask only: {part}", replace(asked, question=part, wordings=(), deep=False, rounds=None))
        for part in result.missing
    ]
    is_sure = result.final_reason == "confidence_high"
    if asked.urls and not asked.deep and not is_sure:
        found.append(("Follow the links of the page too", replace(asked, deep=True)))
    if asked.years and not is_sure:
        found.append(("Ask in pages of every year", replace(asked, years=())))
    if (asked.urls or asked.sites) and not is_sure:
        found.append(("Ask everything that is stored", Asked(asked.question)))
    return found


class AskHandlers:
    """Answers requests about questions."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def home(self, request: Request) -> Response:
        """The form; with a question, the whole answer beneath it."""
        asked = parse_asked(request.query_params)
        if not asked.question or not may_run(request):
            return await self._form(request, asked)
        run = self._start(request, asked)
        try:
            await _ended(run, request)
        finally:
            # Nobody else can stop what a reader without scripts has left.
            await self._site.runs.stop(run)
        return await self._shown(request, run)

    async def start(self, request: Request) -> Response:
        """Begin to answer; tells where."""
        form = await self._site.checked_form(request)
        asked = parse_asked(form)
        if not asked.question:
            raise InputError("The question is empty: ask something.")
        run = self._start(request, asked)
        return JSONResponse({"run": f"/runs/{run.id}"}, status_code=201)

    async def show(self, request: Request) -> Response:
        """A run as it is now."""
        return await self._shown(request, self._site.run_of(request))

    async def events(self, request: Request) -> Response:
        """What happens in a run, as it happens."""
        run = self._site.run_of(request)
        return EventSourceResponse(_told(run), ping=_PING_S)

    async def stop(self, request: Request) -> Response:
        """Cancel a run."""
        await self._site.checked_form(request)
        run = self._site.run_of(request)
        await self._site.runs.stop(run)
        return RedirectResponse(f"/runs/{run.id}", status_code=303)

    def _start(self, request: Request, asked: Asked) -> WatchedRun:
        site = self._site
        turns = self._turns(request, asked.after) or [
            Turn(each, None) for each in asked.about.splitlines()
        ]
        understood = in_thread(asked.question, turns)

        async def work(run: WatchedRun) -> "ManagerResult":
            # Pages that are named are fetched and stored, as `answer` does.
            async with site.enter(request, "answer" if asked.urls else "search") as rag:
                return await rag.ask(
                    understood,
                    wordings=asked.wordings or None,
                    url=asked.urls,
                    sites=asked.sites or None,
                    years=asked.years or None,
                    deep=asked.deep,
                    # Nothing is followed otherwise, and a number left in the form does no harm.
                    expansion_budget=asked.rounds if asked.deep else None,
                    on_event=lambda event: _tell(run, event),
                )

        given = {"asked": asked, "understood": understood}
        return site.runs.start("answer", given, work, owner=site.owner_of(request))

    def _thread(self, request: Request, run_id: str) -> list[WatchedRun]:
        """The questions that led to a run, itself last, as far as they are kept."""
        owner, found = self._site.owner_of(request), list[WatchedRun]()
        while run_id and len(found) < _MOST_TURNS:
            run = self._site.runs.get(run_id, owner)
            if run is None or run.kind != "answer" or run in found:
                break
            found.append(run)
            run_id = run.asked["asked"].after
        return found[::-1]

    def _turns(self, request: Request, run_id: str) -> list[Turn]:
        return [
            Turn(run.asked["asked"].question, run.result) for run in self._thread(request, run_id)
        ]

    async def thread(self, request: Request) -> Response:
        """A thread that the browser keeps, where its script shows it."""
        around = await self._surroundings(request)
        thread = request.path_params["thread_id"]
        return self._page(request, Asked(), around, run=None, result=None, thread=thread)

    async def markdown(self, request: Request) -> Response:
        """The thread up to a run, as Markdown with its citations."""
        run = self._site.run_of(request)
        turns = self._turns(request, run.id)
        return PlainTextResponse(
            thread_markdown(turns), media_type="text/markdown", headers=dict(HEADERS)
        )

    async def _form(self, request: Request, asked: Asked) -> Response:
        around = await self._surroundings(request, suggests=not asked.question)
        return self._page(request, asked, around, run=None, result=None)

    async def _surroundings(self, request: Request, *, suggests: bool = False) -> dict[str, Any]:
        """What the form offers, and why it cannot; the script has the form already."""
        nothing: dict[str, Any] = {"sites": [], "years": {}, "suggested": (), "problem": None}
        if FRAGMENT_HEADER in request.headers:
            return nothing
        try:
            async with self._site.enter(request, "status") as rag:
                suggested = await suggested_questions(rag) if suggests else ()
                known = {"sites": await rag.sites(), "years": await rag.years()}
                return {**nothing, **known, "suggested": [Asked(each) for each in suggested]}
        except WebRAGError as error:
            return {**nothing, "problem": error}

    async def _shown(self, request: Request, run: WatchedRun) -> Response:
        if run.kind != "answer":
            return self._site.page(request, "job.html", run=run, report=run.result)
        asked: Asked = run.asked["asked"]
        around = await self._surroundings(request)
        # Looked at last: a run that ended meanwhile must not be shown without its answer.
        if run.result is None:
            return self._page(request, asked, around, run=run, result=None)
        shown = await in_background(_answer_values, asked, run.result)
        return self._page(request, asked, around, run=run, **shown)

    def _page(
        self, request: Request, asked: Asked, around: dict[str, Any], **values: Any
    ) -> Response:
        site = self._site
        seconds = site.research_s if asked.deep else None
        recent = site.runs.latest("answer", owner=site.owner_of(request))
        return site.page(
            request,
            "ask.html",
            status_code=200 if around["problem"] is None else status_of(around["problem"]),
            asked=asked,
            longest_s=site.research_s,
            research_s=seconds,
            recent=_distinct(recent)[:_RECENT],
            earlier=self._thread(request, asked.after),
            **around,
            **{"thread": None, **values},
        )


def _answer_values(asked: Asked, result: "ManagerResult") -> dict[str, Any]:
    from webrag.presentation.answer import in_words
    from webrag.presentation.html.stored_page import page_html

    parts = [(part, page_html(_as_markdown(part)).html) for part in result.parts]
    return {
        "result": result,
        "parts": parts,
        "citations": {each.number: each for each in result.citations},
        "sources": _by_page(result.citations),
        "confidence": in_words(result),
        "follow_ups": follow_ups(asked, result),
    }


def _by_page(citations: "Sequence[AnswerCitation]") -> "list[list[AnswerCitation]]":
    """The citations of each page, in the order in which the pages are cited first."""
    pages: dict[UUID, list[AnswerCitation]] = {}
    for each in citations:
        pages.setdefault(each.document_id, []).append(each)
    return list(pages.values())


def _as_markdown(part: Any) -> str:
    """Code in a fence, rows of a table as what they are; the rest says what it says."""
    from webrag.answering.manager import part_text
    from webrag.presentation.html.stored_page import empty_table_head

    text = part_text(part.model_copy(update={"citations": ()}))
    if part.kind == "table":
        rows = [line for line in text.splitlines() if line.strip()]
        return empty_table_head(rows[0]) + "\n".join(rows) if rows else ""
    return str(text)


def _distinct(runs: list[WatchedRun]) -> list[WatchedRun]:
    return list({run.asked["asked"].question: run for run in reversed(runs)}.values())[::-1]


async def _ended(run: WatchedRun, request: Request) -> None:
    async for name, _ in run.followed():
        if name == "end" or await request.is_disconnected():
            return


async def _told(run: WatchedRun) -> AsyncIterator[JSONServerSentEvent]:
    async for name, values in run.followed():
        yield JSONServerSentEvent(dict(values), event=name)


def _tell(run: WatchedRun, event: "AnswerEvent") -> None:
    if event.kind == "step":
        run.tell("step", text=STEPS.get(event.detail, event.detail))
    elif event.kind == "progress":
        run.tell("line", text=in_plain_words(event.detail), round=event.round or 0)
    elif event.kind == "part" and event.part is not None:
        run.tell("part", text=event.part.text)


def ask_routes(site: Site) -> list[Route]:
    """Where questions are asked and watched."""
    handlers = AskHandlers(site)
    return [
        Route("/", handlers.home, methods=["GET"]),
        Route("/threads/{thread_id}", handlers.thread, methods=["GET"]),
        Route("/runs", handlers.start, methods=["POST"]),
        Route("/runs/{run_id}", handlers.show, methods=["GET"]),
        Route("/runs/{run_id}/markdown", handlers.markdown, methods=["GET"]),
        Route("/runs/{run_id}/events", handlers.events, methods=["GET"]),
        Route("/runs/{run_id}/stop", handlers.stop, methods=["POST"]),
    ]

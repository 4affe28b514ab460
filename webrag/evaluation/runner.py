"""Asks every question of a set, of WebRAG or of a model with tools, and records what came back."""

import itertools
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO
from urllib.parse import urljoin

from webrag.answering.language_model import chat
from webrag.answering.models import FinalReason
from webrag.crawling.report import CrawlOptions, SiteReport
from webrag.errors import WebRAGError
from webrag.evaluation.metrics import VisiblePages, comparison_key
from webrag.evaluation.questions import (
    CitationRecord,
    Question,
    ResultRecord,
    RunRecord,
    write_record,
)
from webrag.ingestion.addresses import site_of
from webrag.presentation.brief.sections import cited_quotes
from webrag.question import Question as Asked
from webrag.retrieval.models import CitationSpan

if TYPE_CHECKING:
    from llama_index.core.llms.function_calling import FunctionCallingLLM

    from webrag.app import WebRAG


EvaluationProgress = Callable[[str, int, int], None]
"""Told of a stage what is done, and of how many; on the event loop, so it must return quickly."""


@dataclass(frozen=True)
class Site:
    """A site as served, or all that is stored; no pages are to be crawled."""

    base_url: str
    pages: tuple[str, ...] | None = None
    visible: VisiblePages | None = None


Way = Callable[["WebRAG", Question, Site, Mapping[str, Any]], Awaitable[RunRecord]]
"""Asks one question; the mapping says where, as `webrag.question.Question` names it."""


async def ask_evidence(
    memory: "WebRAG", question: Question, site: Site, where: Mapping[str, Any]
) -> RunRecord:
    """Ask for evidence, and record the passages and quotations in the order of the brief."""
    started = time.perf_counter()
    asked = Asked.of(question.query, wordings=question.wordings, **where)
    result = await memory.evidence_for(asked)
    ms = (time.perf_counter() - started) * 1000
    blocks = memory.evidence(result)
    printed = {(block.chunk_id, block.char_start) for block in blocks}
    return RunRecord(
        id=question.id,
        retrieved=tuple(
            ResultRecord(
                url=block.url,
                text=block.text,
                in_brief=(block.chunk_id, block.char_start) in printed,
            )
            for block in memory.evidence(result, every_passage=True)
        ),
        citations=await _checked(
            memory, [quote.citation for quote in cited_quotes(result, blocks)], site.visible
        ),
        urls_fetched=result.urls_fetched,
        urls_failed={
            url: reason
            for step in result.expansion_steps
            for url, reason in step.candidates_failed.items()
        },
        ms=ms,
        abstained=result.confidence_band == "none",
        confidence=result.confidence,
        confidence_band=result.confidence_band,
        stop_rule=result.final_decision.rule,
        iterations=result.total_iterations,
        partial=result.partial,
        degraded=result.degraded,
    )


async def ask_answer(
    memory: "WebRAG", question: Question, site: Site, where: Mapping[str, Any]
) -> RunRecord:
    """Ask for an answer in sentences, and record them with their citations."""
    started = time.perf_counter()
    asked = Asked.of(question.query, wordings=question.wordings, **where)
    result = await memory.answer_to(asked)
    ms = (time.perf_counter() - started) * 1000
    band = _BANDS.get(result.final_reason, "none")
    places = {each.number: place for place, each in enumerate(result.citations)}
    return RunRecord(
        id=question.id,
        answer=tuple(part.text for part in result.parts),
        supports=tuple(tuple(places[number] for number in part.citations) for part in result.parts),
        citations=await _checked(memory, result.citations, site.visible),
        ms=ms,
        abstained=band == "none",
        confidence=result.confidence,
        confidence_band=band,
        degraded=result.degraded,
    )


_BANDS: dict[FinalReason, str] = {
    "confidence_high": "high",
    "confidence_medium_caveated": "medium",
    "confidence_low_partial": "low",
}


async def _checked(
    memory: "WebRAG", citations: Sequence[CitationSpan], visible: VisiblePages | None
) -> tuple[CitationRecord, ...]:
    records = []
    for each in citations:
        quote = each.verbatim_text
        stored = await memory.markdown(each.source_url) or ""
        exact = bool(quote) and stored[each.char_start : each.char_end] == quote
        records.append(
            CitationRecord(
                url=each.source_url,
                verbatim_text=quote,
                char_start=each.char_start,
                char_end=each.char_end,
                verbatim=exact and (visible is None or visible.shows(each.source_url, quote)),
            )
        )
    return tuple(records)


@dataclass
class Evaluation:
    """One run over a set of questions, each asked in several ways; `out` gets a line of each."""

    sites: Mapping[str, Site]
    memory: "WebRAG"
    _: KW_ONLY
    out: TextIO
    on_progress: EvaluationProgress
    ways: Sequence[Way] = (ask_evidence,)
    warnings: list[str] = field(default_factory=list)

    async def run_whole(
        self, questions: Sequence[Question], *, max_pages: int = 1000
    ) -> list[RunRecord]:
        """Ingest each site entirely, then search it for each of its questions.

        A site without a page list is crawled, `max_pages` at most. Gives one record per question
        and way; a question that fails has its error recorded.
        """
        for name in dict.fromkeys(question.site for question in questions):
            await self._ingest(name, max_pages)
        return await self.run_stored(questions)

    async def run_stored(self, questions: Sequence[Question]) -> list[RunRecord]:
        """Search what is stored for each question, as `run_whole` does; nothing is ingested."""
        records: list[RunRecord] = []
        for done, question in enumerate(questions, start=1):
            address = self.sites[question.site].base_url
            where = {"sites": site_of(address) if address else None}
            records += await self._asked(question, where)
            self.on_progress("questions", done, len(questions))
        return records

    async def run_seed(self, questions: Sequence[Question], *, deep: bool) -> list[RunRecord]:
        """Answer each question from its seed page, and links if `deep`, in a corpus made empty."""
        records: list[RunRecord] = []
        for done, question in enumerate(questions, start=1):
            seed = urljoin(self.sites[question.site].base_url, question.seed_url)
            where = {"urls": seed, "research_mode": "deep" if deep else "fast"}
            await self.memory.clear()
            records += await self._asked(question, where)
            self.on_progress("questions", done, len(questions))
        return records

    async def _ingest(self, name: str, max_pages: int) -> None:
        site = self.sites[name]
        stage = f"ingest {name or site.base_url}"
        if site.pages is None:
            crawled = await self.memory.ingest_site(
                site.base_url,
                CrawlOptions(max_pages=max_pages),
                on_progress=lambda at: self.on_progress(stage, at.done, at.done + at.queued),
            )
            self.warnings += _crawl_warnings(site.base_url, crawled, max_pages)
            return
        urls = [urljoin(site.base_url, page) for page in site.pages]
        done = itertools.count(1)
        report = await self.memory.ingest(
            urls, on_page=lambda *_: self.on_progress(stage, next(done), len(urls))
        )
        if report.failed:
            url, reason = next(iter(report.failed.items()))
            self.warnings.append(
                f"{len(report.failed)} of {len(urls)} pages of {name or site.base_url} could not be"
                f" ingested, for example {url}: {reason}"
            )

    async def _asked(self, question: Question, where: Mapping[str, Any]) -> list[RunRecord]:
        records = []
        for ask in self.ways:
            started = time.perf_counter()
            try:
                record = await ask(self.memory, question, self.sites[question.site], where)
            except WebRAGError as error:
                ms = (time.perf_counter() - started) * 1000
                record = RunRecord(id=question.id, ms=ms, abstained=True, error=str(error))
            write_record(self.out, record)
            records.append(record)
        return records


def _crawl_warnings(base_url: str, crawled: SiteReport, max_pages: int) -> list[str]:
    warnings = []
    if crawled.ended == "limit":
        warnings.append(
            f"The crawl of {base_url} stopped after {max_pages} pages with {crawled.queued} more"
            " known; evidence on pages left out counts as missed. Raise --max-pages."
        )
    if crawled.ended == "unreachable":
        warnings.append(f"{base_url} stopped answering before it was crawled completely.")
    if crawled.skipped:
        reasons = "; ".join(f"{count:,}: {reason}" for reason, count in crawled.skipped.items())
        warnings.append(
            f"The crawl of {base_url} left {crawled.left_alone:,} addresses alone ({reasons});"
            " evidence on them counts as missed."
        )
    if crawled.failures:
        url, reason = next(iter(crawled.failures.items()))
        count = sum(crawled.failed.values())
        warnings.append(f"{count} pages could not be ingested, for example {url}: {reason}")
    return warnings


_MOST_REPLIES: Final = 25  # 70 calls of fetch answered 32 questions
_NOT_FOUND: Final = "NOT FOUND"
_TASK: Final = """\
Answer the question with your tools alone, from the pages at {start} and those they link to.
Do not answer from memory. When you know the answer, write it in a few sentences, and below it quote
every sentence of the pages that it rests on, word for word, each on a line that begins with "> ".
If the pages do not answer it, write {not_found} and quote nothing.

Question: {question}"""


class Tools(NamedTuple):
    """Tools of a model, as chat completions take them, instructions, and what calls one by name."""

    name: str
    described: Sequence[Mapping[str, Any]]
    call: Callable[[str, dict[str, Any]], Awaitable[str]]
    instructions: str = ""


OpenTools = Callable[["WebRAG"], AbstractAsyncContextManager[Tools]]


def tool(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a tool as chat completions take it, its arguments by a JSON Schema."""
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def answering_with(llm: "FunctionCallingLLM", open_tools: OpenTools) -> Way:
    """Make a way to ask a question: of a model that has some tools and nothing else."""

    async def ask(
        memory: "WebRAG", question: Question, site: Site, _where: Mapping[str, Any]
    ) -> RunRecord:
        start = urljoin(site.base_url, question.seed_url)
        async with open_tools(memory) as tools:
            return await _answered(llm, tools, question, start)

    return ask


async def _answered(
    llm: "FunctionCallingLLM", tools: Tools, question: Question, start: str
) -> RunRecord:
    from llama_index.core.llms import ChatMessage

    task = _TASK.format(start=start, question=question.query, not_found=_NOT_FOUND)
    messages = [ChatMessage(content=task)]
    if tools.instructions:
        messages.insert(0, ChatMessage(content=tools.instructions, role="system"))
    read: list[str] = []
    said, error = "", f"The model gave no answer in {_MOST_REPLIES} replies."
    started = time.perf_counter()
    try:
        for _ in range(_MOST_REPLIES):
            response = await chat(llm, messages, tools=list(tools.described))
            messages.append(response.message)
            calls = llm.get_tool_calls_from_response(response, error_on_no_tool_call=False)
            if not calls:
                said, error = response.message.content or "", ""
                break
            for call in calls:
                read.append(await tools.call(call.tool_name, call.tool_kwargs))
                replied = {"tool_call_id": call.tool_id}
                messages.append(
                    ChatMessage(content=read[-1], role="tool", additional_kwargs=replied)
                )
    except WebRAGError as failure:
        error = str(failure)
    shown = comparison_key("".join(read))
    return RunRecord(
        id=question.id,
        tools=tools.name,
        answer=(said,) if said else (),
        citations=tuple(
            CitationRecord(url="", verbatim_text=quote, verbatim=comparison_key(quote) in shown)
            for quote in re.findall(r"^[ \t]*+>[ \t]*+(\S.*)$", said, re.MULTILINE)
        ),
        calls=len(read),
        characters=sum(map(len, read)),
        ms=(time.perf_counter() - started) * 1000,
        abstained=_NOT_FOUND in said,
        error=error or None,
    )


_FETCH: Final = tool(
    "fetch",
    "Fetch a web page as Markdown. A long page comes in parts.",
    {
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": "Address of the page."},
            "max_length": {"type": "integer", "description": "Characters at most; 5000 if unset."},
            "start_index": {"type": "integer", "description": "Character to begin at; 0 if unset."},
        },
        "required": ["url"],
    },
)
_PART: Final = 5000  # as the reference fetch server of MCP has it


@asynccontextmanager
async def fetch_tools(memory: "WebRAG") -> AsyncIterator[Tools]:
    """Give the one tool of a model without WebRAG: it reads the same pages, in full, with links."""

    async def call(_name: str, arguments: dict[str, Any]) -> str:
        try:
            url, start = str(arguments["url"]), int(arguments.get("start_index") or 0)
            end = start + int(arguments.get("max_length") or _PART)
            report = await memory.ingest(url)
            for reason in report.failed.values():
                return f"Error: {reason}"
            text = await _with_links(memory, report.pages[0].url)
        except (KeyError, TypeError, ValueError, WebRAGError) as error:
            return f"Error: {error}"
        more = f"\n\nCut; call fetch with a start_index of {end} for more." if text[end:] else ""
        return text[start:end] + more

    yield Tools("fetch", [_FETCH], call)


async def _with_links(memory: "WebRAG", url: str) -> str:
    text, others = await memory.markdown(url) or "", []
    links = await memory.links([url])
    for link in sorted(links, key=lambda link: link.char_start or -1, reverse=True):
        if link.char_start is None:
            others.append(f"- [{link.title}]({link.url})")
            continue
        words = text[link.char_start : link.char_end]
        text = f"{text[: link.char_start]}[{words}]({link.url}){text[link.char_end :]}"
    return "\n".join([text, *others])

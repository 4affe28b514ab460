"""Lets a model answer with tools alone, WebRAG's or a plain fetch, and counts what that cost."""

import re
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urljoin

from webrag.answering.language_model import chat
from webrag.errors import WebRAGError
from webrag.evaluation.metrics import comparison_key, score_answer
from webrag.evaluation.questions import CitationRecord, Question, RunRecord
from webrag.evaluation.runner import Site, Way

if TYPE_CHECKING:
    from llama_index.core.llms.function_calling import FunctionCallingLLM

    from webrag.app import WebRAG

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


def agent_figures(
    questions: Sequence[Question], records: Sequence[RunRecord]
) -> list[tuple[str, ...]]:
    """Header, and a row per figure with a column for each kind of tools."""
    kinds = list(dict.fromkeys(record.tools for record in records))
    columns = [_column(questions, [r for r in records if r.tools == kind]) for kind in kinds]
    return [("", *kinds), *((name, *(each[name] for each in columns)) for name in columns[0])]


def _column(questions: Sequence[Question], records: Sequence[RunRecord]) -> dict[str, str]:
    asked = {question.id: question for question in questions}
    verdicts = [score_answer(asked[record.id], record).verdict for record in records]
    unanswerable = [record for record in records if asked[record.id].gold == ()]
    quoted = [citation.verbatim for record in records for citation in record.citations]
    characters = [record.characters for record in records]
    return {
        "answerable": str(len(records) - verdicts.count(None)),
        "right, all gold in the answer": str(verdicts.count("right")),
        "half right": str(verdicts.count("half")),
        "said to be not found": str(
            sum(r.abstained for r, v in zip(records, verdicts, strict=True) if v)
        ),
        "unanswerable": str(len(unanswerable)),
        "unanswerable, said so": str(sum(record.abstained for record in unanswerable)),
        "failed": str(sum(record.error is not None for record in records)),
        "calls": str(sum(record.calls for record in records)),
        "characters read": f"{sum(characters):,}",
        "characters per question, p50": f"{statistics.median(characters):,.0f}",
        "seconds": f"{sum(record.ms for record in records) / 1000:.1f}",
        "quotations": str(len(quoted)),
        "quotations that the tools showed": str(sum(quoted)),
    }

"""`webrag answer` and `webrag search`: a question in, the best quotation and its place out."""

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from webrag.cli.options import (
    Reading,
    asked_question,
    command_line,
    question_command,
    run_options,
    sites_and_pages,
    split_named,
)
from webrag.cli.output import print_either, print_json, print_text
from webrag.cli.running import run, run_opened, run_progress, step_progress
from webrag.concurrency import in_background
from webrag.ingestion.addresses import host_of, split_words
from webrag.presentation.untrusted import clean_block

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webrag.answering.models import AnswerCitation, AnswerEvent, AnswerPart, ManagerResult
    from webrag.app import WebRAG
    from webrag.orchestration.models import OrchestrationResult
    from webrag.presentation.results import CommandLine, ResultDocument
    from webrag.question import Question

_T = TypeVar("_T")


@question_command(
    "answer",
    *("wordings", "parts", "urls", "research_mode", "expansion_budget", "sites", "years", "as_of"),
    *("retrieval_mode", "intent", "known_context", "constraints"),
    short_help="Answer a question from a web page, file or folder.",
)
@click.argument("words", nargs=-1, required=True, metavar="URL QUESTION")
def answer_command(ctx: click.Context, /, words: tuple[str, ...], **given: Any) -> None:
    """Fetch URL, store it, and print what answers QUESTION: the best quotation, then passages.

    URL may be the path of a file or folder; with --deep links from file to file are followed.
    The question may come first, and goes without quotation marks.

    \b
    webrag answer https://docs.python.org/3/library/asyncio.html "How is a task cancelled?"
    webrag answer URL "question" --deep --budget 3
    webrag answer URL "How is a task cancelled?" --wording "Task.cancel() CancelledError"
    """  # noqa: D301  click takes the backspace for "do not rewrap"
    from webrag.ingestion.files.folder import check_named, named_address

    reading = Reading.taken_from(given)
    check = check_named if given["as_of"] is None else named_address
    named, question = split_named(words)
    urls = tuple(map(check, (*named, *given.pop("urls"))))
    asked = asked_question(question, given, urls=urls, top_k=reading.top_k)
    run(_print_evidence(ctx, asked, reading))


@question_command(
    "search",
    *("wordings", "parts", "source_urls", "sites", "years", "fetched_since", "as_of", "has"),
    *("retrieval_mode", "intent"),
    short_help="Search what is stored; fetches nothing.",
)
@click.argument("words", nargs=-1, required=True, metavar="QUESTION")
def search_command(ctx: click.Context, /, words: tuple[str, ...], **given: Any) -> None:
    """Print what answers QUESTION in the pages stored so far.

    An address before or after the question counts as --url, a host alone as --site. Exit code 1
    when there is no stored page to search.
    """
    reading = Reading.taken_from(given)
    named, question = split_words(words)
    hosts, pages = sites_and_pages((*named, *given["source_urls"]))
    given["sites"] = (*hosts, *given["sites"])
    asked = asked_question(question, given, source_urls=pages or None, top_k=reading.top_k)
    result = run(_print_evidence(ctx, asked, reading))
    if not result.corpus_stats.total_parent_chunks:
        ctx.exit(1)


async def _print_evidence(
    ctx: click.Context, question: "Question", reading: Reading
) -> "OrchestrationResult":
    from webrag.app import WebRAG

    options = run_options(ctx)
    with run_progress(quiet=options.quiet, verbose=bool(options.verbose)) as progress:
        await progress("start", "Opening what is stored")
        async with WebRAG(ctx.obj) as rag:
            result = await rag.evidence_for(question, on_progress=progress)
            text, document = await in_background(
                _presented, rag, result, question, reading, command_line(ctx)
            )
    print_either(ctx, document, text, pager=not reading.no_pager, has_links=not reading.full)
    return result


def _presented(
    rag: "WebRAG",
    result: "OrchestrationResult",
    question: "Question",
    reading: Reading,
    line: "CommandLine",
) -> "tuple[str, ResultDocument]":
    """A result for a terminal and for a program, of at most so many tokens where that is asked."""
    from webrag.presentation.results import format_result, result_document

    max_tokens, place = reading.max_tokens, _place(question)
    passages = rag.best_passages(result, at_most=reading.top_k)
    if reading.full:
        text = rag.brief(result, max_tokens=max_tokens)
    else:
        show = partial(format_result, result, command=line, place=place)
        text = show(_fitting(passages, show, max_tokens, rag.count_tokens))
    document = result_document(result, passages)
    if max_tokens is not None:
        document = document.within(max_tokens, rag.count_tokens)
    return text, document


def _fitting(
    items: "Sequence[_T]",
    show: "Callable[[Sequence[_T]], str]",
    max_tokens: int | None,
    count_tokens: "Callable[[str], int]",
) -> "Sequence[_T]":
    """The first items whose text has at most so many tokens; one in any case."""
    while max_tokens is not None and len(items) > 1 and count_tokens(show(items)) > max_tokens:
        items = items[:-1]
    return items


def _place(question: "Question") -> str:
    """The page or site that is asked about, for the command that reads more of it."""
    named = (*question.urls, *(question.source_urls or ()), *(question.sites or ()))
    return next((each for each in named if each.startswith("http") or host_of(each)), "URL")


@question_command(
    "ask",
    *("wordings", "parts", "urls", "sites", "years", "as_of", "research_mode"),
    short_help="Answer a question in sentences, each with citations.",
)
@click.argument("words", nargs=-1, required=True, metavar="QUESTION")
def ask_command(ctx: click.Context, /, words: tuple[str, ...], **given: Any) -> None:
    """Answer QUESTION from the pages stored so far, or from --url.

    An address before or after the question counts as --url, a host alone as --site. Exit code 1
    when there is no page to search.

    \b
    webrag ask "How is a task cancelled?"
    webrag ask "How is a task cancelled?" --url https://docs.python.org/3/library/asyncio-task.html
    webrag ask "What changed in the release?" --year 2025 --year 2026
    webrag ask "How is a task cancelled?" --wording "Task.cancel()" --wording "CancelledError"
    """  # noqa: D301  click takes the backspace for "do not rewrap"
    from webrag.answering.planning import check_answerable
    from webrag.ingestion.files.folder import check_named

    options, reading = run_options(ctx), Reading.taken_from(given)
    named, question = split_words(words)
    hosts, pages = sites_and_pages((*named, *given.pop("urls")))
    given["sites"] = (*hosts, *given["sites"])
    # What is shortened or paged is known at the end only.
    is_whole = reading.max_tokens is None and reading.top_k is None
    writer = _Writer(streams=is_whole and not options.json)
    if given["as_of"] is None:
        pages = tuple(map(check_named, pages))
    asked = asked_question(question, given, urls=pages)
    check_answerable(asked)

    async def ask(rag: "WebRAG") -> "tuple[ManagerResult, str]":
        result = await rag.answer_to(asked, on_event=writer.tell)
        return _fitted(result, asked, reading, rag.count_tokens, command_line(ctx))

    with step_progress(quiet=options.quiet) as writer.show_step:
        result, details = run_opened(ctx.obj, ask, quiet=options.quiet)
    is_empty = result.state != "fail" and not (result.retrieval and result.retrieval.documents)
    if is_empty and asked.sites:
        said = f"Nothing of {', '.join(asked.sites)} is stored."
        result = result.model_copy(update={"answer": said, "notice": said})
    if options.json:
        from webrag.presentation.answer import answer_document

        print_json(answer_document(result))
    else:
        writer.finish(result, details, pager=not reading.no_pager)
    if is_empty or result.state == "fail":
        ctx.exit(1)


def _fitted(
    result: "ManagerResult",
    question: "Question",
    reading: Reading,
    count_tokens: "Callable[[str], int]",
    line: "CommandLine",
) -> "tuple[ManagerResult, str]":
    """The result with so many citations as are to be printed, and what is said below it."""
    from webrag.presentation.answer import (
        first_cited,
        format_answer,
        format_brief_details,
        format_details,
    )

    brief = partial(format_brief_details, command=line, place=_place(question))
    show = format_details if reading.full else brief

    def text(citations: "Sequence[AnswerCitation]") -> str:
        shown = first_cited(result, len(citations))
        return format_answer(shown, show(shown))

    first = result.citations[: reading.top_k]
    cited = _fitting(first, text, reading.max_tokens, count_tokens)
    shown = first_cited(result, len(cited))
    return shown, show(shown)


class _Writer:
    """Prints sentences as they arrive, and steps to the progress line until then."""

    def __init__(self, *, streams: bool) -> None:
        self.show_step: Callable[[str], None] = lambda _text: None
        self._streams = streams
        self._has_written = False
        self._rows: list[AnswerPart] = []
        self._citations: list[AnswerCitation] = []

    def tell(self, event: "AnswerEvent") -> None:
        from webrag.presentation.steps import STEPS

        if event.kind == "step" and not self._has_written:
            self.show_step(STEPS.get(event.detail, event.detail))
        self._citations += event.citations
        if event.part is not None and self._streams:
            self.show_step("")
            self._has_written = True
            if event.part.kind == "table":
                self._rows.append(event.part)  # a header waits for its rows
            else:
                self._print_rows()
                click.echo(f"{clean_block(event.detail)}\n")

    def _print_rows(self) -> None:
        from webrag.answering.manager import part_text, whole_tables

        for table in whole_tables(self._rows, self._citations):
            click.echo(f"{clean_block(part_text(table))}\n")
        self._rows.clear()

    def finish(self, result: "ManagerResult", details: str, *, pager: bool) -> None:
        """Print what has not arrived yet: all of an answer without sentences, else its rest."""
        from webrag.presentation.answer import format_answer

        if not self._has_written:
            print_text(format_answer(result, details), pager=pager, has_links=True)
            return
        self._print_rows()
        if result.notice:
            click.echo(f"{clean_block(result.notice)}\n")
        print_text(details, has_links=True)

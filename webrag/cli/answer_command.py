"""`webrag answer` and `webrag search`: a question in, the best quotation and its place out."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from webrag.cli.options import (
    as_of_option,
    json_option,
    parse_moment,
    reading_options,
    run_options,
    site_option,
    url_option,
    version_option,
    versioned_sites,
    with_settings,
    wordings_option,
    year_option,
)
from webrag.cli.output import print_json, print_text
from webrag.cli.progress import run_progress
from webrag.cli.running import run
from webrag.concurrency import in_background

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from webrag.app import WebRAG
    from webrag.orchestration.models import OrchestrationResult
    from webrag.presentation.results import ResultDocument
    from webrag.settings import Settings

_INTENTS = click.Choice(["factual", "comparison", "how_to", "exploratory"])
_mode_option = click.option(
    "--mode",
    type=click.Choice(["chunk", "full_context", "auto"]),
    default="chunk",
    show_default=True,
    help="Select passages, return the pages whole, or decide by size.",
)
_intent_option = click.option("--intent", type=_INTENTS, help="Kind of question, if you know it.")


@with_settings
@click.command("answer", short_help="Answer a question from a web page, file or folder.")
@click.argument("url")
@click.argument("question")
@wordings_option
@click.option(
    "--also",
    "--url",
    "also",
    multiple=True,
    metavar="URL",
    help="Start from this page too. Repeatable.",
)
@click.option("--deep", is_flag=True, help="Follow links where the evidence is too thin.")
@click.option(
    "--budget", type=click.IntRange(min=0), metavar="N", help="Rounds of link following at most."
)
@site_option
@version_option
@year_option
@as_of_option
@_mode_option
@_intent_option
@reading_options
@json_option
@click.pass_context
def answer_command(ctx: click.Context, /, url: str, question: str, **options: Any) -> None:
    """Fetch URL, index it, and print what answers QUESTION: the best quotation, then passages.

    URL may be the path of a file or folder; with --deep links from file to file are followed.

    \b
    webrag answer https://docs.python.org/3/library/asyncio.html "How is a task cancelled?"
    webrag answer URL "question" --deep --budget 3
    webrag answer URL "How is a task cancelled?" --wording "Task.cancel() CancelledError"
    """  # noqa: D301  click takes the backspace for "do not rewrap"
    run(_answer(ctx, url, question, **options))


@with_settings
@click.command("search", short_help="Search what is stored; fetches nothing.")
@click.argument("question")
@wordings_option
@url_option
@site_option
@version_option
@year_option
@click.option(
    "--fetched-since",
    callback=parse_moment,
    metavar="DATE|AGE",
    help="Only pages confirmed since: 2026-05-31, 7d.",
)
@as_of_option
@click.option(
    "--has",
    type=click.Choice(["table", "code", "math", "definition_list", "admonition", "steps"]),
    multiple=True,
    help="Only passages that hold this. Repeatable; all must hold.",
)
@_mode_option
@_intent_option
@reading_options
@json_option
@click.pass_context
def search_command(ctx: click.Context, /, question: str, **options: Any) -> None:
    """Print what answers QUESTION in the pages stored so far.

    Exit code 1 when --site or --url names nothing that is stored.
    """
    run(_search(ctx, question, **options))


@dataclass(frozen=True)
class Shown:
    """A result as it is printed.

    Attributes:
        text: For people.
        document: For programs.
    """

    text: str
    document: "ResultDocument"


def print_result(shown: Shown, *, as_json: bool, pager: bool = False) -> None:
    """Print a result for a person, or as JSON for a program."""
    if as_json:
        print_json(shown.document.model_dump(mode="json"))
    else:
        print_text(shown.text, pager=pager)


async def _answer(
    ctx: click.Context,
    url: str,
    question: str,
    *,
    wordings: tuple[str, ...],
    also: tuple[str, ...],
    deep: bool,
    budget: int | None,
    site: tuple[str, ...],
    version: str | None,
    year: tuple[int, ...],
    as_of: "datetime | None",
    mode: Any,
    intent: Any,
    full: bool,
    top_k: int | None,
    max_tokens: int | None,
    no_pager: bool,
) -> None:
    from webrag.ingestion.files.naming import check_named, named_address
    from webrag.presentation.results import narrowed
    from webrag.retrieval.filters import SearchFilters

    options = run_options(ctx)
    _check(question, wordings, [url, *also], check_named if as_of is None else named_address)
    wanted = SearchFilters.of(sites=versioned_sites(site, version) or None, years=year or None)
    with run_progress(quiet=options.quiet, verbose=bool(options.verbose)) as progress:
        await progress("start", "opening the corpus")
        async with _open(ctx.obj) as rag:
            result = await rag.answer(
                [url, *also],
                question,
                wordings=wordings,
                intent=intent,
                expansion_budget=budget,
                research_mode="deep" if deep else "fast",
                retrieval_mode=mode,
                as_of=as_of,
                on_progress=progress,
            )
            result = narrowed(result, wanted, top_k)
            shown = await in_background(
                presented, rag, result, full=full, top_k=top_k, max_tokens=max_tokens
            )
    print_result(shown, as_json=options.json, pager=not no_pager)


async def _search(
    ctx: click.Context,
    question: str,
    *,
    wordings: tuple[str, ...],
    url: tuple[str, ...],
    site: tuple[str, ...],
    version: str | None,
    year: tuple[int, ...],
    fetched_since: "datetime | None",
    has: tuple[Any, ...],
    as_of: "datetime | None",
    mode: Any,
    intent: Any,
    full: bool,
    top_k: int | None,
    max_tokens: int | None,
    no_pager: bool,
) -> None:
    from webrag.ingestion.files.naming import named_address

    options = run_options(ctx)
    _check(question, wordings, url, named_address)
    with run_progress(quiet=options.quiet, verbose=bool(options.verbose)) as progress:
        await progress("start", "opening the corpus")
        async with _open(ctx.obj) as rag:
            result = await rag.search(
                question,
                wordings=wordings,
                source_urls=url or None,
                sites=versioned_sites(site, version) or None,
                years=year or None,
                fetched_since=fetched_since,
                has=has,
                intent=intent,
                top_k=top_k,
                retrieval_mode=mode,
                as_of=as_of,
                on_progress=progress,
            )
            shown = await in_background(
                presented, rag, result, full=full, top_k=top_k, max_tokens=max_tokens
            )
    print_result(shown, as_json=options.json, pager=not no_pager)
    if (site or url or version) and not result.corpus_stats.total_parent_chunks:
        ctx.exit(1)


def _check(
    question: str,
    wordings: "Sequence[str]",
    urls: "Sequence[str]",
    check_url: "Callable[[str], str]",
) -> None:
    """Refuse what cannot be used before anything is started for it."""
    from webrag.argument_checks import checked_wordings

    for url in urls:
        check_url(url)
    from webrag.app import check_question

    check_question(question)
    checked_wordings(question, wordings)


def presented(
    rag: "WebRAG",
    result: "OrchestrationResult",
    *,
    full: bool,
    top_k: int | None = None,
    max_tokens: int | None = None,
) -> Shown:
    """A result for a terminal and for a program, of at most so many tokens where that is asked."""
    from webrag.presentation.results import format_result, result_document

    passages = rag.best_passages(result, at_most=top_k)
    if full:
        text = rag.brief(result, max_tokens=max_tokens)
    else:
        shown = list(passages)
        text = format_result(result, shown)
        while max_tokens is not None and len(shown) > 1 and rag.count_tokens(text) > max_tokens:
            text = format_result(result, shown := shown[:-1])
    document = result_document(result, passages)
    if max_tokens is not None:
        document = document.within(max_tokens, rag.count_tokens)
    return Shown(text, document)


def _open(settings: "Settings") -> "WebRAG":
    from webrag.app import WebRAG

    return WebRAG(settings)

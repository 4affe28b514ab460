"""`webrag answer` and `webrag search`: a question in, a brief out."""

from typing import TYPE_CHECKING, Any

import click

from webrag.argument_checks import LEAST_MAX_TOKENS
from webrag.cli.options import (
    json_option,
    parse_moment,
    run_options,
    with_settings,
    wordings_option,
)
from webrag.cli.output import print_brief, print_json
from webrag.cli.progress import run_progress
from webrag.cli.running import run
from webrag.concurrency import in_background

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from webrag.app import WebRAG
    from webrag.orchestration.models import OrchestrationResult
    from webrag.presentation.brief.models import EvidenceBlock
    from webrag.settings import Settings

__all__ = ["answer_command", "print_result", "search_command"]

_INTENTS = click.Choice(["factual", "comparison", "how_to", "exploratory"])
_mode_option = click.option(
    "--mode",
    type=click.Choice(["chunk", "full_context", "auto"]),
    default="chunk",
    show_default=True,
    help="Select passages, return the pages whole, or decide by size.",
)
_max_tokens_option = click.option(
    "--max-tokens",
    type=click.IntRange(min=LEAST_MAX_TOKENS),
    metavar="N",
    help="Tokens of the brief at most; 4,000 when left out.",
)
_intent_option = click.option("--intent", type=_INTENTS, help="Kind of question, if you know it.")


@with_settings
@click.command("answer", short_help="Answer a question from a web page.")
@click.argument("url")
@click.argument("question")
@wordings_option
@click.option("--also", multiple=True, metavar="URL", help="Start from this page too. Repeatable.")
@click.option("--deep", is_flag=True, help="Follow links where the evidence is too thin.")
@click.option(
    "--budget", type=click.IntRange(min=0), metavar="N", help="Rounds of link following at most."
)
@_mode_option
@_intent_option
@_max_tokens_option
@json_option
@click.pass_context
def answer_command(ctx: click.Context, /, url: str, question: str, **options: Any) -> None:
    """Fetch URL, index it, and print the evidence that answers QUESTION.

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
@click.option("--url", multiple=True, metavar="URL", help="Only this page. Repeatable.")
@click.option(
    "--site",
    multiple=True,
    metavar="HOST",
    help="Only this host; the address of its root will do. Repeatable.",
)
@click.option(
    "--year",
    type=click.IntRange(1, 9999),
    multiple=True,
    metavar="YEAR",
    help="Only pages published in this year. Repeatable.",
)
@click.option(
    "--fetched-since",
    callback=parse_moment,
    metavar="DATE|AGE",
    help="Only pages confirmed since: 2026-05-31, 7d.",
)
@click.option(
    "--has",
    type=click.Choice(["table", "code", "math", "definition_list", "admonition", "steps"]),
    multiple=True,
    help="Only passages that hold this. Repeatable; all must hold.",
)
@click.option("--top-k", type=click.IntRange(min=1), metavar="N", help="Results at most.")
@_mode_option
@_intent_option
@_max_tokens_option
@json_option
@click.pass_context
def search_command(ctx: click.Context, /, question: str, **options: Any) -> None:
    """Print evidence for QUESTION from the pages stored so far."""
    run(_search(ctx, question, **options))


def print_result(
    result: "OrchestrationResult",
    brief: str,
    evidence: "Sequence[EvidenceBlock]",
    *,
    as_json: bool,
) -> None:
    """Print a result as its brief, or as JSON with everything that is known of it."""
    if not as_json:
        print_brief(brief)
        return
    blocks = [block.model_dump(mode="json") for block in evidence]
    print_json(result.model_dump(mode="json") | {"evidence": blocks, "brief": brief})


async def _answer(
    ctx: click.Context,
    url: str,
    question: str,
    *,
    wordings: tuple[str, ...],
    also: tuple[str, ...],
    deep: bool,
    budget: int | None,
    mode: Any,
    intent: Any,
    max_tokens: int | None,
) -> None:
    options = run_options(ctx)
    _check(question, wordings, [url, *also])
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
                on_progress=progress,
            )
            text, evidence = await in_background(_presented, rag, result, max_tokens)
    print_result(result, text, evidence, as_json=options.json)


async def _search(
    ctx: click.Context,
    question: str,
    *,
    wordings: tuple[str, ...],
    url: tuple[str, ...],
    site: tuple[str, ...],
    year: tuple[int, ...],
    fetched_since: "datetime | None",
    has: tuple[Any, ...],
    top_k: int | None,
    mode: Any,
    intent: Any,
    max_tokens: int | None,
) -> None:
    options = run_options(ctx)
    _check(question, wordings, url)
    with run_progress(quiet=options.quiet, verbose=bool(options.verbose)) as progress:
        await progress("start", "opening the corpus")
        async with _open(ctx.obj) as rag:
            result = await rag.search(
                question,
                wordings=wordings,
                source_urls=url or None,
                sites=site or None,
                years=year or None,
                fetched_since=fetched_since,
                has=has,
                intent=intent,
                top_k=top_k,
                retrieval_mode=mode,
                on_progress=progress,
            )
            text, evidence = await in_background(_presented, rag, result, max_tokens)
    print_result(result, text, evidence, as_json=options.json)


def _check(question: str, wordings: "Sequence[str]", urls: "Sequence[str]") -> None:
    """Refuse what cannot be used before anything is started for it."""
    from webrag.app import check_question
    from webrag.argument_checks import checked_wordings
    from webrag.ingestion.addresses import canonical_url

    for url in urls:
        canonical_url(url)
    check_question(question)
    checked_wordings(question, wordings)


def _presented(
    rag: "WebRAG", result: "OrchestrationResult", max_tokens: int | None
) -> tuple[str, "Sequence[EvidenceBlock]"]:
    brief = rag.brief(result, max_tokens=max_tokens)
    return brief, rag.evidence(result, max_tokens=max_tokens)


def _open(settings: "Settings") -> "WebRAG":
    from webrag.app import WebRAG

    return WebRAG(settings)

"""`webrag demo`: the whole job on the bundled site, with no key, no server and no network."""

import asyncio
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import click

from webrag.cli.options import command, command_line, run_options
from webrag.cli.output import print_either
from webrag.cli.running import run, run_progress
from webrag.errors import DatabaseUnavailableError, InputError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from webrag.orchestration.models import OrchestrationResult
    from webrag.presentation.brief.models import EvidenceBlock
    from webrag.presentation.results import CommandLine, ResultDocument
    from webrag.settings import Settings

COLLECTION = "webrag_demo"
_LONGEST_DEMO_S = 120.0

_PAGE = "https://docs.python.org/3/library/asyncio-task.html"


@command("demo", short_help="See it work: no key, no server, no network.")
def demo_command(ctx: click.Context) -> None:
    """Serve the bundled documentation site on loopback and ask it a question.

    The answer is two links away from the start page, so you see links being followed. Keys and
    DATABASE_URL are not used; the pages go to a collection of their own, made anew on each run.
    """
    text, document = run(_demo(ctx))
    print_either(ctx, document, text, has_links=True)  # the site has stopped by now


def _told(result: "OrchestrationResult", best: "EvidenceBlock", line: "CommandLine") -> str:
    """The question, the best quotation and where it stands, and the command to go on with."""
    from webrag.presentation.reports import counted
    from webrag.presentation.results import quotation_lines

    pages = counted(len(result.urls_fetched), "page")
    seconds = result.timing.total_ms / 1000
    ask = line.of("answer", _PAGE, "How is a task protected from cancellation?")
    return "\n".join(
        [
            f"{result.query}\n",
            *quotation_lines(best),
            f"\nRead {pages} for it in {seconds:.1f} s, from the start page along its links.",
            f"A page of your choice: {ask}",
        ]
    )


async def _demo(ctx: click.Context) -> "tuple[str, ResultDocument]":
    from webrag.demo import QUESTION, START_PAGE, serve_demo_site

    options = run_options(ctx)
    with (
        serve_demo_site() as base_url,
        run_progress(quiet=options.quiet, verbose=bool(options.verbose)) as progress,
    ):
        await progress("start", f"Serving the demo site at {base_url}")
        from webrag.app import WebRAG
        from webrag.presentation.results import result_document

        settings = _demo_settings(ctx.obj, base_url)
        await progress("start", "Starting the embedded database")
        # Opening looks at the collection, which the other demo may be making anew.
        async with _alone(settings), WebRAG(settings) as rag:
            await rag.clear()
            url = urljoin(base_url, START_PAGE)
            await progress("question", QUESTION)
            result = await rag.answer(url, QUESTION, research_mode="deep", on_progress=progress)
            passages = rag.best_passages(result)
            text = _told(result, passages[0], command_line(ctx))
            return text, result_document(result, passages)


@asynccontextmanager
async def _alone(settings: "Settings") -> "AsyncIterator[None]":
    """Wait for a demo that runs in another process: both would empty the collection."""
    from webrag.postgres.embedded.server import exclusive_lock

    def locked() -> None:
        try:
            settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise DatabaseUnavailableError(
                f"The data folder {str(settings.data_dir)!r} cannot be used: {error.strerror}.",
                hint="Set WEBRAG_DATA_DIR, or --data-dir, to a folder that can be written to.",
            ) from error
        stack.enter_context(lock)

    lock = exclusive_lock(settings.data_dir / "demo.lock", timeout_s=_LONGEST_DEMO_S)
    with ExitStack() as stack:
        await asyncio.to_thread(locked)
        yield


def _demo_settings(settings: "Settings", base_url: str) -> "Settings":
    from webrag.ingestion.models import FIRECRAWL_CLOUD_URL

    if settings.origin("collection") == "argument" and settings.collection != COLLECTION:
        raise InputError(
            f"The demo empties its collection, so it uses none but its own, {COLLECTION!r}; "
            "leave out --collection."
        )
    own = settings.allowing([urlsplit(base_url).netloc])
    return own.model_copy(
        update={
            "collection": COLLECTION,
            "database_url": None,
            "firecrawl_api_key": None,
            "firecrawl_api_url": FIRECRAWL_CLOUD_URL,
            "embedding_provider": "bundled",
            "reranker_provider": "local",
            "decomposition_mode": "rule_based",
        }
    )

"""`webrag demo`: the whole job on the bundled site, with no key, no server and no network."""

import asyncio
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import click

from webrag.cli.options import command, command_line, json_option, run_options
from webrag.cli.output import print_either
from webrag.cli.progress import run_progress
from webrag.cli.running import run
from webrag.errors import DatabaseUnavailableError, InputError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from webrag.presentation.brief.models import EvidenceBlock
    from webrag.presentation.results import CommandLine, ResultDocument
    from webrag.settings import Settings

COLLECTION = "webrag_demo"
_LONGEST_DEMO_S = 120.0

_FOLLOW_UPS = "[FOLLOW-UP OPTIONS]"
_PAGE = "https://docs.python.org/3/library/asyncio-task.html"


@command("demo", short_help="See it work: no key, no server, no network.")
@json_option
def demo_command(ctx: click.Context) -> None:
    """Serve the bundled documentation site on loopback and ask it a question.

    The answer is two links away from the start page, so you see links being followed. Keys and
    DATABASE_URL are not used; the pages go to a collection of their own, made anew on each run.
    """
    options = run_options(ctx)
    text, document, evidence = run(_demo(ctx))
    # They suggest questions to a site that has stopped by now.
    print_either(ctx, document, text.partition(_FOLLOW_UPS)[0].rstrip())
    if not (options.json or options.quiet):
        click.echo(_closing(command_line(ctx), document.query, evidence))


def _closing(line: "CommandLine", question: str, evidence: "list[EvidenceBlock]") -> str:
    """What a reader of the last lines needs: question, best quotation, commands that work here."""
    best = next((each for each in evidence if each.citation), None)
    stored = ("search", "How is the embedded database started?", "--collection", COLLECTION)
    found = ""
    if best and best.citation:
        found = f'\n\nBest quotation, from {best.url}:\n"{best.citation.verbatim_text}"'
    return f"""
The question was: {question}{found}

What to try next:
  {line.of(*stored)}
      searches the pages that the demo has stored; its site has stopped, nothing is fetched
  {line.of("answer", _PAGE, "How is a task protected from cancellation?")}
      a page of your choice; add --deep to follow its links where the evidence is too thin
  {line.of("mcp", "--install", "claude-desktop")}
      gives it to an assistant, after asking; also cursor, vscode, codex, gemini, zed and others
  {line.of("web")}
      asks and reads in a browser, and looks after what is stored"""


async def _demo(ctx: click.Context) -> "tuple[str, ResultDocument, list[EvidenceBlock]]":
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
            document = result_document(result, rag.best_passages(result))
            return rag.brief(result), document, rag.evidence(result)


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

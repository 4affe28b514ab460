"""`webrag demo`: the whole job on the bundled site, with no key, no server and no network."""

import asyncio
import shlex
import sys
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import click

from webrag.cli.answer_command import Shown, presented, print_result
from webrag.cli.options import Reading, command, json_option, run_options
from webrag.cli.progress import run_progress
from webrag.cli.running import run
from webrag.concurrency import in_background
from webrag.errors import DatabaseUnavailableError, InputError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from webrag.presentation.brief.models import EvidenceBlock
    from webrag.settings import Settings

COLLECTION = "webrag_demo"
_LONGEST_DEMO_S = 120.0

_FOLLOW_UPS = "[FOLLOW-UP OPTIONS]"


@command("demo", short_help="See it work: no key, no server, no network.")
@json_option
def demo_command(ctx: click.Context) -> None:
    """Serve the bundled documentation site on loopback and ask it a question.

    The answer is two links away from the start page, so you see links being followed. Keys and
    DATABASE_URL are not used; the pages go to a collection of their own, made anew on each run.
    """
    options = run_options(ctx)
    query, shown, evidence = run(_demo(ctx))
    # They suggest questions to a site that has stopped by now.
    brief = shown.text.partition(_FOLLOW_UPS)[0].rstrip()
    print_result(Shown(brief, shown.document), as_json=options.json)
    if not options.json and not options.quiet:
        click.echo(_closing(ctx.obj, query, evidence))


def _closing(settings: "Settings", question: str, evidence: "list[EvidenceBlock]") -> str:
    """What a reader of the last lines needs: question, best quotation, commands that work here."""
    best = next((each for each in evidence if each.citation), None)
    program = _program()
    place = ["--collection", COLLECTION]
    if settings.origin("data_dir") == "argument":
        place += ["--data-dir", str(settings.data_dir)]
    found = ""
    if best and best.citation:
        found = f'\n\nBest quotation, from {best.url}:\n"{best.citation.verbatim_text}"'
    return f"""
The question was: {question}{found}

What to try next:
  {program} search "How is the embedded database started?" {shlex.join(place)}
      searches the pages that the demo has stored; its site has stopped, nothing is fetched
  {program} answer https://docs.python.org/3/library/asyncio-task.html "How do I set a timeout?"
      a page of your choice; add --deep to follow its links where the evidence is too thin
  {program} mcp --install claude-desktop
      gives it to an assistant, after asking; also cursor, vscode, codex, gemini, zed and others
  {program} web
      asks and reads in a browser, and looks after what is stored"""


def _program() -> str:
    """The command that runs WebRAG in this shell.

    A program within a virtual environment is named by its path: `uv run` finds it where the
    shell does not. One outside was put on the search path by whoever installed it.
    """
    program, environment = Path(sys.argv[0]), Path(sys.prefix)
    if program.name == "__main__.py":
        return f"{_path(Path(sys.executable))} -m webrag"
    return _path(program) if program.is_relative_to(environment) else program.name


def _path(program: Path) -> str:
    here = Path.cwd()
    return shlex.quote(str(program.relative_to(here) if program.is_relative_to(here) else program))


async def _demo(ctx: click.Context) -> "tuple[str, Shown, list[EvidenceBlock]]":
    from webrag.demo import QUESTION, START_PAGE, serve_demo_site

    options = run_options(ctx)
    with (
        serve_demo_site() as base_url,
        run_progress(quiet=options.quiet, verbose=bool(options.verbose)) as progress,
    ):
        await progress("start", f"serving the demo site at {base_url}")
        from webrag.app import WebRAG

        settings = _demo_settings(ctx.obj, base_url)
        await progress("start", "starting the embedded database")
        # Opening looks at the collection, which the other demo may be making anew.
        async with _alone(settings), WebRAG(settings) as rag:
            await rag.clear()
            url = urljoin(base_url, START_PAGE)
            await progress("question", QUESTION)
            result = await rag.answer(url, QUESTION, research_mode="deep", on_progress=progress)
            reading = Reading(full=True, top_k=None, max_tokens=None, pager=False)
            shown = await in_background(presented, rag, result, reading)
            return result.query, shown, await in_background(rag.evidence, result)


@asynccontextmanager
async def _alone(settings: "Settings") -> "AsyncIterator[None]":
    """Wait for a demo that runs in another process: both would empty the collection."""
    from webrag.postgres.embedded.locks import exclusive_lock

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
    from webrag.ingestion.firecrawl.models import FIRECRAWL_CLOUD_URL

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

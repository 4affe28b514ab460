"""Runs a command, shows on standard error what is done, and cleans up however it is stopped."""

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from webrag.cli.output import may_be_terminal
from webrag.concurrency import run_in_loop
from webrag.presentation.steps import in_plain_words

if TYPE_CHECKING:
    from rich.console import Console

    from webrag.app import WebRAG
    from webrag.crawling.report import CrawlProgressCallback
    from webrag.jobs.queue import JobQueue
    from webrag.orchestration.models import ProgressCallback
    from webrag.settings import Settings


# Told a text, what is done, and of how many; 0 where that is not known.
_Show = Callable[[str, int, int], None]

_PLAIN_SECONDS = 5.0  # a line per page or question would be noise


@contextmanager
def run_progress(*, quiet: bool, verbose: bool) -> "Iterator[ProgressCallback]":
    """Show the progress of one run, step by step; `verbose`, in lines on terminals too."""
    with _shown(quiet=quiet, is_live=not verbose) as show:

        async def report(
            phase: str, detail: str, iteration: int | None = None, total: int | None = None
        ) -> None:
            of = f" of {total}" if total else ""
            number = "" if iteration is None else f"Round {iteration}{of}: "
            show(f"{number}{in_plain_words(detail) or phase}", 0, 0)

        yield report


@contextmanager
def step_progress(*, quiet: bool) -> "Iterator[Callable[[str], None]]":
    """Progress of an answer, step by step; an empty text ends it, before the first sentence."""
    with ExitStack() as stack:
        show = stack.enter_context(_shown(quiet=quiet))
        yield lambda text: show(text, 0, 0) if text else stack.close()


@contextmanager
def start_progress(text: str, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """Show what is awaited, on a terminal only, until the function is called."""
    with ExitStack() as stack:
        show = stack.enter_context(_shown(quiet=quiet or _terminal() is None))
        show(text, 0, 0)
        yield stack.close


@contextmanager
def crawl_progress(*, quiet: bool) -> "Iterator[CrawlProgressCallback]":
    """Progress of a crawl, whose number of pages is found out on the way."""
    from webrag.presentation.reports import crawl_line

    with _shown(quiet=quiet) as show:
        show("Looking at the start page", 0, 0)
        yield lambda at: show(crawl_line(at), at.done, at.done + at.queued)


@contextmanager
def count_progress(*, quiet: bool) -> "Iterator[Callable[[str, int, int], None]]":
    """Progress of counted work: told what it is, what is done, and of how many."""
    with _shown(quiet=quiet) as show:
        yield lambda what, done, total: show(f"{what}: {done:,} of {total:,}", done, total)


@contextmanager
def _shown(*, quiet: bool, is_live: bool = True) -> "Iterator[_Show]":
    """A line that changes on a terminal, from the first text on; elsewhere lines."""
    with ExitStack() as stack:
        found: list[_Show] = []

        def show(text: str, done: int, total: int) -> None:
            if not found:
                console = _terminal() if is_live else None
                found.append(_plain() if console is None else stack.enter_context(_live(console)))
            found[0](text, done, total)

        yield (lambda _text, _done, _total: None) if quiet else show


def _terminal() -> "Console | None":
    """Standard error where it is a terminal; pipes do without the time `rich` takes."""
    if not may_be_terminal(sys.stderr):
        return None
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    return console if console.is_terminal else None


@contextmanager
def _live(console: "Console") -> "Iterator[_Show]":
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    one_line = Column(no_wrap=True, overflow="ellipsis")
    text = TextColumn("{task.description}", markup=False, table_column=one_line)
    columns = (BarColumn(bar_width=20), TimeElapsedColumn(), text)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("", total=None)
        yield lambda text, done, total: progress.update(
            task, description=text, completed=done, total=total or None
        )


def _plain() -> _Show:
    """Prints every step, and of what is counted now and then a line, and the last."""
    last, shown_at = "", time.monotonic()

    def show(text: str, done: int, total: int) -> None:
        nonlocal last, shown_at
        now = time.monotonic()
        is_due = done == total or (done and now - shown_at >= _PLAIN_SECONDS)
        if is_due and text != last:
            last, shown_at = text, now
            click.echo(text, err=True)

    return show


_TERMINATED = 143  # 128 + SIGTERM, as shells report it

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Give the result of `work`; Ctrl-C and SIGTERM cancel it and let it close what it opened."""
    terminated = False

    async def guarded() -> T:
        task = asyncio.current_task()
        assert task is not None

        def stop() -> None:
            nonlocal terminated
            terminated = True
            task.cancel()

        loop = asyncio.get_running_loop()
        try:
            loop.add_signal_handler(signal.SIGTERM, stop)
        except (NotImplementedError, RuntimeError, ValueError):
            return await work
        try:
            return await work
        finally:
            # What the loop still waits for when it closes must not keep a signal from ending it.
            loop.remove_signal_handler(signal.SIGTERM)

    try:
        return run_in_loop(guarded())
    except asyncio.CancelledError:
        if terminated:
            raise SystemExit(_TERMINATED) from None
        raise


def run_opened(
    settings: "Settings", work: "Callable[[WebRAG], Awaitable[T]]", *, quiet: bool = True
) -> T:
    """Give the result of `work` on a WebRAG that is open meanwhile, showing that it opens."""

    async def opened() -> T:
        from webrag.app import WebRAG

        with start_progress("Opening what is stored", quiet=quiet) as is_open:
            async with WebRAG(settings) as rag:
                is_open()
                return await work(rag)

    return run(opened())


def run_on_jobs(settings: "Settings", work: "Callable[[JobQueue], Awaitable[T]]") -> T:
    """Give the result of `work` on the job queue; refused at once without the extra for it."""
    from webrag.wiring.components import require_workers

    require_workers()
    return run_opened(settings, lambda rag: work(rag.jobs))

"""Shows on standard error what is being done: live on a terminal, in plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from webrag.cli.options import run_options
from webrag.cli.output import may_be_terminal
from webrag.presentation.steps import in_plain_words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from webrag.crawling.report import CrawlProgress, CrawlProgressCallback
    from webrag.evaluation.runner import EvaluationProgress
    from webrag.orchestration.models import ProgressCallback

_PLAIN_SECONDS = 5.0  # a crawl has no total to tell tenths of
_PLAIN_STEPS = 10  # plain progress is told in tenths, a line per question would be noise


@contextmanager
def run_progress(*, quiet: bool, verbose: bool) -> "Iterator[ProgressCallback]":
    """Progress of one run, phase by phase.

    Args:
        quiet: Show nothing.
        verbose: Print a line per phase on terminals too.
    """
    with _line(quiet=quiet, verbose=verbose) as show:

        async def report(
            phase: str, detail: str, iteration: int | None = None, total: int | None = None
        ) -> None:
            show(_sentence(phase, in_plain_words(detail), iteration, total))

        yield report


@contextmanager
def step_progress(*, quiet: bool) -> "Iterator[Callable[[str], None]]":
    """Progress of an answer, step by step; an empty text ends it, before the first sentence."""
    with ExitStack() as stack:
        show = stack.enter_context(_line(quiet=quiet, verbose=False))
        yield lambda text: show(f"{text} ...") if text else stack.close()


@contextmanager
def page_progress(
    *, quiet: bool
) -> "Iterator[tuple[Callable[[int], None], Callable[[bool], None]]]":
    """Progress of fetching pages; tell it how many there are, then whether each was obtained."""
    done = failed = wanted = 0
    advance: Callable[[str, int], None] = lambda _text, _done: None  # noqa: E731 - until it begins

    def text() -> str:
        return f"{done} of {wanted} pages, {failed} failed"

    with ExitStack() as stack:

        def begin(total: int) -> None:
            nonlocal advance, wanted
            wanted = total
            advance = stack.enter_context(_bar(total, text(), quiet=quiet))

        def report(obtained: bool) -> None:
            nonlocal done, failed
            done += 1
            failed += not obtained
            advance(text(), done)

        yield begin, report


@contextmanager
def crawl_progress(*, quiet: bool) -> "Iterator[CrawlProgressCallback]":
    """Progress of a crawl, whose number of pages is found out on the way."""
    if quiet:
        yield lambda _progress: None
        return
    console = _terminal()
    if console is None:
        yield _plain_crawl()
        return
    with _live_bar(console, "looking at the start page", None) as (bar, task):

        def report(progress: "CrawlProgress") -> None:
            total = progress.done + progress.queued
            bar.update(
                task, description=_crawl_text(progress), completed=progress.done, total=total
            )

        yield report


def _plain_crawl() -> "CrawlProgressCallback":
    shown_at = time.monotonic()

    def report(progress: "CrawlProgress") -> None:
        nonlocal shown_at
        now = time.monotonic()
        if now - shown_at >= _PLAIN_SECONDS or not progress.queued:
            shown_at = now
            click.echo(_crawl_text(progress), err=True)

    return report


def _crawl_text(progress: "CrawlProgress") -> str:
    pace = f", {progress.pages_per_second:.1f} pages/s" if progress.pages_per_second else ""
    return (
        f"{progress.done:,} pages done, {progress.queued:,} queued, {progress.failed:,} failed"
        f"{pace}{_left(progress.seconds_left)}"
    )


def _left(seconds: float | None) -> str:
    """What is left of a crawl, as far as its pages are known."""
    if not seconds:
        return ""
    if seconds < _MINUTE:
        return f", about {max(round(seconds), 1)} s left"
    if seconds < 60 * _MINUTE:
        return f", about {round(seconds / _MINUTE)} min left"
    return f", about {seconds / 60 / _MINUTE:.1f} h left"


_MINUTE = 60.0


@contextmanager
def count_progress(what: str, *, quiet: bool) -> "Iterator[Callable[[int, int], None]]":
    """Progress of work whose size is known once it begins; tell it what is done, and of how many.

    Args:
        what: What is being done, as the beginning of the line.
        quiet: Show nothing.
    """
    advance: Callable[[str, int], None] | None = None
    with ExitStack() as stack:

        def report(done: int, total: int) -> None:
            nonlocal advance
            if advance is None:
                advance = stack.enter_context(_bar(total, what, quiet=quiet))
            advance(f"{what}: {done:,} of {total:,}", done)

        yield report


@contextmanager
def evaluation_progress() -> "Iterator[EvaluationProgress]":
    """Progress of an evaluation, stage by stage."""
    ctx = click.get_current_context(silent=True)
    quiet = ctx is not None and run_options(ctx).quiet
    stages: dict[str, Callable[[str, int], None]] = {}
    with ExitStack() as stack:

        def report(stage: str, done: int, total: int) -> None:
            if stage not in stages:
                stack.close()
                stages[stage] = stack.enter_context(_bar(total, stage, quiet=quiet))
            stages[stage](f"{stage}: {done} of {total}", done)

        yield report


def _terminal() -> "Console | None":
    """Standard error where it is a terminal; pipes do without the time `rich` takes."""
    if not may_be_terminal(sys.stderr):
        return None
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    return console if console.is_terminal else None


@contextmanager
def _line(*, quiet: bool, verbose: bool) -> "Iterator[Callable[[str], None]]":
    """One line that changes on a terminal, a line for each text elsewhere."""
    console = None if quiet else _terminal()
    if quiet:
        yield lambda _text: None
    elif console is None or verbose:
        yield _plain_lines()
    else:
        with _live_line(console) as show:
            yield show


def _plain_lines() -> Callable[[str], None]:
    last = ""

    def show(text: str) -> None:
        nonlocal last
        if text != last:
            click.echo(text, err=True)
        last = text

    return show


@contextmanager
def _live_line(console: "Console") -> "Iterator[Callable[[str], None]]":
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    one_line = Column(no_wrap=True, overflow="ellipsis")
    text = TextColumn("{task.description}", markup=False, table_column=one_line)
    columns = (SpinnerColumn(), TimeElapsedColumn(), text)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("", total=None)
        yield lambda text: progress.update(task, description=text)


def _sentence(phase: str, detail: str, iteration: int | None, total: int | None) -> str:
    of = f" of {total}" if total else ""
    number = f" {iteration}{of}" if iteration is not None else ""
    return f"{phase}{number}: {detail}" if detail else f"{phase}{number}"


@contextmanager
def _bar(total: int, text: str, *, quiet: bool) -> "Iterator[Callable[[str, int], None]]":
    if quiet:
        yield lambda _text, _done: None
        return
    console = _terminal()
    if console is None:
        yield _plain_bar(total)
        return
    with _live_bar(console, text, total) as (bar, task):
        yield lambda text, done: bar.update(task, description=text, completed=done)


@contextmanager
def _live_bar(
    console: "Console", text: str, total: int | None
) -> "Iterator[tuple[Progress, TaskID]]":
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
        yield progress, progress.add_task(text, total=total)


def _plain_bar(total: int) -> Callable[[str, int], None]:
    shown = -1

    def advance(text: str, done: int) -> None:
        nonlocal shown
        step = done * _PLAIN_STEPS // total if total else _PLAIN_STEPS
        if step != shown:
            click.echo(text, err=True)
        shown = step

    return advance

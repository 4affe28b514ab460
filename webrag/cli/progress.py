"""Shows on standard error what is being done: live on a terminal, in plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from webrag.cli.output import may_be_terminal
from webrag.presentation.steps import in_plain_words

if TYPE_CHECKING:
    from rich.console import Console

    from webrag.crawling.report import CrawlProgress, CrawlProgressCallback
    from webrag.evaluation.runner import EvaluationProgress
    from webrag.orchestration.models import ProgressCallback

_Show = Callable[[str, int, int], None]

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

    def begin(total: int) -> None:
        nonlocal wanted
        wanted = total
        show(f"0 of {total} pages, 0 failed", 0, total)

    with _bar(_in_tenths(), quiet=quiet) as show:

        def report(obtained: bool) -> None:
            nonlocal done, failed
            done += 1
            failed += not obtained
            show(f"{done} of {wanted} pages, {failed} failed", done, wanted)

        yield begin, report


@contextmanager
def crawl_progress(*, quiet: bool) -> "Iterator[CrawlProgressCallback]":
    """Progress of a crawl, whose number of pages is found out on the way."""
    with _bar(_now_and_then(), quiet=quiet) as show:
        show("looking at the start page", 0, 0)
        yield lambda at: show(_crawl_text(at), at.done, at.done + at.queued)


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
    """Progress of work, told by the beginning of its line, what is done, and of how many."""
    with _bar(_in_tenths(), quiet=quiet) as show:
        yield lambda done, total: show(f"{what}: {done:,} of {total:,}", done, total)


@contextmanager
def evaluation_progress(*, quiet: bool = False) -> "Iterator[EvaluationProgress]":
    """Progress of an evaluation, stage by stage."""
    with _bar(_in_tenths(), quiet=quiet) as show:
        yield lambda stage, done, total: show(f"{stage}: {done} of {total}", done, total)


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
def _bar(plain: "_Show", *, quiet: bool) -> "Iterator[_Show]":
    """A bar on a terminal, from what is shown first on; elsewhere what `plain` prints."""
    with ExitStack() as stack:
        bars: list[_Show] = []

        def show(text: str, done: int, total: int) -> None:
            if not bars:
                console = None if quiet else _terminal()
                bars.append(plain if console is None else stack.enter_context(_live_bar(console)))
            bars[0](text, done, total)

        yield (lambda _text, _done, _total: None) if quiet else show


@contextmanager
def _live_bar(console: "Console") -> "Iterator[_Show]":
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("", total=None)
        yield lambda text, done, total: progress.update(
            task, description=text, completed=done, total=total or None
        )


def _in_tenths() -> "_Show":
    shown = -1

    def show(text: str, done: int, total: int) -> None:
        nonlocal shown
        step = done * _PLAIN_STEPS // total if total else _PLAIN_STEPS
        if done and step != shown:
            shown = step
            click.echo(text, err=True)

    return show


def _now_and_then() -> "_Show":
    shown_at = time.monotonic()

    def show(text: str, done: int, total: int) -> None:
        nonlocal shown_at
        now = time.monotonic()
        if done and (now - shown_at >= _PLAIN_SECONDS or done == total):
            shown_at = now
            click.echo(text, err=True)

    return show

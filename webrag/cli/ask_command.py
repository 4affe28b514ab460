"""`webrag ask`: a question in, an answer in sentences out, as soon as each is checked."""

from typing import TYPE_CHECKING, Any

import click

from webrag.cli.options import json_option, run_options, with_settings, wordings_option
from webrag.cli.output import print_brief, print_json
from webrag.cli.running import run

if TYPE_CHECKING:
    from webrag.answering.models import AnswerEvent, ManagerResult
    from webrag.settings import Settings

__all__ = ["ask_command"]


@with_settings
@click.command("ask", short_help="Answer a question in sentences, each with citations.")
@click.argument("question")
@wordings_option
@click.option("--url", multiple=True, metavar="URL", help="Answer from this page. Repeatable.")
@click.option(
    "--year", multiple=True, type=int, metavar="YEAR", help="Published in this year. Repeatable."
)
@click.option("--deep", is_flag=True, help="Follow links of --url where the evidence is too thin.")
@json_option
@click.pass_context
def ask_command(
    ctx: click.Context,
    /,
    question: str,
    wordings: tuple[str, ...],
    url: tuple[str, ...],
    year: tuple[int, ...],
    deep: bool,
) -> None:
    """Answer QUESTION from the pages stored so far, or from --url.

    \b
    webrag ask "How is a task cancelled?"
    webrag ask "How is a task cancelled?" --url https://docs.python.org/3/library/asyncio-task.html
    webrag ask "What changed in the release?" --year 2025 --year 2026
    webrag ask "How is a task cancelled?" --wording "Task.cancel()" --wording "CancelledError"
    """  # noqa: D301  click takes the backspace for "do not rewrap"
    options = run_options(ctx)
    writer = _Writer(quiet=options.quiet, streams=not options.json)
    asked = {"wordings": wordings, "url": url, "years": year, "deep": deep}
    result = run(_ask(ctx.obj, question, writer, **asked))
    if options.json:
        print_json(result.model_dump(mode="json"))
    else:
        writer.finish(result)
    if result.state == "fail":
        ctx.exit(1)


async def _ask(
    settings: "Settings",
    question: str,
    writer: "_Writer",
    **asked: Any,
) -> "ManagerResult":
    from webrag.answering.planning import answer_request
    from webrag.app import WebRAG, check_question

    # Refuses what cannot be used before anything is started for it.
    check_question(question)
    answer_request(question, **asked)
    async with WebRAG(settings) as rag:
        return await rag.ask(question, **asked, on_event=writer.tell)


class _Writer:
    """Prints sentences as they arrive on standard output, steps on standard error."""

    def __init__(self, *, quiet: bool, streams: bool) -> None:
        self._quiet = quiet
        self._streams = streams
        self._has_written = False

    def tell(self, event: "AnswerEvent") -> None:
        """Print what happened."""
        from webrag.presentation.answer import format_part

        if event.kind == "step" and not self._quiet:
            click.echo(f"{event.detail} ...", err=True)
        if event.kind == "part" and self._streams:
            click.echo(f"{format_part(event.detail)}\n")
            self._has_written = True

    def finish(self, result: "ManagerResult") -> None:
        """Print what has not arrived yet: all of an answer without sentences, else its rest."""
        from webrag.presentation.answer import format_answer, format_details, format_rest

        if not self._has_written:
            print_brief(format_answer(result))
            return
        rest = format_rest(result)
        if rest:
            click.echo(f"{rest}\n")
        print_brief(format_details(result))

"""`webrag ask`: a question in, an answer in sentences out, as soon as each is checked."""

from typing import TYPE_CHECKING, Any

import click

from webrag.cli.options import (
    Reading,
    as_of_option,
    asked_question,
    deep_option,
    json_option,
    reading_options,
    run_options,
    site_option,
    url_option,
    version_option,
    with_settings,
    wordings_option,
    year_option,
)
from webrag.cli.output import print_brief, print_json, print_text
from webrag.cli.running import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from webrag.answering.models import AnswerEvent, ManagerResult
    from webrag.settings import Settings


@with_settings
@click.command("ask", short_help="Answer a question in sentences, each with citations.")
@click.argument("question")
@wordings_option
@url_option
@site_option
@version_option
@year_option
@as_of_option
@deep_option("Follow links of --url where the evidence is too thin.")
@reading_options
@json_option
@click.pass_context
def ask_command(ctx: click.Context, /, question: str, **given: Any) -> None:
    """Answer QUESTION from the pages stored so far, or from --url.

    \b
    webrag ask "How is a task cancelled?"
    webrag ask "How is a task cancelled?" --url https://docs.python.org/3/library/asyncio-task.html
    webrag ask "What changed in the release?" --year 2025 --year 2026
    webrag ask "How is a task cancelled?" --wording "Task.cancel()" --wording "CancelledError"
    """  # noqa: D301  click takes the backspace for "do not rewrap"
    options, reading = run_options(ctx), Reading.taken_from(given)
    # What is shortened or paged is known at the end only.
    streams = not options.json and reading.max_tokens is None
    writer = _Writer(quiet=options.quiet, streams=streams)
    result, count_tokens = run(_ask(ctx.obj, question, given, writer))
    if options.json:
        from webrag.presentation.answer import answer_document

        print_json(answer_document(_shortened(result, reading.top_k)).model_dump(mode="json"))
    else:
        writer.finish(result, reading, count_tokens)
    if result.state == "fail":
        ctx.exit(1)


async def _ask(
    settings: "Settings", text: str, given: dict[str, Any], writer: "_Writer"
) -> "tuple[ManagerResult, Callable[[str], int]]":
    from webrag.answering.planning import check_answerable
    from webrag.app import WebRAG
    from webrag.ingestion.files.naming import check_named, named_address

    check = check_named if given["as_of"] is None else named_address
    question = asked_question(text, given, urls=tuple(map(check, given["urls"])))
    check_answerable(question)
    async with WebRAG(settings) as rag:
        return await rag.answer_to(question, on_event=writer.tell), rag.count_tokens


def _shortened(result: "ManagerResult", top_k: int | None) -> "ManagerResult":
    """The result with its first citations only."""
    return (
        result
        if top_k is None
        else result.model_copy(update={"citations": result.citations[:top_k]})
    )


def _details(
    result: "ManagerResult", said: str, reading: Reading, count_tokens: "Callable[[str], int]"
) -> str:
    """Citations and confidence, as many as there is room for."""
    from webrag.presentation.answer import format_brief_details, format_details

    show = format_details if reading.full else format_brief_details
    left = len(result.citations) if reading.top_k is None else reading.top_k
    text = show(_shortened(result, left))
    while reading.max_tokens is not None and left > 1:
        if count_tokens(f"{said}\n{text}") <= reading.max_tokens:
            break
        left -= 1
        text = show(_shortened(result, left))
    return text


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

    def finish(
        self, result: "ManagerResult", reading: Reading, count_tokens: "Callable[[str], int]"
    ) -> None:
        """Print what has not arrived yet: all of an answer without sentences, else its rest."""
        from webrag.presentation.answer import format_part

        details = _details(result, result.answer, reading, count_tokens)
        if not self._has_written:
            print_text(f"{format_part(result.answer)}\n\n{details}".rstrip(), pager=reading.pager)
            return
        if result.notice:
            click.echo(f"{format_part(result.notice)}\n")
        print_brief(details)

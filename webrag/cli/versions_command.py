"""`webrag compare-versions`: what two stored versions say differently about a question."""

from typing import TYPE_CHECKING

import click

from webrag.cli.options import json_option, run_options, with_settings
from webrag.cli.output import print_json, print_text
from webrag.cli.running import run

if TYPE_CHECKING:
    from webrag.retrieval.version_changes import VersionComparison
    from webrag.settings import Settings


@with_settings
@click.command("compare-versions", short_help="Tell what two stored versions say differently.")
@click.argument("question")
@click.argument("old")
@click.argument("new")
@click.option("--site", metavar="HOST", help="Whose versions OLD and NEW are.")
@click.option(
    "--top-k",
    type=click.IntRange(1, 50),
    default=8,
    show_default=True,
    metavar="N",
    help="Passages of each version at most.",
)
@json_option
@click.pass_context
def compare_versions_command(
    ctx: click.Context, /, question: str, old: str, new: str, site: str | None, top_k: int
) -> None:
    """Find passages for QUESTION in the versions OLD and NEW, and print what changed.

    \b
    webrag compare-versions "How is a task cancelled?" 3.11 3.12 --site docs.python.org
    webrag compare-versions "How is a task cancelled?" docs.python.org@3.11 docs.python.org@3.12
    """  # noqa: D301  click takes the backspace for "do not rewrap"
    from webrag.orchestration.version_comparison import versioned_name
    from webrag.presentation.versions import format_comparison
    from webrag.question import check_question

    check_question(question)
    for version in (old, new):
        versioned_name(version, site)
    comparison = run(_compare(ctx.obj, question, old, new, site, top_k))
    if run_options(ctx).json:
        print_json(comparison.model_dump(mode="json"))
    else:
        print_text(format_comparison(comparison), pager=False)


async def _compare(
    settings: "Settings", question: str, old: str, new: str, site: str | None, top_k: int
) -> "VersionComparison":
    from webrag.app import WebRAG

    async with WebRAG(settings) as rag:
        return await rag.compare_versions(question, old, new, library=site, top_k=top_k)

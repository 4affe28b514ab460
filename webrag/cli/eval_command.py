"""`webrag eval`: judge WebRAG on questions of one's own, and compare two such runs."""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, cast
from urllib.parse import urlsplit

import click

from webrag.cli.options import command, run_options
from webrag.cli.output import print_columns
from webrag.cli.running import run
from webrag.errors import InputError

if TYPE_CHECKING:
    from llama_index.core.llms.function_calling import FunctionCallingLLM

    from webrag.evaluation.questions import Question, RunRecord
    from webrag.evaluation.report import Report
    from webrag.evaluation.runner import Site, Way
    from webrag.settings import Settings

    _Judge = Callable[[Sequence[Question], Sequence[RunRecord]], Report]

_AGENT_REPLY_S: Final = 300.0  # a model on one's own machine reads 50,000 characters in minutes

_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_EXAMPLE = """\b
A line of QUESTIONS, for the folder handbook below --site-root:
{"id": "q1", "site": "handbook", "query": "Who approves travel?",
 "gold": [{"page": "travel.html", "quote": "the head of department approves"}]}
"""


@command("eval", has_json=False, short_help="Judge it on questions of your own.", epilog=_EXAMPLE)
@click.argument("questions", type=click.Path(path_type=Path))
@click.option(
    "--site-root",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder with one folder of HTML files per site; served on loopback.",
)
@click.option("--base-url", help="Root of a site that is served already.")
@click.option(
    "--stored",
    is_flag=True,
    help="Search what is stored in the collection; nothing is fetched or deleted.",
)
@click.option(
    "--setting",
    type=click.Choice(["whole", "seed"]),
    default="whole",
    show_default=True,
    help="whole: ingest the sites, then search. seed: answer from each question's seed page.",
)
@click.option("--deep", is_flag=True, help="With seed: follow links where evidence is too thin.")
@click.option("--ask", is_flag=True, help="Judge answers in sentences, as of `ask`, by the gold.")
@click.option(
    "--agent",
    is_flag=True,
    help="Let the language model answer with the MCP tools alone, then with a plain fetch.",
)
@click.option(
    "--wordings",
    type=_FILE,
    help="JSON Lines with id and phrasings: other wordings, asked together with each question.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Ask the first so many questions only.")
@click.option(
    "--max-pages",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Pages crawled at most with --base-url.",
)
@click.option("--out", type=_FILE, help="Run file to write, one JSON object per question.")
@click.option(
    "--compare",
    type=(click.Path(path_type=Path), click.Path(path_type=Path)),
    metavar="FIRST SECOND",
    help="Compare two run files, question by question; nothing is asked again.",
)
def eval_command(
    ctx: click.Context, /, questions: Path, compare: tuple[Path, Path] | None, **given: Any
) -> None:
    """Ask every question in QUESTIONS and report how good the evidence was.

    QUESTIONS is JSON Lines: id, query, site, seed_url, and gold quotes where you know them;
    wordings, a list, is asked together with the query.

    With --compare each figure is given for both runs, with the 95 % interval of its change and the
    probability that chance alone makes so large a change: by a permutation test of the values, and
    by a sign test of the questions that became better and worse. The questions whose first right
    result moved are listed, those that became worse first.
    """
    from webrag.cli.running import count_progress
    from webrag.evaluation.metrics import gold_warnings
    from webrag.evaluation.questions import load_questions, with_wordings
    from webrag.wiring.language_models import without_language_model

    if compare is not None:
        _compare(questions, *compare)
        return
    _check_options(**given)
    ways, judge = _ways(ctx.obj, ask=given["ask"], agent=given["agent"])
    settings = without_language_model(ctx.obj) if given["agent"] else ctx.obj
    asked, wordings = load_questions(questions, limit=given["limit"]), given["wordings"]
    if wordings is not None:
        asked = with_wordings(asked, wordings)
    with (
        _sites(asked, given["site_root"], given["base_url"]) as sites,
        _run_file(given["out"]) as file,
        count_progress(quiet=run_options(ctx).quiet) as progress,
    ):
        told = {"out": file, "on_progress": progress, "ways": ways}
        records, warnings = run(_run(settings, asked, sites, given, told))
        pages = {name: site.visible for name, site in sites.items()}
        warnings = [*gold_warnings(asked, pages), *warnings]
    judged = judge(asked, records)
    for rows in judged.tables.values():
        print_columns(rows)
        click.echo()
    for what, names in judged.questions.items():
        if names:
            click.echo(f"{what}: {', '.join(names)}")
    # Which figures these are.
    if worded := sum(bool(question.wordings) for question in asked):
        source = wordings or "the questions file"
        click.echo(f"Asked with other wordings: {worded} of {len(asked)} questions, from {source}.")
    else:
        click.echo("Asked without other wordings.")
    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)


def _check_options(
    *, setting: str, stored: bool, deep: bool, ask: bool, agent: bool, **others: Any
) -> None:
    if others["out"] is None:
        raise InputError("Give --out, the run file to write.")
    places = (others["site_root"], others["base_url"])
    if sum(each is not None for each in places) + stored != 1:
        raise InputError("Give one of --site-root, --base-url and --stored.")
    if stored and setting != "whole":
        raise InputError("--setting seed fetches pages; --stored searches those there are.")
    if deep and setting != "seed":
        raise InputError("--deep belongs to --setting seed; searching stored pages never expands.")
    if agent and (ask or deep or stored):
        raise InputError("--agent goes with neither --ask nor --deep nor --stored.")


def _ways(settings: "Settings", *, ask: bool, agent: bool) -> "tuple[Sequence[Way], _Judge]":
    from webrag.evaluation.report import report_agents, report_answers, report_evidence
    from webrag.evaluation.runner import answering_with, ask_answer, ask_evidence, fetch_tools

    if not agent:
        return ([ask_answer], report_answers) if ask else ([ask_evidence], report_evidence)
    from webrag.mcp_server.clients import mcp_tools
    from webrag.wiring.language_models import choose_language_model

    llm = choose_language_model(settings)
    if llm is None:
        raise InputError(
            "--agent needs a model: set ORCHESTRATION_LLM_MODEL with ORCHESTRATION_LLM_API_KEY or "
            "ORCHESTRATION_LLM_BASE_URL."
        )
    patient = cast("FunctionCallingLLM", llm.model_copy(update={"timeout": _AGENT_REPLY_S}))
    return [answering_with(patient, each) for each in (mcp_tools, fetch_tools)], report_agents


async def _run(
    settings: "Settings",
    questions: "Sequence[Question]",
    sites: "Mapping[str, Site]",
    given: "Mapping[str, Any]",
    told: dict[str, Any],
) -> "tuple[list[RunRecord], list[str]]":
    from webrag.app import WebRAG
    from webrag.evaluation.runner import Evaluation

    if given["stored"]:
        async with WebRAG(settings) as rag:
            if not (await rag.status(include_urls=False)).documents:
                raise InputError(
                    f"Nothing is stored in the collection {settings.collection!r}, so every figure "
                    "would be 0: ingest pages first, or name another with --collection."
                )
            run = Evaluation(sites, rag, **told)
            return await run.run_stored(questions), run.warnings
    own = settings.allowing([urlsplit(site.base_url).netloc for site in sites.values()])
    own = own.model_copy(update={"collection": f"webrag_eval_{secrets.token_hex(6)}"})
    async with WebRAG(own) as rag:
        run = Evaluation(sites, rag, **told)
        try:
            if given["setting"] == "whole":
                records = await run.run_whole(questions, max_pages=given["max_pages"])
            else:
                records = await run.run_seed(questions, deep=given["deep"])
            return records, run.warnings
        finally:
            await rag.drop_collection()


@contextmanager
def _run_file(path: Path) -> Iterator[TextIO]:
    """Write a file that takes the place of the run at `path` once the block has ended well.

    The lines of a block that ends badly are kept beside it.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        with _opened(target, path) as device:  # such as /dev/null, which must not be replaced
            yield device
        return
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        with _opened(partial, path) as file:
            yield file
        partial.replace(target)
    except BaseException:
        lines = partial.read_text(encoding="utf-8").count("\n") if partial.exists() else 0
        if lines:
            click.echo(f"The evaluation did not end; its first {lines} lines: {partial}", err=True)
        else:
            partial.unlink(missing_ok=True)
        raise


def _opened(place: Path, path: Path) -> TextIO:
    try:
        return place.open("w", encoding="utf-8")
    except OSError as error:
        raise InputError(f"The file {path} cannot be written: {error.strerror}.") from error


@contextmanager
def _sites(
    questions: "Sequence[Question]", site_root: Path | None, base_url: str | None
) -> "Iterator[dict[str, Site]]":
    from webrag.demo import serve_static_site
    from webrag.evaluation.metrics import VisiblePages
    from webrag.evaluation.runner import Site

    names = list(dict.fromkeys(question.site for question in questions))
    if site_root is None:
        address = f"{base_url.rstrip('/')}/" if base_url else ""
        yield {name: Site(base_url=address) for name in names}
        return
    with ExitStack() as servers:
        sites = {}
        for name in names:
            folder = site_root / name
            if not folder.is_dir():
                root = site_root.resolve()
                other = f"; try --site-root {root.parent}" if root.name == name else ""
                raise InputError(
                    f"The site {name!r} has no folder in {site_root}.",
                    hint=f"--site-root is the folder that holds the folder {name!r}{other}.",
                )
            pages = sorted(
                path.relative_to(folder).as_posix()
                for path in folder.rglob("*")
                if path.suffix in (".html", ".htm")
                and not any(part.startswith(".") for part in path.relative_to(folder).parts)
            )
            address = servers.enter_context(serve_static_site(folder))
            sites[name] = Site(base_url=address, pages=tuple(pages), visible=VisiblePages(folder))
        yield sites


def _compare(questions: Path, first: Path, second: Path) -> None:
    from webrag.evaluation.metrics import compare_scores, moved_questions, score_question
    from webrag.evaluation.questions import load_questions, read_run
    from webrag.evaluation.report import comparison_rows, moved_rows

    asked = load_questions(questions)
    runs = [read_run(first), read_run(second)]
    judged = [
        {each.id: score_question(each, run[each.id]) for each in asked if each.id in run}
        for run in runs
    ]
    figures = compare_scores(*judged)
    if not figures:
        raise InputError(f"No question of {questions} with evidence to find is in both runs.")
    left_out = [each.id for each in asked if not all(each.id in run for run in runs)]
    if left_out:
        named = ", ".join(left_out[:5]) + (" ..." if len(left_out) > 5 else "")
        click.echo(f"Warning: not in both runs and left out: {named}", err=True)
    click.echo(f"Questions compared: {figures[0].questions}; first: {first}, second: {second}\n")
    print_columns(comparison_rows(figures))
    moved = moved_questions(*judged)
    if moved:
        click.echo("\nPlace of the first right result, where it moved:")
        print_columns(moved_rows(moved, asked))

"""`webrag setup` and `webrag config`: the models that are used, and the settings in effect."""

import sys
from typing import TYPE_CHECKING, Any

import click

from webrag.cli.options import command, run_options
from webrag.cli.output import print_columns, print_either, print_json
from webrag.cli.running import run
from webrag.errors import InputError

if TYPE_CHECKING:
    from webrag.settings import Settings


# What people change first.
_USUAL = frozenset(
    {
        "allow_hosts", "browser", "collection", "data_dir", "database_url", "max_pages_per_run",
        "models", "orchestration_llm_api_key", "orchestration_llm_model", "proxy",
    }
)  # fmt: skip


@command("config", short_help="Show the settings in effect.")
@click.option("--all", "everything", is_flag=True, help="Show the rest, too.")
def config_command(ctx: click.Context, everything: bool) -> None:
    """Show the settings that were changed and those that people change, and where values came from.

    Secrets are masked. docs/configuration.md says what each one does; --json holds all of them.
    """
    from webrag.settings.model import sections
    from webrag.settings.variables import variable_names

    settings: Settings = ctx.obj
    is_json = run_options(ctx).json
    fields = type(settings).model_fields
    variables = {name: variable_names(name, info)[-1:] for name, info in fields.items()}

    def is_shown(field: str) -> bool:
        return everything or is_json or field in _USUAL or settings.origin(field) != "default"

    parts = sections()
    shown = {title: list(filter(is_shown, names)) for title, names in parts.items()}
    if is_json:
        print_json(
            {
                variables[name][0]: {"value": settings.shown(name), "origin": settings.origin(name)}
                for names in shown.values()
                for name in names
            }
        )
        return
    for title, names in shown.items():
        if names:
            click.echo(f"{title}:")
            rows = [
                (*variables[name], _text(settings.shown(name)), settings.origin(name))
                for name in names
            ]
            print_columns(rows, indent="  ")
    left = sum(map(len, parts.values())) - sum(map(len, shown.values()))
    if left:
        click.echo(f"{left} more are at their default: --all.")
    click.echo(f"Set them as NAME=VALUE, a line each, in {settings.file}, or in the environment.")


def _text(value: Any) -> str:
    if value is None:
        return "(not set)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(value) or "(none)"
    return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)


@command("setup", short_help="Choose the models: none needed, your own, or a provider's.")
@click.option("--server", metavar="URL|none", help="Server with OpenAI's interface; none for none.")
@click.option("--model", metavar="NAME", help="Model of that server that writes answers.")
@click.option("--key", is_flag=True, help="Ask for its key, or read it from standard input.")
def setup_command(ctx: click.Context, server: str | None, model: str | None, key: bool) -> None:
    """Choose a language model: none, one that is served on this machine, or a provider's.

    Looks for servers here, asks which one to use, tries it, and writes it to the settings file.

    \b
    webrag setup
    webrag setup --server http://127.0.0.1:11434/v1 --model qwen3
    webrag setup --server none
    """  # noqa: D301  click takes the backspace for "do not rewrap"
    if server is None:
        server, model, key = _chosen(model, key=key)
    if server is None:
        return
    from webrag.settings.model import changed_settings, is_fixed
    from webrag.settings.variables import variable_names
    from webrag.wiring.language_models import LANGUAGE_MODEL, tried

    settings: Settings = ctx.obj
    secret = _key() if key and server != "none" else None
    values, seconds = run(tried(settings, server, model, secret))
    with changed_settings(settings, values):
        url, model, path = values[LANGUAGE_MODEL[0]], values[LANGUAGE_MODEL[1]], settings.file
    took = None if url is None else seconds
    said = f"No language model is used. Written to {path}."
    if url is not None:
        said = (
            f"{model} at {url} answers, in {seconds:.1f} s. Written to {path};\n"
            "`webrag setup --server none` takes it out."
        )
    print_either(ctx, {"server": url, "model": model, "seconds": took, "file": path}, said)
    for field in filter(lambda name: is_fixed(settings, name), values):
        name = variable_names(field, type(settings).model_fields[field])[-1]
        click.echo(f"Note: {name} in the environment wins over the file.", err=True)


def _chosen(model: str | None, *, key: bool) -> tuple[str | None, str | None, bool]:
    """Ask which server and model to use; None where nobody can be asked."""
    from webrag.settings.values import OPENAI_URL
    from webrag.wiring.language_models import WITHOUT, find_servers

    click.echo(f"{WITHOUT}\n\n  1  none: sentences of the pages, as now")
    found = run(find_servers())
    for number, each in enumerate(found, 2):
        click.echo(f"  {number}  {each.name} at {each.url}: {', '.join(each.models[:8])}")
    if not sys.stdin.isatty():
        if not found:
            click.echo("No server of language models was found on this machine.")
        click.echo("Choose with `webrag setup --server URL --model NAME`, --key for a key.")
        return None, None, False
    click.echo(f"  {len(found) + 2}  a provider's, with a key of yours")
    choice = click.prompt("Which", type=click.IntRange(1, len(found) + 2), default=1)
    if choice == 1:
        return "none", None, False
    if choice == len(found) + 2:
        url = click.prompt("Address", default=OPENAI_URL)
        return url, model or click.prompt("Model", default="gpt-4o-mini"), True
    server = found[choice - 2]
    if model is None and len(server.models) > 1:
        model = click.prompt("Model", type=click.Choice(server.models), default=server.models[0])
    return server.url, model or server.models[0], key


def _key() -> str:
    given: str = (
        click.prompt("Key", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline().strip()
    )
    if not given:
        raise InputError("The key is empty.")
    return given

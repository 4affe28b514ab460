"""`webrag config`: the settings in effect and where they came from, secrets masked."""

from typing import TYPE_CHECKING, Any

import click

from webrag.cli.options import command, json_option, run_options
from webrag.cli.output import print_columns, print_json

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
@json_option
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
                variables[name][0]: {
                    "value": settings.shown(name),
                    "origin": settings.origin(name),
                }
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

"""`webrag config`: the settings in effect and where they came from, secrets masked."""

from typing import TYPE_CHECKING, Any

import click

from webrag.cli.options import json_option, run_options, with_settings
from webrag.cli.output import print_columns, print_json

if TYPE_CHECKING:
    from webrag.settings import Settings


# What people change first.
_USUAL = frozenset(
    {
        "allow_hosts", "browser", "collection", "data_dir", "database_url", "max_pages_per_run",
        "models", "orchestration_llm_base_url", "orchestration_llm_model", "proxy",
    }
)  # fmt: skip


@with_settings
@click.command("config", short_help="Show the settings in effect.")
@click.option("--all", "everything", is_flag=True, help="Show the rest, too.")
@json_option
@click.pass_context
def config_command(ctx: click.Context, everything: bool) -> None:
    """Show the settings that were changed and those that people change, and where values came from.

    Secrets are masked. docs/configuration.md says what each one does; --json holds all of them.
    """
    from webrag.settings.reference import sections

    settings: Settings = ctx.obj
    is_json = run_options(ctx).json

    def is_shown(field: str) -> bool:
        return everything or is_json or field in _USUAL or settings.origin(field) != "default"

    parts = sections()
    shown = [(title, [item for item in items if is_shown(item.field)]) for title, items in parts]
    if is_json:
        print_json(
            {
                item.variable: {
                    "value": _plain(settings.shown(item.field)),
                    "origin": settings.origin(item.field),
                }
                for _, items in shown
                for item in items
            }
        )
        return
    for title, items in shown:
        if items:
            click.echo(f"{title}:")
            rows = [
                (item.variable, _text(settings.shown(item.field)), settings.origin(item.field))
                for item in items
            ]
            print_columns(rows, indent="  ")
    left = sum(len(items) for _, items in parts) - sum(len(items) for _, items in shown)
    if left:
        click.echo(f"{left} more are at their default: --all.")


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float) else _text(value)


def _text(value: Any) -> str:
    if value is None:
        return "(not set)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(value) or "(none)"
    return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)

"""`webrag config`: every setting in effect and where it came from, secrets masked."""

from typing import TYPE_CHECKING, Any

import click

from webrag.cli.options import json_option, run_options, with_settings
from webrag.cli.output import print_columns, print_json

if TYPE_CHECKING:
    from webrag.settings import Settings


@with_settings
@click.command("config", short_help="Show the settings in effect.")
@click.option("--changed", is_flag=True, help="Leave out what is at its default.")
@json_option
@click.pass_context
def config_command(ctx: click.Context, changed: bool) -> None:
    """Show every setting, its value and where the value came from; secrets are masked.

    docs/configuration.md says what each one does.
    """
    from webrag.settings.reference import sections

    settings: Settings = ctx.obj
    shown = [
        (title, [item for item in items if not changed or settings.origin(item.field) != "default"])
        for title, items in sections()
    ]
    if run_options(ctx).json:
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
    if not any(items for _, items in shown):
        click.echo("Every setting is at its default.")
    for title, items in shown:
        if items:
            click.echo(f"{title}:")
            rows = [
                (item.variable, _text(settings.shown(item.field)), settings.origin(item.field))
                for item in items
            ]
            print_columns(rows, indent="  ")


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

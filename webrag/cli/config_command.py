"""`webrag config`: every setting in effect and where it came from, secrets masked."""

from typing import TYPE_CHECKING, Any

import click

from webrag.cli.options import json_option, run_options, with_settings
from webrag.cli.output import print_columns, print_json
from webrag.errors import InputError

if TYPE_CHECKING:
    from webrag.settings import Settings
    from webrag.settings.model import Combination


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


@with_settings
@click.command("models", short_help="List models that run here, or download some.")
@click.argument("name", required=False)
@json_option
@click.pass_context
def models_command(ctx: click.Context, name: str | None) -> None:
    """List the combinations of models that WEBRAG_MODELS can name, and what is on disk of them.

    With NAME its models are downloaded, so that it works without a network from then on.
    """
    from webrag.settings.model import COMBINATIONS

    settings: Settings = ctx.obj
    if name is not None:
        if name not in COMBINATIONS:
            raise InputError(f"There is no {name!r}; there are {', '.join(COMBINATIONS)}.")
        _download(name, settings)
    chosen = {key: each for key, each in COMBINATIONS.items() if name in (None, key)}
    if run_options(ctx).json:
        print_json({key: _value(key, each, settings) for key, each in chosen.items()})
        return
    click.echo("\n\n".join(_model_text(key, each, settings) for key, each in chosen.items()))
    if name is None:
        click.echo("\nChoose one with WEBRAG_MODELS; `webrag models NAME` downloads it beforehand.")


def _download(name: str, settings: "Settings") -> None:
    from webrag.wiring.downloads import download_models

    download_models(name, settings)


def _value(name: str, combination: "Combination", settings: "Settings") -> dict[str, Any]:
    from webrag.embedding.known_models import is_on_disk

    folder = settings.data_dir / "models"
    return {
        "in_use": settings.models == name,
        "embedding": combination.embedding.name if combination.embedding else "bundled",
        "reranker": combination.reranker.name if combination.reranker else "local",
        "megabytes": combination.megabytes,
        "quality": combination.quality or None,
        "speed": combination.speed,
        "downloads": [
            {
                "model": each.name,
                "megabytes": each.megabytes,
                "licence": each.licence,
                "on_disk": is_on_disk(each.repository, folder),
            }
            for each in combination.downloads
        ],
    }


def _model_text(name: str, combination: "Combination", settings: "Settings") -> str:
    value = _value(name, combination, settings)
    lines = [f"{name} (in use)" if value["in_use"] else name]
    lines += [f"  embedding  {value['embedding']}", f"  reranker   {value['reranker']}"]
    lines += [
        f"  download   {each['model']}: {each['megabytes']} MB, {each['licence']},"
        f" {'on disk' if each['on_disk'] else 'not on disk'}"
        for each in value["downloads"]
    ] or ["  download   none"]
    lines += [f"  quality    {value['quality'] or 'not measured'}"]
    lines += [f"  speed      {value['speed']}"]
    return "\n".join(lines)

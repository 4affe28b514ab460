"""`webrag models`: the combinations of `WEBRAG_MODELS`, and their download."""

from typing import TYPE_CHECKING, Any

import click

from webrag.cli.options import json_option, run_options, with_settings
from webrag.cli.output import print_json
from webrag.errors import InputError

if TYPE_CHECKING:
    from webrag.settings import Settings
    from webrag.settings.combinations import Combination


@with_settings
@click.command("models", short_help="List models that run here, or download some.")
@click.argument("name", required=False)
@json_option
@click.pass_context
def models_command(ctx: click.Context, name: str | None) -> None:
    """List the combinations of models that WEBRAG_MODELS can name, and what is on disk of them.

    With NAME its models are downloaded, so that it works without a network from then on.
    """
    from webrag.settings.combinations import COMBINATIONS

    settings: Settings = ctx.obj
    if name is not None:
        if name not in COMBINATIONS:
            raise InputError(f"There is no {name!r}; there are {', '.join(COMBINATIONS)}.")
        _download(name, settings)
    chosen = {key: each for key, each in COMBINATIONS.items() if name in (None, key)}
    if run_options(ctx).json:
        print_json({key: _value(key, each, settings) for key, each in chosen.items()})
        return
    click.echo("\n\n".join(_text(key, each, settings) for key, each in chosen.items()))
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


def _text(name: str, combination: "Combination", settings: "Settings") -> str:
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

"""Writes values into the settings file, and leaves its other lines as they are."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from webrag.errors import ConfigurationError
from webrag.settings.model import Settings, load_settings
from webrag.settings.variables import variable_names

# What `WEBRAG_MODELS` stands for.
_MODELS = ("embedding_provider", "embedding_model", "reranker_provider", "reranker_model")


@contextmanager
def changed_settings(settings: Settings, values: Mapping[str, str | None]) -> Iterator[Settings]:
    """Write settings into their file for good, if the block does not fail; gives the new ones.

    By field, values are what a variable holds; None takes one out. What the settings in use were
    given in the program or environment still wins.
    """
    path, fields = settings.file, Settings.model_fields
    before = path.read_bytes() if path.exists() else None
    names = {name: variable_names(name, fields[name])[-1] for name in values}
    write_settings(path, {names[name]: value for name, value in values.items()})
    try:
        given: Any = {name: getattr(settings, name) for name in values if is_fixed(settings, name)}
        read = load_settings(path, **given)
        changed = {name: getattr(read, name) for name in (*values, *_MODELS)}
        yield settings.model_copy(
            update={**changed, "origins": {**settings.origins, **read.origins}}
        )
    except BaseException:
        path.unlink() if before is None else path.write_bytes(before)
        raise


def is_fixed(settings: Settings, field: str) -> bool:
    """Whether a setting comes from what wins over the settings file."""
    origin = settings.origin(field)
    return origin == "argument" or origin.endswith("in the environment")


def write_settings(path: Path, values: Mapping[str, str | None]) -> None:
    """Set variables in a settings file, which nobody else may read; None takes one out."""
    names = "|".join(map(re.escape, values))
    ours = re.compile(rf"\A\s*+(?:export\s++)?(?:WEBRAG_)?(?:{names})\s*+=")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = path.read_text("utf-8-sig").splitlines() if path.exists() else []
        kept = [line for line in before if not ours.match(line)]
        added = [f"{name}={_quoted(value)}" for name, value in values.items() if value is not None]
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        partial.touch(mode=0o600)
        partial.write_text("".join(f"{line}\n" for line in (*kept, *added)), "utf-8")
        partial.replace(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"The settings file {path} cannot be written: {error}.") from error


def _quoted(value: str) -> str:
    if "\n" in value:
        raise ConfigurationError("A value of a settings file is one line.")
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

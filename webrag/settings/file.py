"""Writes values into the settings file, and leaves its other lines as they are."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from webrag.errors import ConfigurationError
from webrag.settings.variables import Variables, user_folder


def settings_file(named: Path | None = None) -> Path:
    """The settings file that is read, or would be if it were there."""
    return Variables(named).file or user_folder("config") / ".env"


def write_settings(path: Path, values: Mapping[str, str | None]) -> None:
    """Set variables in a settings file, which nobody else may read; None takes one out.

    Raises:
        ConfigurationError: The file cannot be written.
    """
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

"""Writes docs/configuration.md, .env.example and webrag/settings/given.pyi from the settings.

uv run python docs/generate_configuration.py            writes them
uv run python docs/generate_configuration.py --check    exits 1 when one of them is not current
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
)

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from webrag.checked_model import allowed_text
from webrag.orchestration.models import ExpansionConfig, SiteMapConfig
from webrag.settings.model import Settings, sections
from webrag.settings.values import PARTS
from webrag.settings.variables import extra_of, filling, is_secret, variable_names

if TYPE_CHECKING:
    from webrag.frozen import FrozenModel

ROOT = Path(__file__).parents[1]

_INTRODUCTION = """\
# Configuration

WebRAG needs no configuration. Each value below can be changed by an environment variable, by a line
in a settings file, or in Python by an argument of `load_settings`, named like the variable in lower
case, without the prefix `WEBRAG_` where the variable always has it. What few need can be set in
Python only: [below](#what-is-set-in-python-only).

## Where values come from

An argument or a command-line option wins over the environment, the environment over the settings
file, and that over the default. An empty value counts as not set. `webrag config --all` prints
every value with its origin, with secrets masked.

The settings file holds `NAME=value` lines, like `.env.example`. WebRAG reads one file: the one
that `--env-file` names, else the one that `WEBRAG_ENV_FILE` names, else `webrag/.env` in your
configuration folder (`$XDG_CONFIG_HOME`, by default `~/.config`). It never reads a file from the
current directory, because an MCP server is started inside other people's projects. Names in the
file that are not settings are ignored.

Every variable whose name does not start with `WEBRAG_` can also be given with that prefix, which
then wins: `WEBRAG_DATABASE_URL` over `DATABASE_URL`. Use it when another program reads the same
name.

A value that does not fit stops WebRAG at start with a sentence that names the variable, the value
and what is allowed, and exit code 2. The variables marked *shared* are ones that other software
reads too, for example with another unit; a value of theirs that does not fit is ignored with a
warning, unless it was given with the prefix.

Lists are comma-separated. Truth values are `true` or `false`, also `1` or `0`, `yes` or `no`.
"""
_IN_PYTHON = """\
## What is set in Python only

These have no variable. An argument is given as it is, `load_settings(reranker_timeout=2)`; the
fields of a part as a dictionary, `load_settings(fetching={"host_delay_s": 1})`, or as the object
that has them, and inner parts alike: `orchestration={"expansion": {"map_limit": 50}}`. A field that
a variable fills has one name only, that of the variable. Times are in seconds.
"""


class SettingReference(NamedTuple):
    """One setting, in words.

    Attributes:
        field: Name in `Settings`.
        variable: Name of the environment variable, the shorter one if there are two.
        default: As written in a settings file; empty when nothing is set.
        default_text: As shown to a reader.
    """

    field: str
    variable: str
    default: str
    default_text: str
    allowed: str
    description: str
    shared: bool


def settings_by_section() -> list[tuple[str, list[SettingReference]]]:
    """Title and settings of each group, in the order of the reference."""
    fields = Settings.model_fields
    return [
        (title, [_reference(name, fields[name]) for name in names])
        for title, names in sections().items()
    ]


def configuration_page() -> str:
    """The page docs/configuration.md."""
    parts = [_INTRODUCTION]
    for title, settings in settings_by_section():
        rows = [
            "| Variable | Default | Allowed | What it does |",
            "| --- | --- | --- | --- |",
        ]
        rows += [_row(setting) for setting in settings]
        parts.append(f"## {title}\n\n" + "\n".join(rows) + "\n")
    parts.append(_IN_PYTHON)
    for path, fields in _arguments():
        rows = ["| Name | Default | What it does |", "| --- | --- | --- |"]
        rows += [
            f"| `{name}` | {_code(info.get_default(call_default_factory=True))} |"
            f" {info.description} |"
            for name, info in fields.items()
        ]
        parts.append(f"### {path}\n\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _arguments() -> Iterator[tuple[str, dict[str, FieldInfo]]]:
    """Title of each group of what is set in Python only, and its fields."""
    own = {
        name: info
        for name, info in Settings.model_fields.items()
        if info.description and not variable_names(name, info) and name not in PARTS
    }
    yield "Arguments", own
    parts: dict[str, type[FrozenModel]] = {
        **{part: type(Settings.model_fields[part].default) for part in PARTS},
        "orchestration.expansion": ExpansionConfig,
        "orchestration.expansion.site_map": SiteMapConfig,
    }
    for path, config in parts.items():
        filled = {field for _, field in filling(Settings, config)}
        yield (
            f"`{path}`",
            {name: info for name, info in config.model_fields.items() if name not in filled},
        )


def _code(value: Any) -> str:
    if isinstance(value, BaseModel):
        return "below"
    return f"`{value}`" if value not in (None, (), {}) else "not set"


def env_example() -> str:
    """The file .env.example, in which every line is a comment."""
    lines = [
        "# Settings of WebRAG. Copy to ~/.config/webrag/.env, or name the copy with --env-file or",
        "# WEBRAG_ENV_FILE, and remove the # before what you change. docs/configuration.md says",
        "# more.",
    ]
    for title, settings in settings_by_section():
        lines += ["", f"# ---- {title}"]
        for item in settings:
            allowed = item.allowed.replace("`", "")
            lines += ["", f"# {item.description.replace('`', '')} ({allowed})"]
            lines.append(f"# {item.variable}={item.default}")
    return "\n".join(lines) + "\n"


def _reference(field: str, info: FieldInfo) -> SettingReference:
    extra = extra_of(info)
    default = "" if info.default_factory or is_secret(info) else _written(info.default)
    return SettingReference(
        field=field,
        variable=variable_names(field, info)[-1],
        default=default,
        default_text=extra["default_text"] or (f"`{default}`" if default else "not set"),
        allowed=allowed_text(info),
        description=info.description or "",
        shared=extra["shared"],
    )


def _written(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)


def _row(item: SettingReference) -> str:
    shared = " (*shared*)" if item.shared else ""
    cells = (f"`{item.variable}`{shared}", item.default_text, item.allowed, item.description)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


_GIVEN = """\
# Made by docs/generate_configuration.py: what `load_settings` takes, for editors and type checkers.
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from pydantic import SecretStr

from webrag.answering.models import AnswerConfig
from webrag.ingestion.models import FetchConfig
from webrag.orchestration.models import OrchestrationConfig
from webrag.retrieval.models import RetrievalConfig

class Given(TypedDict, total=False):
"""


def given_types() -> str:
    """The stub webrag/settings/given.pyi."""
    fields = ((n, i) for n, i in Settings.model_fields.items() if i.description)
    return _GIVEN + "".join(f"    {name}: {_type(info.annotation)}\n" for name, info in fields)


def _type(kind: Any) -> str:
    """What may be given for a field, as annotations write it."""
    if get_origin(kind) is Annotated:
        return _type(get_args(kind)[0])
    if get_origin(kind) is Literal:
        return f"Literal[{', '.join(map(json.dumps, get_args(kind)))}]"
    if get_origin(kind) in (Union, UnionType):
        return " | ".join(map(_type, get_args(kind)))
    if get_origin(kind) is tuple:
        return "Sequence[str]"
    if get_origin(kind) is dict:
        return "Mapping[str, float]"
    if kind is NoneType:
        return "None"
    other = {SecretStr: " | str", Path: " | str"}.get(kind, "")
    return f"{kind.__name__}{' | Mapping[str, Any]' if issubclass(kind, BaseModel) else other}"


def main() -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description="Generate the reference of all settings.")
    parser.add_argument("--check", action="store_true", help="only say whether they are current")
    check = parser.parse_args().check
    stale = False
    for path, text in (
        (ROOT / "docs/configuration.md", configuration_page()),
        (ROOT / ".env.example", env_example()),
        (ROOT / "webrag/settings/given.pyi", given_types()),
    ):
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale = True
        if check:
            sys.stderr.write(f"{path.relative_to(ROOT)} is not current: run {sys.argv[0]}\n")
        else:
            path.write_text(text, encoding="utf-8")
    return int(check and stale)


if __name__ == "__main__":
    sys.exit(main())

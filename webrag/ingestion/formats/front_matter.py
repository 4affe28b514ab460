"""Reads what a file of Markdown says of itself before its text, in YAML or TOML."""

import re

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.{0,20000}?)\n(?:\1|\.\.\.)[ \t]*\n", re.DOTALL)
_FIELD = re.compile(r"^(\w++)[ \t]*+[:=]([^\n]*+)$", re.MULTILINE)


def read_front_matter(source: str) -> dict[str, str]:
    """The fields of one line each, by name in lower case; empty without front matter."""
    front = _FRONT_MATTER.match(source.replace("\r\n", "\n")[:25_000])
    found = _FIELD.findall(front[2]) if front else []
    return {name.lower(): _unquoted(value.strip(" \t")) for name, value in found}


def _unquoted(value: str) -> str:
    value = value[1:] if value.startswith(("'", '"')) else value
    return value[:-1] if value.endswith(("'", '"')) else value

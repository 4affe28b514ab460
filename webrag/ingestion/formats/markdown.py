"""Markdown's own extras: front matter, components of MDX, and fences that fit a text."""

import re

_FENCE = re.compile(r"^([ \t]*(?:`{3,}|~{3,}))", re.MULTILINE)
_MODULE = re.compile(r"(?:^(?:import|export)[ \t][^\n]*\n(?:[ \t}\])][^\n]*\n)*)", re.MULTILINE)
_COMMENT = re.compile(r"\{/\*(?:[^*]|\*(?!/)){0,2000}+\*/\}")
_TAG = re.compile(r"^[ \t]*</?[A-Z][\w.]*(?:[ \t\n][^<>]*)?/?>[ \t]*$", re.MULTILINE)
_TITLED = re.compile(r"""\b(?:title|label|header|summary)=["']([^"'\n]{1,200})["']""")


def without_components(source: str) -> str:
    """Take away imports, exports, comments and the tags of components, outside fences.

    A component's title stays, as a paragraph of its own.
    """
    parts = _FENCE.split(f"{source}\n")
    text, fence = [], ""
    for part in parts:
        if _FENCE.fullmatch(part):
            mark = part.strip()
            if not fence:
                fence = mark
            elif mark.startswith(fence):
                fence = ""
            text.append(part)
        else:
            plain = _COMMENT.sub("", _MODULE.sub("", part))
            text.append(part if fence else _TAG.sub(_title, plain))
    return "".join(text)


def _title(tag: re.Match[str]) -> str:
    found = _TITLED.search(tag[0])
    return f"\n**{found[1]}**\n" if found else "\n"


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


def fenced(text: str, language: str = "") -> str:
    """A block of code that holds the text, in a fence longer than any run of backticks in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"

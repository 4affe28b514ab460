"""Makes plain Markdown of the dialects of site generators; fences and heads of tables that fit."""

import re
from collections.abc import Iterator, Sequence

_FENCED = r"^[ \t]*+(?P<fence>`{3,}+|~{3,}+).*?(?:^[ \t]*+(?P=fence)|\Z)"
# Imports, exports and comments.
_UNSHOWN = re.compile(
    rf"{_FENCED}|^(?:import|export)[ \t][^\n]*\n(?:[ \t}}\])][^\n]*\n)*"
    r"|\{/\*(?:[^*]|\*(?!/)){0,2000}+\*/\}",
    re.MULTILINE | re.DOTALL,
)
_TAG = re.compile(
    rf"{_FENCED}|^[ \t]*</?[A-Z][\w.]*(?:[ \t\n][^<>]*)?/?>[ \t]*$", re.MULTILINE | re.DOTALL
)
_TITLED = re.compile(r"""\b(?:title|label|header|summary)=["']([^"'\n]{1,200})["']""")


def without_components(source: str) -> str:
    """Take away imports, exports, comments and the tags of components, outside fences.

    A component's title stays, as a paragraph of its own.
    """
    plain = _UNSHOWN.sub(lambda found: found[0] if found["fence"] else "", f"{source}\n")
    return _TAG.sub(lambda found: found[0] if found["fence"] else _title(found), plain)


def _title(tag: re.Match[str]) -> str:
    found = _TITLED.search(tag[0])
    return f"\n**{found[1]}**\n" if found else "\n"


_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.{0,20000}?)\n(?:\1|\.\.\.)[ \t]*\n", re.DOTALL)
_FIELD = re.compile(r"^(\w++)[ \t]*+[:=]([^\n]*+)$", re.MULTILINE)
_QUOTES = re.compile(r"\A['\"]|['\"]\Z")


def read_front_matter(source: str) -> dict[str, str]:
    """The fields of one line each, by name in lower case; empty without front matter."""
    front = _FRONT_MATTER.match(source.replace("\r\n", "\n")[:25_000])
    found = _FIELD.findall(front[2]) if front else []
    return {name.lower(): _QUOTES.sub("", value.strip(" \t")) for name, value in found}


def fenced(text: str, language: str = "") -> str:
    """A block of code that holds the text, in a fence longer than any run of backticks in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


# What names a column by a figure where the column has none of them: "2024" and "Q1".
_COLUMN_NAMES = (re.compile(r"(?:19|20)\d\d"), re.compile(r"[^\W\d_].*"))


def names_columns(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first row of a table names its columns, as far as the texts tell.

    Of one or two columns the first row is like the others, unless they are numbered and it is not;
    of more it names them, unless one has figures in all rows, of one kind.
    """
    first, *others = rows
    if not others:
        return True
    columns = list(zip(*others, strict=True))
    if len(others) > 1 and not _has_figure(first[0]) and all(map(_has_figure, columns[0])):
        return True
    return len(first) > 2 and not any(map(_goes_on, first, columns))


def _has_figure(cell: str) -> bool:
    return any(map(str.isdigit, cell))


def _goes_on(first: str, column: Sequence[str]) -> bool:
    """Tell whether the first cell of a column is one of its figures."""
    is_named = any(
        name.fullmatch(first) and not any(map(name.fullmatch, column)) for name in _COLUMN_NAMES
    )
    return not is_named and all(map(_has_figure, (first, *column)))


_FENCE_LINE = re.compile(r"[ ]{0,3}(`{3,100}+|~{3,100}+)([^`]{0,300}+)\Z")
_INDENTED = re.compile(
    r'(?:!!!|\?\?\?\+?)[ \t]{1,20}+([\w-]{1,50}+)[^"]{0,100}+(?:"([^"]{0,300}+)")?\s{0,20}+\Z'
)
_TAB = re.compile(r'===[+!]?[ \t]{1,20}+"([^"]{1,300}+)"\s{0,20}+\Z')
_OPENED = re.compile(
    r":{3,20}+[ \t]{0,20}+(?:\{\.?(?:callout-)?([\w-]{1,50}+)[^{}]{0,200}+\}|([\w-]{1,50}+))"
    r"[ \t]{0,20}+(?:\[([^\[\]]{0,300}+)\]|([^\[\]{}]{0,300}+))?(?:\{[^{}]{0,300}+\})?\Z"
)
_CLOSED = re.compile(r":{3,20}+[ \t]{0,20}+\Z")
_DIRECTIVE = re.compile(r"\{([\w-]{1,50}+)\}[ \t]{0,20}+([^\n]{0,300}+)\Z")
_OPTION = re.compile(r":[\w-]{1,50}+:(?:[ \t]|\Z)")
_CODE = frozenset({"code", "code-block", "code-cell", "sourcecode"})
# What holds other blocks, and is no title for a reader.
_FRAMES = frozenset({"admonition", "code-group", "div", "grid", "raw", "tab-set", "tabs", "v-pre"})
_NOTES = frozenset(
    """admonition attention caution card danger deprecated dropdown error grid hint important
    note seealso tab-item tab-set tip versionadded versionchanged warning""".split()  # noqa: SIM905
)


def without_containers(source: str) -> str:
    """Take admonitions, tabs and the like of MkDocs, Docusaurus and MyST apart, outside fences."""
    if not any(sign in source for sign in (":::", "!!!", "???", "===", "{")):
        return source
    return "\n".join(_Reader().lines(source.split("\n")))


class _Reader:
    def __init__(self) -> None:
        self._depth = 0
        self._fence = ""
        self._opened: list[str] = []
        self._may_be_option = False

    def lines(self, lines: list[str]) -> Iterator[str]:
        for line in lines:
            yield from self._line(self._dedented(line.removesuffix("\r")))

    def _dedented(self, line: str) -> str:
        """Without the margin of the notes and tabs it is in, which it ends by having less."""
        if not line.strip():
            return ""
        margin = len(line) - len(line.lstrip(" "))
        self._depth = min(self._depth, margin // 4)
        return line[4 * self._depth :]

    def _line(self, line: str) -> Iterator[str]:
        found = _FENCE_LINE.match(line)
        if self._fence:
            if found and found[1].startswith(self._fence) and not found[2].strip():
                self._fence = ""
            yield line
        elif found:
            yield from self._fenced(line, found[1], found[2].strip())
        elif self._may_be_option and _OPTION.match(line):
            return
        else:
            self._may_be_option = False
            yield from self._prose(line)

    def _fenced(self, line: str, fence: str, info: str) -> Iterator[str]:
        directive = _DIRECTIVE.match(info)
        if self._opened and fence == self._opened[-1] and not info:
            self._opened.pop()
            yield ""
        elif directive and directive[1] in _NOTES:
            self._opened.append(fence)
            yield from self._title(directive[1], directive[2])
        else:
            self._fence = fence
            yield f"{fence}{directive[2]}" if directive and directive[1] in _CODE else line

    def _prose(self, line: str) -> Iterator[str]:
        if found := _INDENTED.match(line):
            self._depth += 1
            yield from self._title(found[1], found[2])
        elif found := _TAB.match(line):
            self._depth += 1
            yield from self._title(found[1], found[1])
        elif found := _OPENED.match(line):
            yield from self._title(found[1] or found[2], found[3] or found[4])
        elif _CLOSED.match(line):
            yield ""
        else:
            yield line

    def _title(self, kind: str, given: str | None) -> Iterator[str]:
        self._may_be_option = True
        title = (given or "").strip() or ("" if kind in _FRAMES else kind.capitalize())
        yield from ("", f"**{title}**", "") if title else ("",)

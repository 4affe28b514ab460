"""AsciiDoc as Markdown, read line by line; no converter in Python is maintained.

What it does not know stays as it is written. Includes are never opened, conditions never judged.
"""

import re
from collections.abc import Iterator

from webrag.ingestion.formats.markdown import fenced

_ATTRIBUTE = re.compile(r":(!?[\w-]{1,100}+)!?:(?:[ \t]++(.*))?\Z")
_HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]{1,100}+(\S.*)\Z")
# The older form: a title with as long a line of one of these below it.
_UNDERLINE = re.compile(r"(={2,300}+|-{2,300}+|~{2,300}+|\^{2,300}+|\+{2,300}+)\Z")
_UNDERLINED = "=-~^+"
_DELIMITER = re.compile(
    r"(-{4,200}+|\.{4,200}+|={4,200}+|\*{4,200}+|_{4,200}+|\+{4,200}+|/{4,200}+|--|`{3,200}+)"
    r"[ \t]{0,100}+(\w{0,100}+)\Z"
)
_BLOCK_ATTRIBUTES = re.compile(r"\[([^\[\]]{0,2000}+)\]\Z")
_TABLE = re.compile(r"[|,:!]={3,200}+\Z")
_LIST_ITEM = re.compile(r"[ \t]{0,100}+(\*{1,5}|-|\.{1,5}|\d{1,9}+\.)[ \t]{1,100}+(\S.*)\Z")
_TERM = re.compile(r"([^\s/][^:]{0,500}?)(:{2,4}+|;;)(?:[ \t]{1,100}+(.*))?\Z")
_ADMONITION = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION):[ \t]{1,100}+(.*)\Z")
_DROPPED = re.compile(
    r"(?://(?!/)|(?:include|ifdef|ifndef|ifeval|endif|toc|image|video|audio)::).*\Z"
)
_REFERENCE = re.compile(r"\{([\w-]{1,60})\}")
_LINK = re.compile(
    r"(?:link:)?(https?://[^\s\[\]<>]{1,1000}+|(?<=link:)[^\s\[\]<>]{1,1000}+)\[([^\[\]]{0,1000}+)\]"
)
_XREF = re.compile(r"xref:([^\s\[\]]{1,500}+)\[([^\[\]]{0,1000}+)\]")
_CROSS = re.compile(r"<<([^<>,\s]{1,500}+)(?:,[ \t]{0,100}+([^<>]{0,1000}+))?>>")
_INLINE_IMAGE = re.compile(r"\bimage:[^\s\[\]:]{1,500}+\[([^\[\]]{0,1000}+)\]")
_MACRO = re.compile(r"\b(?:kbd|btn|menu|footnote|pass):[\w-]{0,100}+\[([^\[\]]{0,1000}+)\]")
_MANUAL_PAGE = re.compile(r"\b(?:man|link[a-z]{1,20}+):([\w.+-]{1,100}+)\[(\d\w{0,10}+)\]")
_ANCHOR = re.compile(r"\[\[[^\[\]]{0,500}+\]\]|\[#[^\[\]]{0,500}+\](?=[#*_`])")
_STRONG = re.compile(r"(?<![\w*])\*{1,2}(?=\S)([^*\n]{1,500}?)(?<=\S)\*{1,2}(?![\w*])")
_CODE = re.compile(r"``?\+?([^`\n]{1,500}?)\+?``?")
_CALLOUT = re.compile(
    r"[ \t]{0,100}+(?:#|//|--|;;)?[ \t]{0,100}+(?:<\d{1,4}+>[ \t]{0,100}+){1,50}+\Z"
)
_CODE_STYLES = frozenset({"source", "listing", "literal", "console", "subs"})


def read_asciidoc(source: str) -> tuple[str, dict[str, str]]:
    """Read a document: its text, and what its header says of it."""
    reader = _Reader(source.expandtabs(4).splitlines())
    markdown = re.sub(r"\n{3,}", "\n\n", "\n".join(reader.lines())).strip("\n")
    names = {"description": "description", "date": "revdate", "language": "lang"}
    said = {name: reader.attributes.get(given, "") for name, given in names.items()}
    return markdown, {"title": reader.title, **said}


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self.attributes: dict[str, str] = {}
        self.title = ""
        self._lines = lines
        self._at = 0
        self._style: list[str] = []
        # Whether the line before is blank, and whether a list's text may still begin, indented.
        self._is_start = True
        self._awaits_text = False

    def lines(self) -> Iterator[str]:
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip()
            self._at += 1
            yield from self._line(line)
            self._is_start = not line or bool(_BLOCK_ATTRIBUTES.match(line)) or line == "+"

    def _line(self, line: str) -> Iterator[str]:
        if _DROPPED.match(line):
            return
        if self._is_start and (level := self._underlined(line)):
            self._at += 1
            yield from self._heading(line, level)
        elif found := _ATTRIBUTE.match(line):
            self.attributes[found[1].lower()] = (found[2] or "").strip()
        elif found := _HEADING.match(line):
            yield from self._heading(found[2].rstrip("= "), len(found[1]))
        elif found := _BLOCK_ATTRIBUTES.match(line):
            self._style = [part.strip() for part in found[1].split(",")]
        elif _TABLE.match(line):
            yield from self._table(line)
        elif found := _DELIMITER.match(line):
            yield from self._block(line.split()[0], found[2])
        elif line and self._style[:1] == ["verse"]:
            yield f"{self._inline(line)}  "
        elif line.startswith(" ") and not _LIST_ITEM.match(line) and not _TERM.match(line.strip()):
            yield from self._indented(line)
        else:
            yield from self._prose(line)

    def _underlined(self, line: str) -> int:
        """The level of a heading whose text is this line; 0 when it is none."""
        below = self._lines[self._at].rstrip() if self._at < len(self._lines) else ""
        fits = abs(len(below) - len(line)) <= 1 and _UNDERLINE.match(below)
        if not fits or line[:1] in " .[*|" or not any(map(str.isalpha, line)):
            return 0
        return _UNDERLINED.index(below[0]) + 1

    def _heading(self, title: str, level: int) -> Iterator[str]:
        text = self._inline(title)
        if not self.title and level == 1:
            self.title = text
        self._style = []
        self._awaits_text = False
        yield from ("", f"{'#' * level} {text}", "")

    def _indented(self, line: str) -> Iterator[str]:
        """A paragraph that goes on, or a list's first; any other is shown as it is written."""
        if self._awaits_text or not self._is_start:
            self._awaits_text = False
            yield self._inline(line.strip())
            return
        begin = self._at - 1
        while self._at < len(self._lines) and self._lines[self._at].startswith(" "):
            self._at += 1
        body = [each.rstrip() for each in self._lines[begin : self._at]]
        margin = min(len(each) - len(each.lstrip()) for each in body if each)
        literal = "\n".join(_CALLOUT.sub("", each[margin:]) for each in body)
        yield from ("", *fenced(literal).split("\n"), "")

    def _block(self, delimiter: str, language: str) -> Iterator[str]:
        style, self._style = self._style, []
        is_code = delimiter[0] in "-.+`" and delimiter != "--"
        is_code = is_code or bool(_CODE_STYLES.intersection(style[:1]))
        if delimiter[0] == "/":
            self._until(delimiter)
        elif is_code:
            language = language or (style[1] if len(style) > 1 and style[0] == "source" else "")
            body = [_CALLOUT.sub("", line) for line in self._until(delimiter)]
            language = language if language.isalnum() else ""
            yield from ("", *fenced("\n".join(body), language).split("\n"), "")
        elif style and style[0] in ("NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"):
            inner = _Reader(self._until(delimiter))
            inner.attributes = self.attributes
            yield from ("", f"> **{style[0].capitalize()}**", ">")
            yield from (f"> {line}".rstrip() for line in inner.lines())
            yield ""
        # The delimiters of examples, quotations and sidebars go; what they hold is read on.

    def _until(self, delimiter: str) -> list[str]:
        begin = self._at
        for at in range(begin, len(self._lines)):
            if self._lines[at].rstrip() == delimiter:
                self._at = at + 1
                return [line.rstrip() for line in self._lines[begin:at]]
        self._at = len(self._lines)
        return [line.rstrip() for line in self._lines[begin:]]

    def _table(self, delimiter: str) -> Iterator[str]:
        rows = [line for line in self._until(delimiter) if line.strip()]
        self._style = []
        cells = [self._cells(row, delimiter[0]) for row in rows]
        width = max((len(row) for row in cells), default=0)
        if width > 1 and all(len(row) == 1 for row in cells[1:]):
            # One cell on each line: as many as the first line has make a row.
            flat = [cell for row in cells[1:] for cell in row]
            cells = [cells[0], *(flat[at : at + width] for at in range(0, len(flat), width))]
        yield ""
        for number, row in enumerate(cells):
            yield f"| {' | '.join(row + [''] * (width - len(row)))} |"
            if number == 0:
                yield f"|{' --- |' * width}"
        yield ""

    def _cells(self, row: str, separator: str) -> list[str]:
        mark = "|" if separator in "|!" else separator
        given = re.split(rf"(?:(?<=\s)[\d.+*<^>a-z]{{1,6}})?{re.escape(mark)}", row.lstrip())
        cells = given[1:] if mark == "|" and len(given) > 1 else given
        return [self._inline(cell.strip()).replace("|", r"\|") for cell in cells]

    def _prose(self, line: str) -> Iterator[str]:
        self._style = [] if line.strip() else self._style
        self._awaits_text = self._awaits_text and not line.strip()
        if line == "+":
            yield ""
        elif re.fullmatch(r"\.[^\s.].*", line):
            yield from ("", f"**{self._inline(line[1:])}**", "")
        elif found := _LIST_ITEM.match(line):
            depth = len(found[1]) - 1 if found[1][0] in "*." else 0
            bullet = "1." if found[1][0] == "." or found[1][0].isdigit() else "-"
            yield f"{'   ' * depth}{bullet} {self._inline(found[2])}"
        elif found := _ADMONITION.match(line):
            yield from ("", f"> **{found[1].capitalize()}:** {self._inline(found[2])}", "")
        elif (found := _TERM.match(line.strip())) and "://" not in line:
            yield from ("", f"**{self._inline(found[1])}**", "")
            self._awaits_text = not found[3]
            if found[3]:
                yield self._inline(found[3])
        else:
            yield self._inline(line)

    def _inline(self, text: str) -> str:
        text = _REFERENCE.sub(lambda found: self.attributes.get(found[1], found[0]), text)
        text = _LINK.sub(lambda found: _link(found[1], found[2].rstrip("^")), text)
        text = _XREF.sub(lambda found: _link(found[1].partition("#")[0], found[2]), text)
        text = _CROSS.sub(lambda found: found[2] or found[1].lstrip("_#").replace("_", " "), text)
        text = _MANUAL_PAGE.sub(r"\1(\2)", text)
        for pattern in (_INLINE_IMAGE, _MACRO):
            text = pattern.sub(r"\1", text)
        parts = _CODE.sub(r"`\1`", _ANCHOR.sub("", text)).split("`")
        parts[::2] = [_STRONG.sub(r"**\1**", part) for part in parts[::2]]  # outside of code
        return "`".join(parts)


def _link(target: str, text: str) -> str:
    return f"[{text.partition(',')[0].strip(chr(34)) or target}]({target})"

"""HTML of a chunk to text a model can read; it fetches nothing and never feeds quotations."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webrag.corpus.models import ChunkImage
from webrag.ingestion.html.code import rewrite_code
from webrag.ingestion.html.formulas import latex_source
from webrag.ingestion.html.tree import BLOCK_TAGS, attribute

_OPERATORS = {
    "∑": r"\sum",
    "∏": r"\prod",
    "∫": r"\int",
    "∞": r"\infty",
    "≤": r"\le",
    "≥": r"\ge",
    "≠": r"\ne",
    "≈": r"\approx",
    "\u00d7": r"\times",
    "⋅": r"\cdot",
    "∈": r"\in",
    "→": r"\to",
    "∂": r"\partial",
    "\u2212": "-",
    "\u2061": "",
    "\u2062": "",
    "\u2063": ",",
}
_ACCENTS = {"^": r"\hat", "¯": r"\bar", "‾": r"\bar", "~": r"\tilde", "→": r"\vec", "˙": r"\dot"}


def math_to_latex(node: LexborNode) -> str:
    r"""LaTeX of a `<math>` element, in `$...$` or, for display formulas, `$$...$$`.

    The author's own source wins over a reconstruction.

    Returns:
        An empty string when the element shows nothing.
    """
    source = latex_source(node) or _row(node).strip()
    if not source:
        return ""
    fence = "$$" if node.attributes.get("display") == "block" else "$"
    return f"{fence}{source}{fence}"


def _parts(node: LexborNode) -> list[str]:
    return [_latex(child) for child in node.iter(include_text=False)]


def _row(node: LexborNode) -> str:
    return "".join(_parts(node)) or node.text(deep=False).strip()


def _group(part: str) -> str:
    return part if len(part) == 1 else "{" + part + "}"


def _fraction(parts: list[str]) -> str:
    return rf"\frac{{{parts[0]}}}{{{parts[1]}}}"


def _scripts(parts: list[str]) -> str:
    base, *scripts = parts
    lower, upper = scripts if len(scripts) == 2 else (scripts[0], "")
    return base + f"_{_group(lower)}" + (f"^{_group(upper)}" if upper else "")


def _over(parts: list[str]) -> str:
    base, mark = parts[:2]
    if mark in _ACCENTS:
        return f"{_ACCENTS[mark]}{{{base}}}"
    return f"{base}^{_group(mark)}"


_SHAPES: dict[str, tuple[int, Callable[[list[str]], str]]] = {
    "mfrac": (2, _fraction),
    "msup": (2, lambda parts: f"{parts[0]}^{_group(parts[1])}"),
    "msub": (2, _scripts),
    "munder": (2, _scripts),
    "msubsup": (3, _scripts),
    "munderover": (3, _scripts),
    "mover": (2, _over),
    "mroot": (2, lambda parts: rf"\sqrt[{parts[1]}]{{{parts[0]}}}"),
}


def _latex(node: LexborNode) -> str:
    tag = node.tag or ""
    if tag in ("annotation", "annotation-xml"):  # a second form, in another notation
        return ""
    if tag in ("mi", "mn", "mo", "mtext"):
        return _token(tag, node.text().strip())
    if tag in _SHAPES:
        wanted, shape = _SHAPES[tag]
        parts = _parts(node)
        return shape(parts) if len(parts) == wanted else "".join(parts)
    if tag == "msqrt":
        return rf"\sqrt{{{_row(node)}}}"
    if tag == "mtr":
        return " & ".join(_parts(node))
    if tag == "mtable":
        return r"\begin{matrix}" + r" \\ ".join(_parts(node)) + r"\end{matrix}"
    return _row(node)


def _token(tag: str, text: str) -> str:
    if tag == "mtext":
        return rf"\text{{{text}}}" if text else ""
    latex = _OPERATORS.get(text, text)
    return f"{latex} " if latex.startswith("\\") else latex


_WARNINGS = ("warning", "caution", "danger", "attention", "error")

_NOTES = ("note", "tip", "hint", "important", "info", "seealso", "success", "example")

_PLAIN_TAGS = ("div", "aside", "section", "p", "details")

_CALLOUT_CLASSES = frozenset(("admonition", "callout", "markdown-alert", "alert"))


def callout_label(node: LexborNode) -> str | None:
    """Kind of callout an element is, such as `note` or `warning`; None when it is none."""
    classes = [name.lower() for name in attribute(node, "class").split()]
    kinds = [kind for kind in _WARNINGS + _NOTES if _names_kind(classes, kind)]
    if _CALLOUT_CLASSES.intersection(classes):
        return kinds[0] if kinds else "note"
    plain = [kind for kind in kinds if kind in classes]
    return plain[0] if plain and node.tag in _PLAIN_TAGS else None


def _names_kind(classes: Iterable[str], kind: str) -> bool:
    return any(name == kind or name.endswith(f"-{kind}") for name in classes)


def callout_sign(label: str) -> str:
    """The sign that stands before a callout of this kind."""
    return "⚠️" if label in _WARNINGS else "ℹ️"  # noqa: RUF001


_SKIPPED_TAGS = (
    "script style noscript template head meta link svg iframe object button input select "
    "textarea nav form"
)

_SKIPPED = frozenset(_SKIPPED_TAGS.split())

_BLOCKS = BLOCK_TAGS | {"caption", "hgroup", "html"}

_BLOCK_SELECTOR = ",".join(sorted(_BLOCKS))

_BACKLINK_CLASSES = frozenset(("footnote-backref", "footnote-back", "reversefootnote"))

_TEX_SCRIPT = "math/tex"


def is_hidden(node: LexborNode) -> bool:
    """Whether an element shows nothing, or nothing that is not there a second time."""
    if node.is_text_node:
        return False
    attributes = node.attributes
    if not node.is_element_node or (node.tag in _SKIPPED and not tex_script(node)):
        return True
    # Icons, and formulas that are there a second time for the eye.
    if attributes.get("aria-hidden") == "true" or _is_backlink(node):
        return True
    style = (attributes.get("style") or "").replace(" ", "").lower()
    return "hidden" in attributes or "display:none" in style or "visibility:hidden" in style


def holds_blocks(node: LexborNode) -> bool:
    """Whether a node starts a paragraph of its own, or holds one that does."""
    if node.is_text_node:
        return False
    if node.tag == "math":
        return node.attributes.get("display") == "block"
    return node.tag in _BLOCKS or node.css_first(_BLOCK_SELECTOR) is not None


def tex_script(node: LexborNode) -> str:
    """A formula as MathJax 2 keeps it; empty for every other element."""
    kind = attribute(node, "type").lower().split(";")
    if node.tag != "script" or kind[0].strip() != _TEX_SCRIPT:
        return ""
    fence = "$$" if len(kind) > 1 else "$"
    return f"{fence}{node.text().strip()}{fence}"


def _is_backlink(node: LexborNode) -> bool:
    classes = attribute(node, "class").split()
    return node.tag == "a" and not _BACKLINK_CLASSES.isdisjoint(classes)


def is_footnote(node: LexborNode) -> bool:
    """Whether an element is the text of a footnote."""
    return attribute(node, "role") == "doc-footnote"


def image_source(node: LexborNode) -> str:
    """Address of an image, also of one that scripts load later."""
    attributes = node.attributes
    first = (attributes.get("srcset") or "").split(",")[0].split()
    candidates = (attributes.get("src"), attributes.get("data-src"), first[0] if first else None)
    found = ((each or "").strip() for each in candidates)
    return next((each for each in found if each and not each.startswith("data:")), "")


def code_language(pre: LexborNode) -> str:
    """Language of a listing, as `rewrite_code` has marked it; empty when unknown."""
    code = pre.css_first("code")
    name = attribute(code if code is not None else pre, "class")
    return name.removeprefix("language-") if name.startswith("language-") else ""


def definition_parts(node: LexborNode) -> Iterable[LexborNode]:
    """The terms and definitions of a `<dl>`, in order."""
    for child in node.iter(include_text=False):
        if child.tag in ("dt", "dd"):
            yield child
        elif child.tag == "div":
            yield from (part for part in child.iter(include_text=False) if part.tag in ("dt", "dd"))


# Cells beyond it are not padded to: alignment helps the eye, runs of blanks cost tokens.
_MAX_PADDING = 30

_MAX_SPAN = 50


def table_to_text(table: LexborNode, render_cell: Callable[[LexborNode], str]) -> str:
    """The table as pipe-delimited, aligned rows with a rule under the header.

    A cell that spans columns or rows stands in the first of its places; the others stay empty.

    Args:
        table: A `<table>` element.
        render_cell: Text of one cell; line breaks and pipes in it are dealt with here.

    Returns:
        An empty string when the table has no cells.
    """
    rows = [row for row in _grid(table, render_cell) if any(row)]
    if not rows:
        return ""
    width = max(map(len, rows))
    rows = [row + [""] * (width - len(row)) for row in rows]
    sizes = [min(_MAX_PADDING, max(3, *(len(row[i]) for row in rows))) for i in range(width)]
    lines = [_line(rows[0], sizes), "|" + "|".join("-" * (size + 2) for size in sizes) + "|"]
    lines += [_line(row, sizes) for row in rows[1:]]
    caption = table.css_first("caption")
    title = " ".join(render_cell(caption).split()) if caption is not None else ""
    return "\n".join(([title, ""] if title else []) + lines)


def _line(row: Sequence[str], sizes: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(size) for cell, size in zip(row, sizes, strict=True)) + " |"


def _grid(table: LexborNode, render_cell: Callable[[LexborNode], str]) -> list[list[str]]:
    grid: list[list[str]] = []
    reserved: dict[int, int] = {}
    for row in _rows(table):
        cells: list[str] = []
        for cell in _cells(row):
            _skip_reserved(cells, reserved)
            columns, rows = _span(cell, "colspan"), _span(cell, "rowspan")
            if rows > 1:
                reserved |= {len(cells) + i: rows for i in range(columns)}
            cells += [_flat(render_cell(cell))] + [""] * (columns - 1)
        _skip_reserved(cells, reserved)
        reserved = {column: left - 1 for column, left in reserved.items() if left > 1}
        grid.append(cells)
    return grid


def _skip_reserved(cells: list[str], reserved: dict[int, int]) -> None:
    while len(cells) in reserved:
        cells.append("")


def _rows(table: LexborNode) -> Iterator[LexborNode]:
    for child in table.iter(include_text=False):
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in child.iter(include_text=False) if row.tag == "tr")


def _cells(row: LexborNode) -> Iterator[LexborNode]:
    return (cell for cell in row.iter(include_text=False) if cell.tag in ("td", "th"))


def _span(cell: LexborNode, name: str) -> int:
    value = (attribute(cell, name) or "1").strip()
    return min(_MAX_SPAN, max(1, int(value))) if value.isascii() and value.isdigit() else 1


def _flat(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


logger = logging.getLogger(__name__)

_CALLOUT_TITLES = ".admonition-title,.markdown-alert-title,.callout-title,summary"

_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True)
class ReadableText:
    """A converted chunk: its text and the images it showed."""

    text: str
    images: tuple[ChunkImage, ...]


def html_to_text(html: str, base_url: str) -> ReadableText:
    """Convert tables, code, formulas, lists and callouts to text; strip every other tag.

    Args:
        html: Any HTML; malformed input is repaired as browsers do.
        base_url: What relative image addresses are resolved against.

    Returns:
        Text with paragraphs separated by a blank line; the images in page order, none of them
        in the text.
    """
    body = LexborHTMLParser(html).body
    if body is None:
        return ReadableText("", ())
    rewrite_code(body)
    renderer = _Renderer(base_url)
    try:
        text = "\n\n".join(renderer.blocks(body))
    except RecursionError:
        logger.warning(
            "The HTML of %s is nested too deeply; only its plain text is shown", base_url
        )
        text = " ".join(body.text(separator=" ").split())
    return ReadableText(_BLANK_LINES.sub("\n\n", text).strip(), tuple(renderer.images))


@dataclass
class _Renderer:
    base_url: str
    images: list[ChunkImage] = field(default_factory=list)

    def blocks(self, node: LexborNode) -> list[str]:
        """Block texts of the node's children, in order; none of them blank."""
        found: list[str] = []
        run: list[str] = []
        for child in node.iter(include_text=True):
            if is_hidden(child):
                continue
            if holds_blocks(child):
                found += [_paragraph(run), *self._block(child)]
                run = []
            else:
                run.append(self._inline(child))
        found.append(_paragraph(run))
        return [block for block in found if block.strip()]

    def _block(self, node: LexborNode) -> list[str]:
        label = callout_label(node)
        if label:
            return [self._callout(node, label)]
        render = _RENDERERS.get(node.tag or "")
        if render is not None:
            return [render(self, node)]
        return [self._footnote(node)] if is_footnote(node) else self.blocks(node)

    def _inline(self, node: LexborNode) -> str:
        if node.is_text_node:
            return re.sub(r"\s+", " ", node.text())
        tag = node.tag or ""
        if tag == "math":
            return math_to_latex(node)
        if tag == "script":
            return tex_script(node)
        if tag == "br":
            return "\n"
        if tag == "img":
            self._collect(node)
            return ""
        text = "".join(
            self._inline(child) for child in node.iter(include_text=True) if not is_hidden(child)
        )
        return _INLINE_MARKS.get(tag, str)(text) if text.strip() else text

    def heading(self, node: LexborNode) -> str:
        return "#" * int((node.tag or "h1")[1]) + " " + " ".join(self._text(node).split())

    def rule(self, _node: LexborNode) -> str:
        return "---"

    def quote(self, node: LexborNode) -> str:
        return _prefixed("\n\n".join(self.blocks(node)), "> ")

    def code(self, node: LexborNode) -> str:
        text = node.text().strip("\n")
        longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
        fence = "`" * (longest + 1)
        return f"{fence}{code_language(node)}\n{text}\n{fence}" if text.strip() else ""

    def items(self, node: LexborNode) -> str:
        start = attribute(node, "start") or "1"
        number = int(start) if start.isascii() and start.isdigit() else 1
        lines: list[str] = []
        for child in node.iter(include_text=False):
            blocks = self.blocks(child)
            if not blocks:
                continue
            marker = f"{number}. " if node.tag == "ol" else "- "
            body = _tight(blocks)
            lines.append(marker + _prefixed(body, " " * len(marker))[len(marker) :])
            number += 1
        return "\n".join(lines)

    def definitions(self, node: LexborNode) -> str:
        entries: list[str] = []
        terms: list[str] = []
        for child in definition_parts(node):
            if child.tag == "dt":
                terms.append(" ".join(self._text(child).split()))
                continue
            entries.append(_definition(terms, self.blocks(child)))
            terms = []
        return "\n\n".join(entries + ([_definition(terms, [])] if terms else []))

    def table(self, node: LexborNode) -> str:
        listings = node.css("pre")
        if listings:  # laid out beside their line numbers, which are gone
            return "\n\n".join(filter(None, map(self.code, listings)))
        return table_to_text(node, self._text)

    def figure(self, node: LexborNode) -> str:
        caption = node.css_first("figcaption")
        text = " ".join(self._text(caption).split()) if caption is not None else ""
        before = len(self.images)
        blocks = self.blocks(node)
        self.images[before:] = [
            image.model_copy(update={"caption": image.caption or text})
            for image in self.images[before:]
        ]
        return "\n\n".join(blocks)

    def display_math(self, node: LexborNode) -> str:
        return math_to_latex(node)

    def _footnote(self, node: LexborNode) -> str:
        blocks = self.blocks(node)
        is_label = len(blocks) > 1 and re.fullmatch(r"\[?\w{1,20}\]?", blocks[0])
        return "\n\n".join([f"{blocks[0]} {blocks[1]}", *blocks[2:]] if is_label else blocks)

    def _callout(self, node: LexborNode, label: str) -> str:
        title_node = node.css_first(_CALLOUT_TITLES)
        title = " ".join(self._text(title_node).split()) if title_node is not None else ""
        blocks = self.blocks(node)
        if title and blocks and " ".join(blocks[0].split()) == title:
            del blocks[0]
        if title and title.casefold().strip(":! ") != label:
            blocks.insert(0, title)
        return f"{callout_sign(label)} {label.upper()}: " + "\n\n".join(blocks)

    def _text(self, node: LexborNode) -> str:
        return "\n".join(self.blocks(node))

    def _collect(self, node: LexborNode) -> None:
        source = image_source(node)
        if source:
            alt = attribute(node, "alt").strip()
            self.images.append(ChunkImage(url=_absolute(self.base_url, source), alt=alt))


_RENDERERS: dict[str, Callable[[_Renderer, LexborNode], str]] = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _Renderer.heading),
    "hr": _Renderer.rule,
    "blockquote": _Renderer.quote,
    "pre": _Renderer.code,
    "ul": _Renderer.items,
    "ol": _Renderer.items,
    "dl": _Renderer.definitions,
    "table": _Renderer.table,
    "figure": _Renderer.figure,
    "math": _Renderer.display_math,
}

_INLINE_MARKS: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(("code", "kbd", "samp", "tt"), lambda text: f"`{text}`"),
    "sup": lambda text: f"^{text}",
    "sub": lambda text: f"_{text}",
}


def _definition(terms: list[str], blocks: list[str]) -> str:
    term = f"**{' / '.join(terms)}**" if terms else ""
    text = "\n\n".join(blocks)
    return f"{term}: {text}" if term and text else term or text


def _tight(blocks: list[str]) -> str:
    text = blocks[0]
    for block in blocks[1:]:
        text += ("\n" if block.startswith(("- ", "1. ")) else "\n\n") + block
    return text


def _prefixed(text: str, prefix: str) -> str:
    return "\n".join((prefix + line).rstrip() for line in text.split("\n"))


def _paragraph(run: list[str]) -> str:
    lines = (" ".join(line.split(" ")).strip() for line in "".join(run).split("\n"))
    return "\n".join(re.sub(r" {2,}", " ", line) for line in lines).strip()


def _absolute(base_url: str, href: str) -> str:
    try:
        return urljoin(base_url, href)
    except ValueError:
        return href

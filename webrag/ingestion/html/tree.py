"""Small operations on a parsed page that are easy to get wrong; no policy about pages."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborNode, create_tag

BLOCK_TAGS = frozenset(
    """address article aside blockquote body center dd details dialog div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary table tbody
    td tfoot th thead tr ul""".split()  # noqa: SIM905
)


def select(node: LexborNode, selector: str) -> list[LexborNode]:
    """Return the elements below `node` that match, each once (selector lists repeat them)."""
    return list({found.mem_id: found for found in node.css(selector)}.values())


def ancestors(node: LexborNode) -> Iterator[LexborNode]:
    """Yield the elements around a node, nearest first."""
    parent = node.parent
    while parent is not None and parent.is_element_node:
        yield parent
        parent = parent.parent


def preceding(node: LexborNode) -> Iterator[LexborNode]:
    """Yield what stands before a node within the same element, nearest first."""
    before = node.prev
    while before is not None:
        yield before
        before = before.prev


def following(node: LexborNode) -> Iterator[LexborNode]:
    """Yield what stands behind a node within the same element, nearest first."""
    after = node.next
    while after is not None:
        yield after
        after = after.next


def next_element(node: LexborNode) -> LexborNode | None:
    """Return the element after a node, within the same one."""
    return next((each for each in following(node) if each.is_element_node), None)


def holds(node: LexborNode, inner: LexborNode) -> bool:
    """Tell whether one element stands within another."""
    return any(above.mem_id == node.mem_id for above in ancestors(inner))


def move_children(node: LexborNode, into: LexborNode) -> None:
    """Append all that a node holds to what another holds."""
    for child in list(node.iter(include_text=True)):
        into.insert_child(child, move=True)


def prepend(node: LexborNode, child: LexborNode, *, move: bool = False) -> None:
    """Put a child before all that a node holds."""
    if node.first_child is None:
        node.insert_child(child, move=move)
    else:
        node.first_child.insert_before(child, move=move)


def outermost(nodes: Iterable[LexborNode]) -> list[LexborNode]:
    """Give those of some nodes that stand in none of the others, each once."""
    known = {node.mem_id: node for node in nodes}
    return [
        each for each in known.values() if not any(up.mem_id in known for up in ancestors(each))
    ]


def drop(nodes: Iterable[LexborNode]) -> None:
    """Remove nodes with all they hold.

    Destroying an element leaves handles to elements inside it dangling, so of nested ones only
    the outermost is touched.
    """
    for node in outermost(nodes):
        node.decompose()


def is_blank(node: LexborNode) -> bool:
    """Tell comments, and text of nothing but white space and ends of a cell's lines."""
    return node.is_comment_node or (
        node.is_text_node and not _seen(node.text_content or "").strip()
    )


def attribute(node: LexborNode, name: str) -> str:
    """Return an attribute, "" when it is absent or has no value."""
    return node.attrs.sget(name, "") or ""


def element(tag: str, content: str | LexborNode) -> LexborNode:
    """Make an element that holds only a text, or another element."""
    made = create_tag(tag)
    if content:
        made.insert_child(content)
    return made


def rename(node: LexborNode, tag: str) -> LexborNode:
    """Put an element of another name around what a node holds, in its place, and return it."""
    made = node.parser.create_node(tag)
    node.insert_before(made, move=True)
    move_children(node, made)
    node.decompose()
    return made


def inline_text(node: LexborNode) -> str:
    """Return a node's text on one line, blocks separated by a space."""
    only = node.first_child
    if only is not None and only.is_text_node and only.next is None:  # most often
        return " ".join((only.text_content or "").split())
    parts: list[str] = []
    for inner in node.traverse(include_text=True):
        if inner.is_text_node:
            parts.append(inner.text_content or "")
        elif inner.tag in BLOCK_TAGS or inner.tag == "br":
            parts.append(" ")
    return " ".join("".join(parts).split())


SILENT = ("script", "style", "template", "noscript")


def texts_of(node: LexborNode) -> Iterator[LexborNode]:
    """Yield the texts in an element, in the page's order."""
    return (each for each in node.traverse(include_text=True) if each.is_text_node)


def text_length(node: LexborNode) -> int:
    """Return how many characters an element shows when nothing in it is hidden."""
    found = node.css(", ".join(SILENT))
    silent = (each for each in found if all(up.tag != "noscript" for up in ancestors(each)))
    return len(" ".join(without(node.text(), (each.text() for each in silent)).split()))


def without(text: str, parts: Iterable[str], left: str = "") -> str:
    """Return a text without some of its parts, given in order; `left` of each stays."""
    kept, at = [], 0
    for part in parts:
        if (found := text.find(part, at)) >= 0:
            kept.append(text[at:found])
            at = found + len(part) - len(left)
    return "".join((*kept, text[at:]))


def replace_with_contents(node: LexborNode, holders: Iterable[LexborNode]) -> None:
    """Put the contents of some elements inside `node` in its place, each as a block of its own.

    The contents are moved, not copied, so handles to them stay valid.
    """
    for holder in holders:
        block = node.parser.create_node("div")
        node.insert_before(block, move=True)
        move_children(holder, block)
    node.decompose()


MAX_DEPTH = 512
MAX_ATTRIBUTES = 1_000
# Of markup as bytes in lower case, which takes half the time.
_LONG_TAG = re.compile(rb"<[a-z][^>]{4000,}")
# What is left open goes on to the end of the page.
_RAW_TEXT = re.compile(
    rb"<!--(?:[^-]++|-(?!->))*+(?:-->)?"
    rb"|<(script|style|textarea|title|xmp)\b(?:[^<]++|<(?!/\1\s*+>))*+(?:</\1\s*+>)?"
)
# Elements without an end tag, or whose end tag authors leave out by the thousand, do not nest.
_NOT_NESTING = b"""a|area|base|basefont|bgsound|body|br|col|colgroup|dd|dt|embed|frame|head|hr|html
|img|input|keygen|li|link|meta|option|optgroup|p|param|path|rb|rp|rt|rtc|source|tbody|td|tfoot|th
|thead|tr|track|use|wbr""".replace(b"\n", b"")
_NESTING_TAG = re.compile(
    rb"<(/?)(?!(?:%b)(?![a-z0-9-]))[a-z][a-z0-9-]*+[^<>]*+(?<!/)>" % _NOT_NESTING
)
# A tag as the standard has it. Its values may hold what looks like tags, as in Sphinx's index.
_WHOLE_TAG = re.compile(
    rb"<([a-z][a-z0-9-]*+)"
    rb"(?:\s++[^\s<>\"'/=]++(?:=(?:\"[^\"]*+\"|'[^']*+'|[^\s<>\"'=`]++))?)++\s*+(/?)>"
)


class MarkupBomb(ValueError):
    """The markup is nested or attributed beyond what any page needs; the message says how."""


def check_markup(html: str) -> None:
    """Do nothing for a page a browser could show.

    Raises:
        MarkupBomb: More than `MAX_DEPTH` levels or `MAX_ATTRIBUTES` attributes on one element.
    """
    markup = _RAW_TEXT.sub(b"", html.encode("utf-8", "surrogatepass").lower())
    for match in _LONG_TAG.finditer(markup):
        if match.group().count(b"=") > MAX_ATTRIBUTES or len(match.group().split()) > 20_000:
            raise MarkupBomb(f"one of its elements has more than {MAX_ATTRIBUTES:,} attributes")
    if _depth(markup) > MAX_DEPTH and _depth(_WHOLE_TAG.sub(rb"<\1\2>", markup)) > MAX_DEPTH:
        raise MarkupBomb(f"its elements are nested more than {MAX_DEPTH} levels deep")


def _depth(markup: bytes) -> int:
    """The levels of elements in each other at most, of those whose end tags are not left out."""
    depth = most = 0
    for closing in _NESTING_TAG.findall(markup):
        depth = max(0, depth - 1) if closing else depth + 1
        most = max(most, depth)
    return most


# Stands for a backslash of the page while the converter's own escapes are told from it.
BACKSLASH = "\ue010"
TERM_END = "\ue005"
TERM_START = "\ue006"
HEADING = "\ue003"
QUOTE = "\ue007"
# Stands where the page shows a number between two lines of code.
LINE_NUMBER = "\ue008"
# Stands where a line of a table's cell ends.
CELL_LINE = "\ue009"
# Stands before and after the number that a list's item bears.
ITEM_NUMBER = "\ue00a"
_LINK_END_BASE = 0x100000
_LINK_BASE = 0xF0000
MAX_LINKS = 20_000
_MARK = re.compile(f"[{HEADING}\U000f0000-\U0010ffff]")
_COMBINING = re.compile("[\u0300-\u036f]")
_COMBINING_AFTER_MARK = re.compile(f"(?<!{_MARK.pattern})({_MARK.pattern}++)([\u0300-\u036f]++)")


@dataclass(frozen=True)
class Span:
    """The place of a link's text in the markdown, end excluded."""

    start: int
    end: int


def link_marks(number: int) -> tuple[str, str]:
    """Return the marks before and after the `number`-th link, below `MAX_LINKS`."""
    return chr(_LINK_BASE + number), chr(_LINK_END_BASE + number)


def mark_start(node: LexborNode, mark: str) -> None:
    """Put a mark before the first visible character of an element.

    Inside leading blocks, so that it does not become a paragraph of its own; elements that hold
    no prose there (lists, code, tables) are left alone.
    """
    if node.tag not in ("ul", "ol", "pre", "table", "dl", "hr"):
        _mark(node, mark, is_end=False)


def mark_end(node: LexborNode, mark: str) -> None:
    """Put a mark after the last visible character of an element, as `mark_start` does before."""
    _mark(node, mark, is_end=True)


def _mark(node: LexborNode, mark: str, *, is_end: bool) -> None:
    child = node.last_child if is_end else node.first_child
    while child is not None and is_blank(child):
        child = child.prev if is_end else child.next
    if child is None:
        node.insert_child(mark)
    elif child.is_text_node:
        text = child.text_content or ""
        seen = _seen(text)
        at = len(seen.rstrip()) if is_end else len(text) - len(seen.lstrip())
        child.replace_with(f"{text[:at]}{mark}{text[at:]}")
    elif child.tag in BLOCK_TAGS:
        (mark_end if is_end else mark_start)(child, mark)
    elif is_end:
        child.insert_after(mark)
    else:
        child.insert_before(mark)


def _seen(text: str) -> str:
    """The text with a blank for the end of a cell's line, which nothing begins or ends with."""
    return text.replace(CELL_LINE, " ")


def read_marks(marked: str) -> tuple[str, dict[int, Span], list[int]]:
    """Return text without marks, each link's span in it, and where headings begin.

    A link whose end got lost ends where it starts.
    """
    if _COMBINING.search(marked):
        marked = _COMBINING_AFTER_MARK.sub(r"\2\1", marked)
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    headings: list[int] = []
    for before, match in enumerate(_MARK.finditer(marked)):
        place, code = match.start() - before, ord(match.group())
        if match.group() == HEADING:
            headings.append(place)
        elif code >= _LINK_END_BASE:
            ends[code - _LINK_END_BASE] = place
        else:
            starts.setdefault(code - _LINK_BASE, place)
    spans = {n: Span(start, max(start, ends.get(n, start))) for n, start in starts.items()}
    return _MARK.sub("", marked), spans, headings

"""Small operations on a parsed page that are easy to get wrong; no policy about pages."""

import re
from collections.abc import Iterable, Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode, create_tag

BLOCK_TAGS = frozenset(
    """address article aside blockquote body center dd details dialog div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section summary table tbody
    td tfoot th thead tr ul""".split()  # noqa: SIM905
)


def parse(html: str) -> LexborHTMLParser:
    """Parse a whole page."""
    return LexborHTMLParser(html)


def select(node: LexborNode, selector: str) -> list[LexborNode]:
    """Return the elements below `node` that match, each once (selector lists repeat them)."""
    return list({found.mem_id: found for found in node.css(selector)}.values())


def ancestors(node: LexborNode) -> Iterator[LexborNode]:
    """Yield the elements around a node, nearest first."""
    parent = node.parent
    while parent is not None and parent.is_element_node:
        yield parent
        parent = parent.parent


def drop(nodes: Iterable[LexborNode]) -> None:
    """Remove nodes with all they hold.

    Destroying an element leaves handles to elements inside it dangling, so of nested ones only
    the outermost is touched.
    """
    found = list(nodes)
    doomed = {node.mem_id for node in found}
    outermost = [
        node for node in found if not any(above.mem_id in doomed for above in ancestors(node))
    ]
    for node in outermost:
        node.decompose()


def attribute(node: LexborNode, name: str) -> str:
    """Return an attribute, "" when it is absent or has no value."""
    return node.attrs.sget(name, "") or ""


def element(tag: str, text: str) -> LexborNode:
    """Make an element that holds only text."""
    made = create_tag(tag)
    if text:
        made.insert_child(text)
    return made


def inline_text(node: LexborNode) -> str:
    """Return a node's text on one line, blocks separated by a space."""
    parts: list[str] = []
    for inner in node.traverse(include_text=True):
        if inner.is_text_node:
            parts.append(inner.text_content or "")
        elif inner.tag in BLOCK_TAGS or inner.tag == "br":
            parts.append(" ")
    return " ".join("".join(parts).split())


def replace_with_contents(node: LexborNode, holders: Iterable[LexborNode]) -> None:
    """Put the contents of some elements inside `node` in its place, each as a block of its own.

    The contents are moved, not copied, so handles to them stay valid.
    """
    for holder in holders:
        block = node.parser.create_node("div")
        node.insert_before(block, move=True)
        for child in list(holder.iter(include_text=True)):
            block.insert_child(child, move=True)
    node.decompose()


MAX_DEPTH = 512

MAX_ATTRIBUTES = 1_000

_LONG_TAG = re.compile(r"<[A-Za-z][^>]{4000,}")

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*+)[^<>]*?(/?)>")

_RAW_TEXT = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|textarea|title|xmp)\b.*?(?:</\1\s*>|\Z)",
    re.IGNORECASE | re.DOTALL,
)

# Elements without an end tag, or whose end tag authors leave out by the thousand, do not nest.
_NOT_NESTING = frozenset(
    """a area base basefont bgsound body br col colgroup dd dt embed frame head hr html img input
    keygen li link meta option optgroup p param path rb rp rt rtc source tbody td tfoot th thead tr
    track use wbr""".split()  # noqa: SIM905
)


class MarkupBomb(ValueError):
    """The markup is nested or attributed beyond what any page needs; the message says how."""


def check_markup(html: str) -> None:
    """Do nothing for a page a browser could show.

    Raises:
        MarkupBomb: More than `MAX_DEPTH` levels or `MAX_ATTRIBUTES` attributes on one element.
    """
    markup = _RAW_TEXT.sub("", html)
    for match in _LONG_TAG.finditer(markup):
        if match.group().count("=") > MAX_ATTRIBUTES or len(match.group().split()) > 20_000:
            raise MarkupBomb(f"one of its elements has more than {MAX_ATTRIBUTES:,} attributes")
    depth = 0
    for tag in _TAG.finditer(markup):
        closing, name, self_closing = tag.groups()
        if self_closing or name.lower() in _NOT_NESTING:
            continue
        depth = max(0, depth - 1) if closing else depth + 1
        if depth > MAX_DEPTH:
            raise MarkupBomb(f"its elements are nested more than {MAX_DEPTH} levels deep")

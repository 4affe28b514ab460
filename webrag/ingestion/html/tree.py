"""Small operations on a parsed page that are easy to get wrong; no policy about pages."""

from collections.abc import Iterable, Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode, create_tag

__all__ = [
    "BLOCK_TAGS",
    "ancestors",
    "attribute",
    "drop",
    "element",
    "inline_text",
    "parse",
    "replace_with_contents",
    "select",
]

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

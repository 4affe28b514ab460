"""Collects a page's links and turns them into `OutgoingLink`s; it does not follow them."""

from dataclasses import dataclass, replace

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webrag.errors import InputError
from webrag.ingestion.characters import collapse, normalize_characters, strip_private_use
from webrag.ingestion.html.marks import MAX_LINKS, Span, link_marks, mark_end, mark_start
from webrag.ingestion.html.tree import BLOCK_TAGS, ancestors, attribute, inline_text, select
from webrag.ingestion.links import canonical_url
from webrag.ingestion.models import OutgoingLink
from webrag.ingestion.passages import Passages, shortened

__all__ = ["FoundLink", "collect_links", "mark_links", "outgoing_links"]

_MAX_ANCHOR_CHARS = 500
_MAX_REL_CHARS = 500


@dataclass(frozen=True)
class FoundLink:
    """One link of the page, before it is known whether it lies in the main content.

    Attributes:
        definition: What is said of the term the link stands in, in a definition list.
    """

    node_id: int
    url: str
    anchor_text: str
    title: str | None
    rel: tuple[str, ...]
    definition: str = ""


def collect_links(tree: LexborHTMLParser, base_url: str, page_url: str) -> list[FoundLink]:
    """Return the page's links to other pages, in page order, at most `MAX_LINKS`."""
    found: list[FoundLink] = []
    for node in tree.css("a[href], area[href]"):
        if len(found) == MAX_LINKS:
            break
        url = _target(attribute(node, "href"), base_url)
        if url is None or url == page_url:
            continue
        found.append(
            FoundLink(
                node_id=node.mem_id,
                url=url,
                anchor_text=_anchor_text(node),
                title=_cleaned(attribute(node, "title")) or None,
                rel=tuple(attribute(node, "rel")[:_MAX_REL_CHARS].lower().split()),
            )
        )
    return found


def mark_links(root: LexborNode, found: list[FoundLink]) -> list[FoundLink]:
    """Put marks around the links inside `root` and unwrap every `<a>`.

    Returns:
        The links, those inside `root` with the text that was left of them after pruning.
    """
    numbers = {link.node_id: number for number, link in enumerate(found)}
    marked = list(found)
    for node in select(root, "a"):
        number = numbers.get(node.mem_id)
        if number is not None:
            marked[number] = replace(
                found[number], anchor_text=_anchor_text(node), definition=_definition(node)
            )
            before, after = link_marks(number)
            mark_end(node, after)
            mark_start(node, before)
    root.unwrap_tags(["a"])
    return marked


def outgoing_links(
    found: list[FoundLink], spans: dict[int, Span], passages: Passages
) -> tuple[OutgoingLink, ...]:
    """Give each link its place in the text, where it has one."""
    return tuple(_outgoing(link, spans.get(number), passages) for number, link in enumerate(found))


def _outgoing(link: FoundLink, span: Span | None, passages: Passages) -> OutgoingLink:
    if span is None:
        return OutgoingLink(
            url=link.url, anchor_text=link.anchor_text, title=link.title, rel=link.rel
        )
    text_span = passages.trimmed(span)
    return OutgoingLink(
        url=link.url,
        anchor_text=link.anchor_text,
        title=link.title,
        sentence=link.definition or passages.sentence(text_span or span),
        heading=passages.heading(span.start),
        rel=link.rel,
        char_start=text_span.start if text_span else None,
        char_end=text_span.end if text_span else None,
    )


def _target(href: str, base_url: str) -> str | None:
    try:
        return canonical_url(href, base_url) if href.strip() else None
    except InputError:
        return None  # mailto:, javascript: and broken addresses are no pages


def _definition(link: LexborNode) -> str:
    """The beginning of the definition when the link stands in a term, else nothing."""
    node = next((up for up in ancestors(link) if up.tag in ("dt", "dd")), None)
    while node is not None and node.tag != "dd":
        node = node.next
    if node is None or any(up.mem_id == node.mem_id for up in ancestors(link)):
        return ""
    return shortened(_cleaned(_first_text(node)))


def _first_text(definition: LexborNode) -> str:
    """What comes first: loose text up to the first block, or the first block itself."""
    loose = ""
    for child in definition.iter(include_text=True):
        if child.tag not in BLOCK_TAGS:
            loose += inline_text(child) if child.is_element_node else child.text()
        elif loose.strip() or child.tag in ("dl", "pre", "table"):
            break
        else:
            return inline_text(child)
    return loose


def _anchor_text(node: LexborNode) -> str:
    text = _cleaned(inline_text(node))
    if not text:
        pictures = select(node, "img[alt]")
        text = _cleaned(" ".join(attribute(picture, "alt") for picture in pictures))
    return text or _cleaned(attribute(node, "aria-label"))


def _cleaned(text: str) -> str:
    return collapse(normalize_characters(strip_private_use(text)))[:_MAX_ANCHOR_CHARS]

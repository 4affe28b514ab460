"""Collects a page's links with where they lie in its text; it does not follow them."""

import bisect
import re
from collections.abc import Mapping, Sequence
from functools import cache, partial

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webrag.ingestion.addresses import link_target
from webrag.ingestion.characters import collapse, one_line, sentence_ends
from webrag.ingestion.html.tree import (
    BLOCK_TAGS,
    MAX_LINKS,
    Span,
    ancestors,
    attribute,
    drop,
    holds,
    inline_text,
    link_marks,
    mark_end,
    mark_start,
    select,
)
from webrag.ingestion.models import OutgoingLink

_MAX_SENTENCE_CHARS = 300
_LINE_MARKER = re.compile(r"^[\s>]*(?:[-*+]\s+(?:\[[ xX]\]\s+)?|\d{1,9}[.)]\s+|#{1,6}\s+|\|\s*)?")
_MARKUP = re.compile(r"\\\||[`*|]+")
_WRAPPERS = ("```", "**", "``", "~~", "`", "*", "_")


def shortened(passage: str) -> str:
    """The passage itself, or its first words within 300 characters."""
    if len(passage) <= _MAX_SENTENCE_CHARS:
        return passage
    return passage[:_MAX_SENTENCE_CHARS].rpartition(" ")[0] or passage[:_MAX_SENTENCE_CHARS]


class Passages:
    """Looks up what surrounds a place in one document's markdown."""

    def __init__(self, markdown: str, headings: list[int]) -> None:
        self._markdown = markdown
        self._headings = headings

    def trimmed(self, span: Span) -> Span | None:
        """Return the span without white space and emphasis around it, None when nothing is left."""
        text = self._markdown[span.start : span.end]
        start = span.start + len(text) - len(text.lstrip())
        text = text.strip()
        for wrapper in _WRAPPERS:
            width = len(wrapper)
            if len(text) > 2 * width and text.startswith(wrapper) and text.endswith(wrapper):
                start, text = start + width, text[width:-width]
        return Span(start, start + len(text)) if text else None

    def sentence(self, span: Span) -> str:
        """Return the sentence, list item or table row around a span, at most 300 characters."""
        text = self._markdown
        low, high = max(0, span.start - _MAX_SENTENCE_CHARS), span.end + _MAX_SENTENCE_CHARS
        *_, start = low, *sentence_ends(text, low, span.start, rule="line")
        following = sentence_ends(text, max(span.start, span.end - 1), high, rule="line")
        end = next(following, min(high, len(text)))
        passage = collapse(_MARKUP.sub(" ", _LINE_MARKER.sub("", text[start:end], count=1)))
        return shortened(passage)

    def heading(self, offset: int) -> str | None:
        """Return the nearest heading at or above a place, without markup."""
        # A link that is the heading's first word begins where the heading's text does.
        index = bisect.bisect_right(self._headings, offset) - 1
        if index < 0:
            return None
        begin = self._headings[index]
        line = self._markdown[begin : begin + 500].partition("\n")[0]
        return collapse(_MARKUP.sub("", line)) or None


_MAX_ANCHOR_CHARS = 500
_MAX_REL_CHARS = 500


def collect_links(tree: LexborHTMLParser, base_url: str, page_url: str) -> dict[int, OutgoingLink]:
    """Return the page's links to other pages by their nodes, in page order, at most `MAX_LINKS`."""
    found: dict[int, OutgoingLink] = {}
    target = cache(partial(link_target, base=base_url))  # menus repeat their links
    for node in tree.css("a[href], area[href]"):
        if len(found) == MAX_LINKS:
            break
        url = target(attribute(node, "href"))
        if url is None or url == page_url:
            continue
        found[node.mem_id] = OutgoingLink(
            url=url,
            anchor_text=_anchor_text(node),
            title=_cleaned(attribute(node, "title")) or None,
            rel=tuple(attribute(node, "rel")[:_MAX_REL_CHARS].lower().split()),
        )
    return found


def mark_links(root: LexborNode, found: Mapping[int, OutgoingLink]) -> list[OutgoingLink]:
    """Put marks around the links inside `root` and unwrap every `<a>`.

    Returns:
        The links, those inside `root` with the text that was left of them after pruning, and with
        the definition that stands beside a term as sentence.
    """
    numbers = {node: number for number, node in enumerate(found)}
    marked = list(found.values())
    for node in select(root, "a"):
        number = numbers.get(node.mem_id)
        if number is not None:
            told = {"anchor_text": _anchor_text(node), "sentence": _definition(node)}
            marked[number] = marked[number].model_copy(update=told)
            before, after = link_marks(number)
            mark_end(node, after)
            mark_start(node, before)
    # Unwrapping leaves what holds nothing, such as a button that scripts fill with a picture.
    drop(node for node in select(root, "a[href]") if node.first_child is None)
    root.unwrap_tags(["a"])
    return marked


def outgoing_links(
    found: Sequence[OutgoingLink], spans: Mapping[int, Span], passages: Passages
) -> tuple[OutgoingLink, ...]:
    """Give each link its place in the text, where it has one."""
    placed: list[OutgoingLink] = []
    for number, link in enumerate(found):
        if span := spans.get(number):
            text_span = passages.trimmed(span)
            places = {
                "sentence": link.sentence or passages.sentence(text_span or span),
                "heading": passages.heading(span.start),
                "char_start": text_span.start if text_span else None,
                "char_end": text_span.end if text_span else None,
            }
            link = link.model_copy(update=places)
        placed.append(link)
    return tuple(placed)


def _definition(link: LexborNode) -> str:
    """The beginning of the definition when the link stands in a term, else nothing."""
    node = next((up for up in ancestors(link) if up.tag in ("dt", "dd")), None)
    while node is not None and node.tag != "dd":
        node = node.next
    if node is None or holds(node, link):
        return ""
    return shortened(_cleaned(_first_text(node)))


def _first_text(definition: LexborNode) -> str:
    """The loose text up to the first block, or the first block itself."""
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
        pictures = [node, *select(node, "img[alt]")]  # itself the area of one
        text = _cleaned(" ".join(attribute(picture, "alt") for picture in pictures))
    return text or _cleaned(attribute(node, "aria-label"))


def _cleaned(text: str) -> str:
    return one_line(text)[:_MAX_ANCHOR_CHARS] if text else ""

"""Turns away markup made to exhaust a parser, before one sees it; it repairs nothing."""

import re

__all__ = ["MAX_ATTRIBUTES", "MAX_DEPTH", "MarkupBomb", "check_markup"]

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

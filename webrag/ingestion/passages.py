"""Where a page's links lie in its text: offsets, sentence, heading; it parses no HTML."""

import bisect
import re

from webrag.ingestion.characters import collapse
from webrag.ingestion.html.marks import Span

__all__ = ["Passages", "shortened"]

_MAX_SENTENCE_CHARS = 300
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9`*])|[。！？]|\n")  # noqa: RUF001
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
        start, end = span.start, span.end
        text = self._markdown
        while start < end and text[start].isspace():
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        for wrapper in _WRAPPERS:
            width = len(wrapper)
            inside = text[start:end]
            if len(inside) > 2 * width and inside.startswith(wrapper) and inside.endswith(wrapper):
                start, end = start + width, end - width
        return Span(start, end) if end > start else None

    def sentence(self, span: Span) -> str:
        """Return the sentence, list item or table row around a span, at most 300 characters."""
        text = self._markdown
        low, high = max(0, span.start - _MAX_SENTENCE_CHARS), span.end + _MAX_SENTENCE_CHARS
        before = text[low : span.start]
        ends = [match.end() for match in _SENTENCE_END.finditer(before)]
        start = low + ends[-1] if ends else low
        following = _SENTENCE_END.search(text, max(span.start, span.end - 1), high)
        end = following.end() if following else min(high, len(text))
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

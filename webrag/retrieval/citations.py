"""Verbatim quotations with the address of their passage; it does not choose what to quote."""

import re
from urllib.parse import quote

from webrag.retrieval.markup import plain_span, plain_text
from webrag.retrieval.models import CitationSpan, RetrievedChunk
from webrag.retrieval.quotes import finest_quote

__all__ = ["extract_citation", "finest_quote", "passage_link", "plain_text"]

# Browsers look a fragment up inside one block; longer texts are named by their first and last
# words, which keeps addresses short and survives a change in between.
_MAX_WHOLE_WORDS = 12
_EDGE_WORDS = 5
_LEAST_EDGE_WORDS = 3


def extract_citation(
    chunk: RetrievedChunk, quote_start: int, quote_end: int
) -> CitationSpan | None:
    """Cite a part of a chunk by its offsets in the page.

    Taken from the chunk's markdown, never from the surface shown, so that the text is exactly
    what the page holds at these offsets.

    Args:
        chunk: The chunk that holds the quotation.
        quote_start: Offset in the page's markdown where it begins.
        quote_end: Offset after its last character.

    Returns:
        The citation, or None when the offsets do not lie inside the chunk or hold nothing.
    """
    if not chunk.char_start <= quote_start < quote_end <= chunk.char_end:
        return None
    start, end = quote_start - chunk.char_start, quote_end - chunk.char_start
    plain = plain_span(chunk.text, start, end)
    return CitationSpan(
        verbatim_text=chunk.text[start:end],
        plain_text=plain,
        link=passage_link(chunk.source_url, plain),
        source_url=chunk.source_url,
        section_heading=chunk.section_heading,
        char_start=quote_start,
        char_end=quote_end,
        token_start=chunk.token_start,
        token_end=chunk.token_end,
        title=chunk.title,
        chunk_id=chunk.chunk_id,
    )


def passage_link(url: str, plain: str) -> str:
    """Address that opens a page at a passage, by a text fragment.

    Args:
        url: Address of the page.
        plain: The passage as the reader sees it; tabs and line ends separate its blocks.

    Returns:
        `url` itself when the passage holds no words.
    """
    blocks = [words for part in re.split(r"[\t\r\n]+", plain) if (words := part.split())]
    if not blocks:
        return url
    # The name of a setting in the first cell stands in many places, its description in one.
    blocks = [words for words in blocks if len(words) >= _LEAST_EDGE_WORDS] or blocks
    if len(blocks) == 1 and len(blocks[0]) <= _MAX_WHOLE_WORDS:
        directive = _encoded(blocks[0])
    else:
        directive = f"{_encoded(blocks[0][:_EDGE_WORDS])},{_encoded(blocks[-1][-_EDGE_WORDS:])}"
    return f"{url}{'' if '#' in url else '#'}:~:text={directive}"


def _encoded(words: list[str]) -> str:
    # `-`, `,` and `&` delimit the parts of a fragment; the first is left alone by `quote`.
    return quote(" ".join(words), safe="").replace("-", "%2D")

"""Verbatim quotations with the address of their passage; it does not choose what to quote."""

import re
from functools import lru_cache
from itertools import takewhile
from urllib.parse import quote

from webrag.ingestion.addresses import is_git, parse_git, web_link
from webrag.retrieval.markup import plain_span
from webrag.retrieval.models import CitationSpan, RetrievedChunk

_LINE = re.compile(r"L(\d+)")
# A long text is named by its first and last words, which survive a difference in between.
_MAX_WHOLE_WORDS = 20
_EDGE_WORDS = 5
_LEAST_EDGE_WORDS = 3
# Cells are blocks to a browser, and so is what stands on either side of a run of blanks, which
# is as long on the page as in the text only within preformatted text.
_BLOCK_GAP = re.compile(r"\s(?:(?<=[\t\r\n])[\t\r\n]*|(?<![\t\r\n])[^\S\t\r\n]+)")
# Words that pages often set apart with markup, so that blanks around them are not where the plain
# text has them: signs alone, and what was markup once.
_RISKY = re.compile(r"[`*$<>|\\{}\[\]]")


def extract_citation(
    chunk: RetrievedChunk, quote_start: int, quote_end: int
) -> CitationSpan | None:
    """Cite a part of a chunk's markdown by its offsets in the page; None where it is not inside."""
    if not chunk.char_start <= quote_start < quote_end <= chunk.char_end:
        return None
    start, end = quote_start - chunk.char_start, quote_end - chunk.char_start
    plain = plain_span(chunk.text, start, end)
    return CitationSpan(
        verbatim_text=chunk.text[start:end],
        plain_text=plain,
        link=_link(chunk, quote_start, plain),
        source_url=chunk.source_url,
        section_heading=chunk.section_heading,
        char_start=quote_start,
        char_end=quote_end,
        token_start=chunk.token_start,
        token_end=chunk.token_end,
        title=chunk.title,
        chunk_id=chunk.chunk_id,
        as_of=chunk.as_of,
    )


def _link(chunk: RetrievedChunk, offset: int, plain: str) -> str:
    """Viewers of PDFs know no text fragments, but pages; editors know lines."""
    line = cited_line(chunk, offset)
    if is_git(chunk.source_url) and chunk.commit:
        return web_link(parse_git(chunk.source_url), chunk.commit, line)
    before = [anchor for anchor in chunk.anchors if anchor.char_start <= offset]
    if not before:
        is_web = chunk.source_url.startswith("http")
        return passage_link(chunk.source_url, plain) if is_web else chunk.source_url
    fragment = before[-1].fragment if line is None else f"L{line}"
    return f"{chunk.source_url.partition('#')[0]}#{fragment}"


def cited_line(chunk: RetrievedChunk, offset: int) -> int | None:
    """The line of its file that a place in a chunk stands in, from 1; None where there is none."""
    before = [anchor for anchor in chunk.anchors if anchor.char_start <= offset]
    found = _LINE.fullmatch(before[-1].fragment) if before else None
    if found is None:
        return None
    start = before[-1].char_start - chunk.char_start
    return int(found[1]) + chunk.text.count("\n", start, offset - chunk.char_start)


@lru_cache(maxsize=256)
def passage_link(url: str, plain: str) -> str:
    """Make the address that opens a page at a passage, whose blocks tabs and line ends separate."""
    blocks = [words for part in _BLOCK_GAP.split(plain) if (words := part.split())]
    if not blocks:
        return url
    directive = _named_cell(plain.lstrip(), blocks) or _directive(blocks, is_row="\t" in plain)
    return f"{url}{'' if '#' in url else '#'}:~:text={directive}"


def _directive(blocks: list[list[str]], *, is_row: bool) -> str:
    if len(blocks) > 1 and not is_row:
        # Code: its first line stands in many listings, its longest one hardly in two.
        return _encoded(max(blocks, key=lambda words: len("".join(words)))[:_MAX_WHOLE_WORDS])
    blocks = [words for words in blocks if len(words) >= _LEAST_EDGE_WORDS] or blocks
    first, last = blocks[0], blocks[-1]
    if len(blocks) == 1 and len(first) <= _MAX_WHOLE_WORDS and not any(map(_is_risky, first)):
        return _encoded(first)
    if len(blocks) == 1 and len(first) <= 2 * _EDGE_WORDS:
        return _encoded(_edge(first))
    return f"{_encoded(_edge(first))},{_encoded(_edge(last[::-1])[::-1])}"


def _named_cell(plain: str, blocks: list[list[str]]) -> str | None:
    """The second cell of a row after its first: either alone stands in many rows."""
    if len(blocks) < 2 or "\t" not in plain.split("\n")[0]:
        return None
    name, value = blocks[:2]
    if len(name) > _EDGE_WORDS or any(map(_is_risky, (*name, *value[:_EDGE_WORDS]))):
        return None
    return f"{_encoded(name)}-,{_encoded(value[:_EDGE_WORDS])}"


def _edge(words: list[str]) -> list[str]:
    start = 0
    for at, word in enumerate(words):
        if _is_risky(word):
            start = at + 1
        elif at + 1 - start == _LEAST_EDGE_WORDS:
            edge = words[start : start + _EDGE_WORDS]
            return list(takewhile(lambda word: not _is_risky(word), edge))
    return words[:_EDGE_WORDS]


def _is_risky(word: str) -> bool:
    return not any(character.isalnum() for character in word) or bool(_RISKY.search(word))


def _encoded(words: list[str]) -> str:
    # `-`, `,` and `&` delimit the parts of a fragment; the first is left alone by `quote`.
    return quote(" ".join(words), safe="").replace("-", "%2D")

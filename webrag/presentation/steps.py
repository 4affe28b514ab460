"""Words the steps of a run for whoever waits for it."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

STEPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "plan": "Reading the question",
        "read pages": "Reading the pages you named",
        "retrieve": "Searching what is stored",
        "rerank": "Comparing passages with the question",
        "synthesize": "Choosing sentences and checking each quotation",
        "reflect": "Judging the answer",
    }
)

_PLAIN: Final = tuple(
    (re.compile(rf"\A{said}"), plain)
    for said, plain in (
        (r"Scraping (.+)", r"Fetching \1"),
        (r"Checking if (.+) is indexed", r"Reading \1"),
        (r"Searching the whole corpus", "Searching all that is stored"),
        (r"Searching 1 documents", "Searching the page you named"),
        (r"Searching (.+) documents", r"Searching the \1 pages you named"),
        (r"Reranking 0 chunks", "No passage was found there"),
        (r"Reranking 1 chunks", "Comparing 1 passage with the question"),
        (r"Reranking (.+) chunks", r"Comparing \1 passages with the question"),
        (r"Assembling results \(0 chunks, .+\)", "Nothing was found"),
        (r"Assembling results \(1 chunks, .+\)", "Reading the passage found"),
        (r"Assembling results \(([\d,]+) chunks, .+\)", r"Choosing among the \1 passages found"),
        (r"Grabbing adjacent context", "Reading what stands around it"),
        (r"Analyzing query: one query", "Reading the question"),
        (r"Analyzing query: decomposed into (.+) sub-queries", r"The question has \1 parts"),
        (r"Already stored: (.+) \([\d,]+ chunks, .+\)", r"\1 is stored already"),
        (r"Indexed: (.+) \([\d,]+ chunks, .+\)", r"Stored \1"),
        (r"Expanding to linked pages \(up to 1\)", "Following the most promising link"),
        (r"Expanding to linked pages \(up to (.+)\)", r"Following links, to \1 pages at most"),
        (r"Retrieving more of what is indexed", "Searching more of what is stored"),
    )
)


def in_plain_words(detail: str) -> str:
    """A message of the engine for people who know nothing of its parts; others stay."""
    text = detail.removesuffix("...")
    for said, plain in _PLAIN:
        if (found := said.fullmatch(text)) is not None:
            return found.expand(plain)
    return text

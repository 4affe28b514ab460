"""Questions that the stored pages can answer, made of their own headings."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING

from webrag.errors import WebRAGError
from webrag.ingestion.formats.kinds import kind_of_name

if TYPE_CHECKING:
    from webrag.app import WebRAG

_HEADING = re.compile(r"^#{2,4} (.+)$", re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_MARKUP = re.compile(r"[`*_\\¶#]|\]\([^)]*\)|[\[\]]")
_NUMBER = re.compile(r"\A\d{1,3}(?:\.\d{1,3}){0,5}\.?\s")
_ASKS = re.compile(r"(how|what|why|when|where|which|who|can|does|is|are)\b", re.IGNORECASE)
# What every page has, and nobody asks about.
_EVERYWHERE = re.compile(
    r"(see also|contents|on this page|table of contents|references?|next steps?|introduction|"
    r"overview|summary|examples?|notes?|further reading|changelog|license|navigation|footnotes|"
    r"chapter|appendix|syntax|description|parameters|returns?|options|index|comments|related)\b",
    re.IGNORECASE,
)
_LISTING = re.compile(r"\b(?:index|contents|glossary)\Z", re.IGNORECASE)
_SITE_NAME = re.compile(r"(?<!\s)\s++(?:[|\u2013\u2014\u2022\u00b7]|-|::)\s.*")
_WORDS = range(2, 9)
_PAGES = 6


def questions_from(title: str, markdown: str) -> Iterable[str]:
    """Questions about the sections of a page, in its order."""
    subject = _NUMBER.sub("", _SITE_NAME.sub("", title).strip())
    if _LISTING.search(subject):
        return
    for found in _HEADING.finditer(_FENCE.sub("", markdown)):
        heading = _NUMBER.sub("", _MARKUP.sub("", found[1]).strip(" .:"))
        if _EVERYWHERE.match(heading) or re.match(r"[\d\W]", heading):
            continue
        if len(heading.split()) not in _WORDS or heading.casefold() == subject.casefold():
            continue
        if _ASKS.match(heading):
            yield f"{heading.rstrip('?')}?"
        elif subject:
            yield f"What does “{subject}” say about {_in_a_sentence(heading)}?"


async def suggested_questions(rag: "WebRAG", sites: Sequence[str], most: int = 3) -> Sequence[str]:
    """Some questions to begin with, each about another of the pages fetched last of a site.

    An empty list when nothing stored has headings, or when it cannot be read now.
    """
    try:
        listings = [await rag.list_pages(site=site, limit=_PAGES) for site in sites[:most]]
        found: dict[str, None] = {}
        # In turn: else a large folder that was read last has all of them.
        for page in filter(None, chain.from_iterable(zip_longest(*(e.pages for e in listings)))):
            if len(found) < most and kind_of_name(page.url.rpartition("/")[2]) != "code":
                text = await rag.markdown(page.url) or ""
                found |= dict.fromkeys(islice(questions_from(page.title or "", text), 1))
    except WebRAGError:
        return ()
    return list(found)


def _in_a_sentence(heading: str) -> str:
    """The heading as the end of a sentence: a capital stays where a name may begin with it."""
    first, *others = heading.split()
    is_plain = first[:1].isupper() and first[1:].islower() and all(e.islower() for e in others)
    return heading[0].lower() + heading[1:] if is_plain else heading

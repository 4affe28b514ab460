"""Reads the SDK's answers, trusting nothing about their shape; it asks nothing."""

from collections.abc import Iterable
from typing import Any

from webrag.errors import InputError
from webrag.ingestion.characters import collapse, normalize_characters, storable
from webrag.ingestion.firecrawl.errors import clean_text
from webrag.ingestion.firecrawl.models import ScrapedPage
from webrag.ingestion.links import canonical_url
from webrag.ingestion.models import MappedLink

__all__ = ["mapped_links", "scraped_page"]

_MAX_FIELD_CHARS = 1_000


def scraped_page(document: Any) -> ScrapedPage:
    """Read one document.

    Raises:
        ValueError: It has neither content nor anything said about the page.
    """
    facts = document.metadata_typed
    page = ScrapedPage(
        markdown=_text(document.markdown),
        html=_text(document.html),
        raw_html=_text(document.raw_html),
        links=tuple(_text(link) for link in document.links or ()),
        title=_line(facts.title or facts.og_title),
        description=_line(facts.description or facts.og_description),
        language=_line(facts.language),
        published_at=_line(facts.published_time),
        modified_at=_line(facts.modified_time),
        requested_url=_text(facts.source_url),
        url=_text(facts.url or facts.source_url),
        status=facts.status_code,
        content_type=_text(facts.content_type),
        error=clean_text(_text(facts.error)),
        warning=clean_text(_text(document.warning)),
    )
    if page == ScrapedPage():
        raise ValueError("the answer holds nothing")
    return page


def mapped_links(answer: Any) -> list[MappedLink]:
    """Read a list of a site's pages; what is no web address is left out."""
    found: dict[str, MappedLink] = {}
    for item in _items(answer.links):
        try:
            url = canonical_url(_text(item.url))
        except InputError:
            continue
        found.setdefault(
            url,
            MappedLink(url=url, title=_line(item.title), description=_line(item.description)),
        )
    return list(found.values())


def _items(links: Any) -> Iterable[Any]:
    return links if isinstance(links, list) else ()


def _text(value: Any) -> str:
    return storable(value) if isinstance(value, str) else ""


def _line(value: Any) -> str:
    return collapse(normalize_characters(_text(value)))[:_MAX_FIELD_CHARS]

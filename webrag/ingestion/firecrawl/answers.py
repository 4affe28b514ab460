"""Reads the SDK's answers, trusting nothing about their shape; it asks nothing."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from webrag.errors import InputError
from webrag.ingestion.characters import collapse, normalize_characters, storable
from webrag.ingestion.firecrawl.errors import clean_text
from webrag.ingestion.firecrawl.models import ScrapedPage
from webrag.ingestion.links import canonical_url
from webrag.ingestion.models import MappedLink
from webrag.redaction import Redactor

__all__ = ["mapped_links", "scraped_page"]

_MAX_FIELD_CHARS = 1_000


def scraped_page(document: Any, redactor: Redactor) -> ScrapedPage:
    """Read one document.

    Args:
        document: What the SDK made of the answer.
        redactor: Hides the key, should the service repeat it in what becomes a stored page.

    Raises:
        ValueError: It has neither content nor anything said about the page.
    """
    facts = document.metadata_typed
    text, line = partial(_plain, redactor), partial(_one_line, redactor)
    page = ScrapedPage(
        markdown=text(document.markdown),
        html=text(document.html),
        raw_html=text(document.raw_html),
        links=tuple(text(link) for link in document.links or ()),
        title=line(facts.title or facts.og_title),
        description=line(facts.description or facts.og_description),
        language=line(facts.language),
        published_at=line(facts.published_time),
        modified_at=line(facts.modified_time),
        requested_url=text(facts.source_url),
        url=text(facts.url or facts.source_url),
        status=facts.status_code,
        content_type=text(facts.content_type),
        error=clean_text(text(facts.error)),
        warning=clean_text(text(document.warning)),
    )
    if page == ScrapedPage():
        raise ValueError("the answer holds nothing")
    return page


def mapped_links(answer: Any, redactor: Redactor) -> list[MappedLink]:
    """Read a list of a site's pages; what is no web address is left out."""
    text, line = partial(_plain, redactor), partial(_one_line, redactor)
    found: dict[str, MappedLink] = {}
    for item in _items(answer.links):
        try:
            url = canonical_url(text(item.url))
        except InputError:
            continue
        found.setdefault(
            url,
            MappedLink(url=url, title=line(item.title), description=line(item.description)),
        )
    return list(found.values())


def _items(links: Any) -> Iterable[Any]:
    return links if isinstance(links, list) else ()


def _plain(redactor: Redactor, value: Any) -> str:
    return redactor.hide_whole(storable(value)) if isinstance(value, str) else ""


def _one_line(redactor: Redactor, value: Any) -> str:
    return collapse(normalize_characters(_plain(redactor, value)))[:_MAX_FIELD_CHARS]

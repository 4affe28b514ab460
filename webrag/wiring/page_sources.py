"""Chooses where pages come from; it makes no request."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llama_index.core.readers.base import BaseReader

    from webrag.ingestion.models import PageSource, SiteMapper
    from webrag.settings import Settings

__all__ = ["PageSourceChoice", "choose_page_source"]


@dataclass(frozen=True)
class PageSourceChoice:
    """Where pages come from.

    Attributes:
        source: Asked for pages; whoever has it closes it.
        mapper: Names more pages of a site; None where nothing does. Closed with the source.
        is_own: The program gave the source, so its pages need not be on the network.
    """

    source: "PageSource"
    mapper: "SiteMapper | None" = None
    is_own: bool = False


def choose_page_source(
    settings: "Settings", builtin: "PageSource", own: "PageSource | BaseReader | None" = None
) -> PageSourceChoice:
    """Choose where pages come from.

    Args:
        settings: `FIRECRAWL_API_KEY` and `FIRECRAWL_API_URL`.
        builtin: The fetcher that needs nothing.
        own: What the program was given; a LlamaIndex reader is made a page source.

    Returns:
        What was given; else Firecrawl, with the built-in fetcher for when it cannot; else the
        built-in fetcher.
    """
    if own is not None:
        source = _as_page_source(settings, own)
        return PageSourceChoice(source, _as_mapper(source), is_own=True)
    config = settings.firecrawl_config()
    if config is None:
        return PageSourceChoice(builtin)
    from webrag.ingestion.firecrawl.source import FirecrawlSource
    from webrag.ingestion.service import FallbackSource

    firecrawl = FirecrawlSource(config)
    return PageSourceChoice(FallbackSource(firecrawl, builtin), firecrawl)


def _as_page_source(settings: "Settings", own: "PageSource | BaseReader") -> "PageSource":
    from llama_index.core.readers.base import BaseReader

    if not isinstance(own, BaseReader):
        return own
    from webrag.ingestion.reader_source import ReaderSource

    return ReaderSource(own, allowed_hosts=settings.allow_hosts)


def _as_mapper(source: "PageSource") -> "SiteMapper | None":
    from webrag.ingestion.models import SiteMapper

    return source if isinstance(source, SiteMapper) else None

"""What a page says about itself: title, description, language, dates, canonical address."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser

from webrag.errors import InputError
from webrag.ingestion.characters import collapse, normalize_characters, strip_private_use
from webrag.ingestion.dates import parse_date
from webrag.ingestion.html.page_dates import read_dates
from webrag.ingestion.html.tree import attribute, inline_text
from webrag.ingestion.links import canonical_url, site_of
from webrag.ingestion.models import Alternate

__all__ = ["PageMetadata", "read_metadata"]

MAX_TITLE_CHARS = 300
MAX_DESCRIPTION_CHARS = 1_000
_SITE_SEPARATOR = re.compile(r"(?<!\s)\s++(?:[-–—|·»:]|::)\s++")  # noqa: RUF001
_GENERIC_TITLE = re.compile(
    r"\W*(?:untitled(?: document| page)?|home(?: ?page)?|index|document|page|loading|new page"
    r"|default|welcome|react app|vite app)\W*\Z",
    re.IGNORECASE,
)
_PAGE_TYPES = frozenset({"text/markdown", "text/x-markdown", "text/plain", "text/html"})
_MAX_ALTERNATES = 200
_INDEX_FILE = re.compile(r"/(?:index|default)\.(?:html?|php|aspx?)\Z", re.IGNORECASE)
# The name robots meta tags may address, beside `robots`.
_AGENT = "webrag"


@dataclass(frozen=True)
class PageMetadata:
    """What a page says about itself; None where it says nothing usable.

    Attributes:
        base_url: What relative addresses on the page are resolved against.
        url: Canonical URL: the page's own, or the one it names on the same site.
        languages: What the page declares about its language, best first.
        robots: Directives for every reader or this one, lower case.
        alternates: The page in other languages and forms.
    """

    base_url: str
    url: str
    title: str | None = None
    description: str | None = None
    languages: tuple[str, ...] = ()
    published_at: datetime | None = None
    modified_at: datetime | None = None
    robots: tuple[str, ...] = ()
    alternates: tuple[Alternate, ...] = ()


def read_metadata(tree: LexborHTMLParser, page_url: str, html: str = "") -> PageMetadata:
    """Read a parsed page's metadata; must run before anything is pruned.

    Args:
        tree: The whole page.
        page_url: Where the page came from, after redirects.
        html: The page as text, searched for dates its metadata does not give.
    """
    metas = _meta_values(tree)
    linked = list(_linked_data(tree))
    base = _base_url(tree, page_url)
    headline = next((str(item["headline"]) for item in linked if item.get("headline")), None)
    dates = read_dates(metas, linked, html, page_url)
    return PageMetadata(
        base_url=base,
        url=_canonical(tree, page_url, base),
        title=_title(tree, metas, headline),
        description=_clean(
            metas.get("description") or metas.get("og:description"), MAX_DESCRIPTION_CHARS
        ),
        languages=_declared_languages(tree, metas),
        published_at=dates.published_at or _time_element(tree),
        modified_at=dates.modified_at,
        robots=_robots(metas, _AGENT),
        alternates=_alternates(tree, base),
    )


def _meta_values(tree: LexborHTMLParser) -> dict[str, str]:
    values: dict[str, str] = {}
    for meta in tree.css("meta[content]"):
        content = attribute(meta, "content").strip()
        for name in ("property", "name", "itemprop", "http-equiv"):
            key = attribute(meta, name).strip().lower()
            if key and content:
                values.setdefault(key, content)
    return values


def _linked_data(tree: LexborHTMLParser) -> Iterator[dict[str, Any]]:
    for script in tree.css('script[type="application/ld+json"]'):
        try:
            data = json.loads(script.text())
        except (ValueError, RecursionError):
            continue
        items = data if isinstance(data, list) else [data]
        for item in items:
            if isinstance(item, dict):
                yield item
                graph = item.get("@graph")
                if isinstance(graph, list):
                    yield from (entry for entry in graph if isinstance(entry, dict))


def _base_url(tree: LexborHTMLParser, page_url: str) -> str:
    base = tree.css_first("base[href]")
    if base is None:
        return page_url
    try:
        return canonical_url(attribute(base, "href"), page_url, keep_tracking=True)
    except InputError:
        return page_url


def _canonical(tree: LexborHTMLParser, page_url: str, base: str) -> str:
    own = canonical_url(page_url)
    link = tree.css_first('link[rel~="canonical"][href]')
    if link is None:
        return own
    try:
        named = canonical_url(attribute(link, "href"), base)
    except InputError:
        return own
    if own.startswith("https:") and named.startswith("http:"):
        named = f"https:{named.removeprefix('http:')}"
    # Many sites name a section's first page on every page of it. A page filed under such an
    # address would replace another, and quotations would point to a page that lacks them; so only
    # spellings of one address count. Pages with equal text are joined when they are stored.
    return named if _spelling(named) == _spelling(own) else own


def _spelling(url: str) -> tuple[str, str, str]:
    """What is left of an address without scheme, `www.`, index file and final slash."""
    parts = urlsplit(url)
    path = _INDEX_FILE.sub("", parts.path).rstrip("/")
    return site_of(url), path, parts.query


def _title(tree: LexborHTMLParser, metas: dict[str, str], headline: str | None) -> str | None:
    """The page's own heading when the title tag repeats it with the site's name, else the tag."""
    tag = tree.css_first("head > title") or tree.css_first("title")
    tagged = _clean(tag.text() if tag is not None else None, MAX_TITLE_CHARS)
    heading_node = tree.css_first("h1")
    heading = None
    if heading_node is not None:
        heading = _clean(inline_text(heading_node).rstrip(" ¶#§🔗"), MAX_TITLE_CHARS)
    named = _clean(metas.get("og:title") or metas.get("twitter:title"), MAX_TITLE_CHARS)
    generic = tagged if tagged and _GENERIC_TITLE.match(tagged) else None
    if tagged and generic is None:
        for candidate in (heading, named):
            if candidate and candidate in _SITE_SEPARATOR.split(tagged):
                return candidate
            if candidate and tagged.startswith(candidate):
                return candidate
        return tagged
    return named or heading or _clean(headline, MAX_TITLE_CHARS) or generic


def _declared_languages(tree: LexborHTMLParser, metas: dict[str, str]) -> tuple[str, ...]:
    root = tree.css_first("html")
    declared = attribute(root, "lang") or attribute(root, "xml:lang") if root is not None else ""
    names = ("content-language", "dc.language", "language", "og:locale")
    return (declared, *(metas.get(name, "") for name in names))


def _robots(metas: dict[str, str], agent: str) -> tuple[str, ...]:
    written = f"{metas.get('robots', '')},{metas.get(agent.lower(), '')}".lower()
    parts = (part.strip()[:50] for part in written.split(",")[:50])
    return tuple(dict.fromkeys(part for part in parts if part))


def _alternates(tree: LexborHTMLParser, base: str) -> tuple[Alternate, ...]:
    found: list[Alternate] = []
    for link in tree.css('link[rel~="alternate"][href]')[:_MAX_ALTERNATES]:
        language = attribute(link, "hreflang").strip().lower()
        media = attribute(link, "type").strip().lower()
        # Feeds and the like are other documents, not this page in another form.
        if not language and media not in _PAGE_TYPES:
            continue
        try:
            url = canonical_url(attribute(link, "href"), base)
        except InputError:
            continue
        found.append(Alternate(url=url, language=language[:35], media_type=media[:100]))
    return tuple(found)


def _time_element(tree: LexborHTMLParser) -> datetime | None:
    node = tree.css_first("time[pubdate], time[itemprop=datePublished], article header time")
    return parse_date(attribute(node, "datetime") or node.text()) if node is not None else None


def _clean(text: str | None, limit: int) -> str | None:
    cleaned = collapse(normalize_characters(strip_private_use(text or "")))
    return cleaned[:limit].rstrip() or None

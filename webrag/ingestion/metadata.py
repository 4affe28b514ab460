"""What a page says about itself: title, description, language, dates, canonical address."""

import email.utils
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from webrag.errors import InputError
from webrag.ingestion.characters import collapse, normalize_characters, strip_private_use
from webrag.ingestion.links import canonical_url, parent_urls, site_of
from webrag.ingestion.tree import attribute, inline_text

__all__ = ["PageMetadata", "parse_date", "read_metadata"]

_MAX_TITLE_CHARS = 300
_MAX_DESCRIPTION_CHARS = 1_000
_PUBLISHED = (
    *("article:published_time", "datepublished", "dc.date", "dcterms.created", "dc.date.issued"),
    *("date", "pubdate", "publish-date", "citation_publication_date", "parsely-pub-date"),
)
_MODIFIED = (
    *("article:modified_time", "datemodified", "og:updated_time", "dcterms.modified"),
    *("last-modified", "revised"),
)
_SITE_SEPARATOR = re.compile(r"\s+[-–—|·»:]\s+|\s+::\s+")  # noqa: RUF001
_LANGUAGE = re.compile(r"[a-z]{2,3}(?=$|[-_])")
_DATE = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?\Z")


@dataclass(frozen=True)
class PageMetadata:
    """What a page says about itself; None where it says nothing usable.

    Attributes:
        base_url: What relative addresses on the page are resolved against.
        url: Canonical URL: the page's own, or the one it names on the same site.
    """

    base_url: str
    url: str
    title: str | None = None
    description: str | None = None
    language: str | None = None
    published_at: datetime | None = None
    modified_at: datetime | None = None


def read_metadata(tree: LexborHTMLParser, page_url: str) -> PageMetadata:
    """Read a parsed page's metadata; must run before anything is pruned.

    Args:
        tree: The whole page.
        page_url: Where the page came from, after redirects.
    """
    metas = _meta_values(tree)
    linked = list(_linked_data(tree))
    base = _base_url(tree, page_url)
    headline = next((str(item["headline"]) for item in linked if item.get("headline")), None)
    return PageMetadata(
        base_url=base,
        url=_canonical(tree, page_url, base),
        title=_title(tree, metas, headline),
        description=_clean(
            metas.get("description") or metas.get("og:description"), _MAX_DESCRIPTION_CHARS
        ),
        language=_language(tree, metas),
        published_at=_first_date(_PUBLISHED, "datePublished", metas, linked) or _time_element(tree),
        modified_at=_first_date(_MODIFIED, "dateModified", metas, linked),
    )


def parse_date(text: str) -> datetime | None:
    """Return a date or time as written in metadata, in UTC; None when it is none or implausible."""
    value = text.strip()
    moment: datetime | None = None
    partial = _DATE.match(value)
    try:
        if partial:
            year, month, day = (int(part) if part else 1 for part in partial.groups())
            moment = datetime(year, month, day, tzinfo=UTC)
        else:
            moment = datetime.fromisoformat(value)
    except ValueError:
        try:
            moment = email.utils.parsedate_to_datetime(value)
        except ValueError:
            return None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    if not 1970 <= moment.year <= datetime.now(UTC).year + 1:
        return None
    return moment.astimezone(UTC)


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
    # A site that names its front page on every page would fold into one document.
    is_front_page = not parent_urls(f"{named.rstrip('/')}/x") and "?" not in named
    return named if site_of(named) == site_of(own) and not is_front_page else own


def _title(tree: LexborHTMLParser, metas: dict[str, str], headline: str | None) -> str | None:
    """The page's own heading when the title tag repeats it with the site's name, else the tag."""
    tag = tree.css_first("head > title, title")
    tagged = _clean(tag.text() if tag is not None else None, _MAX_TITLE_CHARS)
    heading_node = tree.css_first("h1")
    heading = None
    if heading_node is not None:
        heading = _clean(inline_text(heading_node).rstrip(" ¶#§🔗"), _MAX_TITLE_CHARS)
    named = _clean(metas.get("og:title") or metas.get("twitter:title"), _MAX_TITLE_CHARS)
    if tagged:
        for candidate in (heading, named):
            if candidate and candidate in _SITE_SEPARATOR.split(tagged):
                return candidate
            if candidate and tagged.startswith(candidate):
                return candidate
        return tagged
    return named or heading or _clean(headline, _MAX_TITLE_CHARS)


def _language(tree: LexborHTMLParser, metas: dict[str, str]) -> str | None:
    root = tree.css_first("html")
    declared = attribute(root, "lang") or attribute(root, "xml:lang") if root is not None else ""
    value = declared or metas.get("content-language") or metas.get("og:locale") or ""
    match = _LANGUAGE.match(value.strip().lower())
    return match.group() if match else None


def _first_date(
    names: tuple[str, ...], key: str, metas: dict[str, str], linked: list[dict[str, Any]]
) -> datetime | None:
    written = [metas[name] for name in names if name in metas]
    written += [str(item[key]) for item in linked if item.get(key)]
    return next((moment for text in written if (moment := parse_date(text))), None)


def _time_element(tree: LexborHTMLParser) -> datetime | None:
    node = tree.css_first("time[pubdate], time[itemprop=datePublished], article header time")
    return parse_date(attribute(node, "datetime") or node.text()) if node is not None else None


def _clean(text: str | None, limit: int) -> str | None:
    cleaned = collapse(normalize_characters(strip_private_use(text or "")))
    return cleaned[:limit].rstrip() or None

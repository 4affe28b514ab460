"""What a page says about itself: title, description, language, dates, canonical address."""

import itertools
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import unescape
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webrag.errors import InputError
from webrag.ingestion.addresses import canonical_url, page_address, site_of
from webrag.ingestion.characters import collapse, normalize_characters, strip_private_use
from webrag.ingestion.dates import parse_date
from webrag.ingestion.html.tree import ancestors, attribute, inline_text
from webrag.ingestion.models import Alternate
from webrag.ingestion.versions import MAX_NAME_CHARS, plain_version

_MAX_CHARS: Final = 2_000
_WORD: Final = r"[vV]?(\d[\w.+-]{0,40})"
_METAS: Final = ("docusaurus_version", "docsearch:version")
_SPHINX_OPTIONS: Final = re.compile(r"""\bVERSION["']?\s{0,5}:\s{0,5}["']([^"'\n]{1,50})["']""")
# "<name> 3.2 documentation" is Sphinx's, "Cone (Kiln 2.1 API)" Javadoc's.
_SPHINX_TITLE: Final = re.compile(rf"\s{_WORD} documentation\s{{0,5}}\Z")
_JAVADOC_TITLE: Final = re.compile(rf"\([^()]{{1,100}}?\s{_WORD} API\)\s{{0,5}}\Z")
_JAVA_TITLE: Final = re.compile(r"\(Java SE (\d{1,3})\b")
_BY_ELEMENT: Final = (
    "#projectnumber",  # Doxygen
    ".sidebar-crate .version, .sidebar .block.version",  # rustdoc
)
_FIRST_NUMBER: Final = re.compile(rf"(?<![\w.]){_WORD}")


def marked_version(tree: LexborHTMLParser, metas: Mapping[str, str]) -> str:
    """The version that the page's generator names; empty where it names none.

    Args:
        tree: The whole page, before anything is pruned.
        metas: Contents of its meta tags by lower-case name.
    """
    named = [part for name in _METAS for part in metas.get(name, "")[:_MAX_CHARS].split(",")]
    for text in (*named, *_titled(tree), *_options(tree), *_shown(tree)):
        version = plain_version(text.strip().rstrip("."))
        if version is not None:
            return version
    return ""


def _titled(tree: LexborHTMLParser) -> list[str]:
    tag = tree.css_first("head > title") or tree.css_first("title")
    title = " ".join(tag.text()[:_MAX_CHARS].split())[-300:] if tag is not None else ""
    patterns = (_SPHINX_TITLE, _JAVADOC_TITLE, _JAVA_TITLE)
    return [found[1] for pattern in patterns if (found := pattern.search(title))]


def _options(tree: LexborHTMLParser) -> list[str]:
    scripts = (each.text() for each in tree.css("script:not([src])"))
    options = (text[:_MAX_CHARS] for text in scripts if "DOCUMENTATION_OPTIONS" in text)
    return [found[1] for text in options if (found := _SPHINX_OPTIONS.search(text))]


def _shown(tree: LexborHTMLParser) -> list[str]:
    marks = (tree.css_first(selector) for selector in _BY_ELEMENT)
    texts = (inline_text(mark)[:100] for mark in marks if mark is not None)
    return [found[1] for text in texts if (found := _FIRST_NUMBER.search(text))]


_PUBLISHED = (
    *("article:published_time", "datepublished", "dc.date", "dcterms.created", "dc.date.issued"),
    *("date", "pubdate", "publish-date", "citation_publication_date", "parsely-pub-date"),
)

_MODIFIED = (
    *("article:modified_time", "datemodified", "og:updated_time", "dcterms.modified"),
    *("last-modified", "revised", "docsearch:date"),
)

# The search parses the page once more, which for a larger one takes too long.
_SEARCHED_CHARS = 1_000_000

_UPDATED = re.compile(r"\b(?:updated|modified|changed|revised|edited|built)\b", re.IGNORECASE)

_OFFSET = re.compile(r"(?<=\d)\s?[+-]\d\d:?\d\d\Z")

# Beside the heading.
_LEAD_CHARS = 600

_DAY = re.compile(
    r"(?<![\d.])\d{1,2}\. ?(?:\d{1,2}\. ?|[^\W\d_]{3,9} )20\d\d(?!\d)"
    r"|(?<!\d)20\d\d-\d\d-\d\d(?!\d)|[A-Z][a-z]{2,8} \d{1,2}, 20\d\d(?!\d)"
    r"|(?<!\d)\d{1,2} (?:de )?[^\W\d_]{3,10} (?:de )?20\d\d(?!\d)"
)

_HAS_DATE = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True)
class PageDates:
    """When a page was published and last changed, by its own clock; None where it does not say."""

    published_at: datetime | None = None
    modified_at: datetime | None = None


def read_dates(
    metas: Mapping[str, str], linked: Sequence[Mapping[str, Any]], html: str, url: str
) -> PageDates:
    """Return a page's dates: from its metadata, else from its visible marks of a date.

    Args:
        metas: Contents of meta tags by lower-case name.
        linked: Items of the page's JSON-LD.
        html: The page, searched when the metadata says nothing.
        url: Where it came from; some addresses carry the date.
    """
    published = _first(_PUBLISHED, "datePublished", metas, linked)
    modified = _first(_MODIFIED, "dateModified", metas, linked)
    if published is None and modified is None:
        published, modified = _searched(html, url)
    if published is not None and modified is not None and modified < published:
        modified = None
    return PageDates(published, modified)


def _first(
    names: Sequence[str],
    key: str,
    metas: Mapping[str, str],
    linked: Sequence[Mapping[str, Any]],
) -> datetime | None:
    written = [metas[name] for name in names if name in metas]
    written += [str(item[key]) for item in linked if item.get(key)]
    # The day is that which readers see, whatever it is elsewhere.
    days = (parse_date(_OFFSET.sub("", text.strip())) for text in written)
    return next((moment for moment in days if moment), None)


def _searched(html: str, url: str) -> tuple[datetime | None, datetime | None]:
    if len(html) > _SEARCHED_CHARS or not _HAS_DATE.search(html):
        return None, None
    # The library reports every page it cannot parse; a page without a date is no event.
    logging.getLogger("htmldate").setLevel(logging.CRITICAL)
    published = _find(html, url, original=True)
    if published is None:
        return None, None
    modified = _find(html, url, original=False)
    if modified in (None, published):
        return (None, published) if _says_updated(html, published) else (published, None)
    return published, modified


def _says_updated(html: str, date: datetime) -> bool:
    """The page calls its only date that of a change."""
    near = (html[match.end() : match.end() + 80] for match in _UPDATED.finditer(html))
    return any(str(date.year) in text for text in itertools.islice(near, 20))


def _find(html: str, url: str, *, original: bool) -> datetime | None:
    # Loading it takes longer than a page; only the worker processes, which ask for it early, wait.
    from htmldate import find_date

    # "Extensive search" takes any date of the text, and long to load its languages.
    try:
        found = find_date(html, extensive_search=False, original_date=original, url=url)
    except (ValueError, TypeError, AttributeError, OverflowError):
        logging.getLogger(__name__).debug("the dates of %s cannot be searched", url, exc_info=True)
        return None
    moment = parse_date(found) if found else None
    # Version 3.3.10 is no day of 2010.
    is_written = moment is not None and re.search(rf"(?<!\d){moment.year}(?!\d)", f"{html} {url}")
    return moment if is_written else None


MAX_TITLE_CHARS = 300

_MOST_AUTHORS = 10

_MOST_AUTHOR_CHARS = 80

_AUTHOR_METAS = (
    *("author", "article:author", "dc.creator", "dcterms.creator", "parsely-author"),
    *("sailthru.author", "citation_author", "byl", "og:author", "article:author_name"),
)

# Marks of a name in the page, the plainest first.
_BYLINES = (
    "[itemprop=author] [itemprop=name]",
    "[itemprop=author]",
    "a[rel~=author], .vcard .fn, .author .fn",
    ".author-name, .author__name, .authorname, .entry-author, .post-author, .article-author",
    "a[href*='/author/'], a[href*='/autor/'], a[href*='/authors/'], a[href*='/autoren/']",
    ".byline, [class*=byline], .author, #author, [class*=author], [class*=autor], [class*=Autor]",
    ".submitted .username, a.username",
)

_WRITTEN_BY = re.compile(
    r">\s*+(?:\d[\d.:/ ]{7,19}+(?:Uhr\s*+)?[|\u2013-]\s*+|(?:\d[\d.:/ ]{7,19}+(?:Uhr\s*+)?)?"
    r"(?:(?:Posted|Written|Text|Eine? [\w-]{4,20}) )?(?:[Bb]y|BY|[Vv]on|VON|[Pp]ar|[Pp]or|Text|"
    r"Aut(?:eur|or|orin|or/in)|Redaktion)(?: ?:|\s)\s*+(?:<[^<>]*+>\s*+)*+)"
    r"((?:[^\W\d_a-z][\w.'\u2019-]++[ ]){1,3}[^\W\d_a-z][\w'\u2019-]+)"
    r"\s*(?:[<|,(@]|(?:on|am|under|Foto|Illustration)\b)"
)

_BY = re.compile(
    r"^(?:(?:posted|written|published|text|story|words|article|geschrieben|veröffentlicht|alles"
    r"|(?:eine? )?[\w-]*(?:beitrag|kolumne|mitteilung|interview)) )?"
    r"(?:by|von|par|por|door|di|av)\b[\s:]*|^(?:autor(?:in)?|author|text|redaktion)s?:\s*",
    re.IGNORECASE,
)

_BY_OTHERS = re.compile(r"comment|respond|reply|widget|sidebar|related|teaser", re.IGNORECASE)

_LEAST_SITE_CHARS = 5

# Of a person; that of a user, or a first name alone, tells less.
_FULL_NAME = re.compile(r"[^\W\d_a-z]\S* ")

_OFFICE = re.compile(
    r"\be\.\s?V\.|\b(?:AG|GmbH|Inc|Ltd|SE)\b"
    r"|(?i:redaktion|editor|stiftung|verlag|verband|team\b|online\b)"
)

_NO_AUTHOR = re.compile(
    r"https?:|www\.|@|[*(?\u2192]|\d\d|\A(?:name|autore?n|authors|admin(?:istrator)?|author|autor|editor|by)\Z",
    re.I,
)

MAX_DESCRIPTION_CHARS = 1_000

_SITE_SEPARATOR = re.compile(r"(?<!\s)\s++(?:[-–—|·»«:~/]|::|//)\s++")  # noqa: RUF001

_SITE_METAS = ("og:site_name", "application-name", "apple-mobile-web-app-title", "twitter:site")

_MOST_HEADINGS = 20

_LEAST_CONTAINED = 15  # characters: a shorter heading may be part of any title

_LONG_WORD = re.compile(r"[^\W\d_]{4,}")

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
        author: Who wrote it, several joined by commas.
        site_name: What its site calls itself.
        languages: What the page declares about its language, best first.
        robots: Directives for every reader or this one, lower case.
        alternates: The page in other languages and forms.
        version: What its generator says; empty where it says nothing.
    """

    base_url: str
    url: str
    title: str | None = None
    description: str | None = None
    author: str | None = None
    site_name: str | None = None
    languages: tuple[str, ...] = ()
    published_at: datetime | None = None
    modified_at: datetime | None = None
    robots: tuple[str, ...] = ()
    alternates: tuple[Alternate, ...] = ()
    version: str = ""


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
    dates = read_dates(metas, linked, html, page_url)
    names = _names(tree, metas, linked, page_url)
    return PageMetadata(
        base_url=base,
        url=_canonical(tree, page_url, base),
        title=_title(tree, metas, names),
        author=_author(tree, metas, linked, names),
        site_name=_clean(names.named, MAX_NAME_CHARS),
        description=_clean(
            metas.get("description") or metas.get("og:description"), MAX_DESCRIPTION_CHARS
        ),
        languages=_declared_languages(tree, metas),
        published_at=dates.published_at or _time_element(tree) or _near_heading(tree, dates),
        modified_at=dates.modified_at,
        robots=_robots(metas, _AGENT),
        alternates=_alternates(tree, base),
        version=marked_version(tree, metas),
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
    own = page_address(page_url)
    link = tree.css_first('link[rel~="canonical"][href]')
    # One file cannot speak for another.
    if link is None or not own.startswith("http"):
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


@dataclass(frozen=True)
class _Names:
    """What the page's metadata calls it, and the site it belongs to (folded)."""

    headline: str | None
    site: frozenset[str]
    named: str | None


def _title(tree: LexborHTMLParser, metas: dict[str, str], names: _Names) -> str | None:
    """What the sources of the title agree on, without the name of the site."""
    tag = tree.css_first("head > title") or tree.css_first("title")
    whole = _clean(tag.text() if tag is not None else None, MAX_TITLE_CHARS)
    heads = [text for node in tree.css("h1")[:_MOST_HEADINGS] if (text := _heading(node))]
    named, headline = (
        _without_site(text, names)
        for text in (metas.get("og:title") or metas.get("twitter:title"), names.headline)
    )
    if not whole or _GENERIC_TITLE.match(whole):
        return next((text for text in (named, *heads, headline) if text), whole)
    tagged = _without_site(whole, names) or whole
    parts = [part for part in _SITE_SEPARATOR.split(whole) if part.strip()]
    below = [text for node in tree.css("h2")[:_MOST_HEADINGS] if (text := _heading(node))]
    own = [text for text in heads if _folded(text) not in names.site]
    others = [text for text in (*own, *below, named, headline) if text]
    others = [text for text in others if _folded(text) not in names.site]
    agreed = (text for text in others if text in parts or tagged.startswith(text))
    held = (text for text in others[:1] if len(text) >= _LEAST_CONTAINED and text in tagged)
    # The heading that readers see, where the title tag speaks to search engines of the same.
    alike = [text for text in own if _is_like(text, f"{whole} {named}")]
    seen = (text for text in alike if len(alike) == 1)
    fallback = (text for text in heads[:1] if text in parts and tagged == whole)
    return next(itertools.chain(agreed, held, seen, fallback), tagged)


def _without_site(text: str | None, names: _Names) -> str | None:
    """A title from its first to its last part that is not the site's name."""
    whole = _clean(text, MAX_TITLE_CHARS)
    parts = _SITE_SEPARATOR.split(whole or "")
    own = [part for part in parts if part.strip() and _folded(part) not in names.site]
    if not whole or not own:
        return whole
    return whole[whole.find(own[0]) : whole.rfind(own[-1]) + len(own[-1])]


def _is_like(heading: str, title: str) -> bool:
    """Whether a longer heading says something of what a title says."""
    said = set(_LONG_WORD.findall(title.casefold()))
    return len(heading) >= _LEAST_CONTAINED and any(
        word in said for word in _LONG_WORD.findall(heading.casefold())
    )


def _heading(node: LexborNode) -> str | None:
    return _clean(inline_text(node).rstrip(" ¶#§🔗"), MAX_TITLE_CHARS)


def _folded(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _names(
    tree: LexborHTMLParser, metas: Mapping[str, str], linked: Sequence[Mapping[str, Any]], url: str
) -> _Names:
    written = [metas.get(name, "") for name in _SITE_METAS]
    for item in linked:
        written += [str(item.get("name") or "")] if item.get("@type") == "WebSite" else []
        written += _people(item.get("publisher"), linked)
    named = next((name for name in written if name and not name.startswith(("@", "http"))), None)
    # What leads to the start page from the top of a page is the site's name, or its logo.
    homes = (node for node in tree.css("h1 > a[href], a[rel=home]")[:_MOST_HEADINGS])
    written += [node.text() for node in homes if _is_home(attribute(node, "href"), url)]
    host = (urlsplit(url).hostname or "").removeprefix("www.")
    written += [host, *host.split(".")[:-1]]
    headline = next((str(item["headline"]) for item in linked if item.get("headline")), None)
    return _Names(headline, frozenset(map(_folded, written)) - {""}, named)


def _people(said: Any, linked: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of one or several people or publishers of JSON-LD."""
    if isinstance(said, list):
        return [name for each in said[:_MOST_AUTHORS] for name in _people(each, ())]
    if not isinstance(said, dict):
        return [said] if isinstance(said, str) else []
    name = said.get("name")
    if name is None and "@id" in said:
        others = (item.get("name") for item in linked if item.get("@id") == said["@id"])
        name = next(filter(None, others), None)
    return _people(name, ()) if isinstance(name, str | list) else []


def _author(
    tree: LexborHTMLParser,
    metas: Mapping[str, str],
    linked: Sequence[Mapping[str, Any]],
    names: _Names,
) -> str | None:
    """Who wrote a page, by the first of its sources that names somebody else than the site."""
    found: dict[int, list[str]] = {}
    for source in _authors(tree, metas, linked):
        cleaned = (_byline(text) for text in source)
        people = list(filter(_is_name, cleaned))
        if people:
            is_own = any(_is_of_site(each, names) for each in people)
            rank = 2 if is_own else 0 if all(map(_FULL_NAME.match, people)) else 1
            found.setdefault(rank, people)
            if rank == 0:
                break
    people = found[min(found)] if found else []
    return ", ".join(dict.fromkeys(people))[:MAX_NAME_CHARS] or None


def _byline(text: str) -> str:
    """The name in a line that may also say when."""
    line = (_clean(unescape(text), MAX_TITLE_CHARS) or "").partition(" | ")[0]
    return _BY.sub("", line)


def _is_of_site(name: str, names: _Names) -> bool:
    """Whether a name is that of the site, or of an office in place of a person."""
    folded = _folded(name)
    is_named = any(site in folded for site in names.site if len(site) >= _LEAST_SITE_CHARS)
    return is_named or folded in names.site or _OFFICE.search(name) is not None


def _authors(
    tree: LexborHTMLParser, metas: Mapping[str, str], linked: Sequence[Mapping[str, Any]]
) -> Iterator[list[str]]:
    """Who several places of a page call its author, the surest place first."""
    yield from (_people(item.get("author"), linked) for item in linked if item.get("author"))
    yield from ([metas[name]] for name in _AUTHOR_METAS if name in metas)
    heads = tree.css("h1")[:_MOST_HEADINGS]
    outer = {above.mem_id for head in heads for above in ancestors(head)}
    yield from (_marked(tree, selector, outer) for selector in _BYLINES)
    yield [found[1] for found in itertools.islice(_WRITTEN_BY.finditer(tree.html or ""), 1)]


def _marked(tree: LexborHTMLParser, selector: str, outer: set[int]) -> list[str]:
    """The names that the first element of some marks, and those like it beside, hold."""
    marks = [mark for mark in tree.css(selector)[:_MOST_AUTHORS] if not _is_by_others(mark, outer)]
    beside = [mark for mark in marks if mark.parent == marks[0].parent]
    return [attribute(mark, "content") or inline_text(mark) for mark in beside]


def _is_by_others(mark: LexborNode, outer: set[int]) -> bool:
    """Whether an element stands in comments, a form or a box of other pages.

    Boxes around headings (`outer`) do not tell: layouts call that around page and sidebar by both.
    """
    around = [mark, *ancestors(mark)]
    is_in_article = any(above.tag == "article" for above in around)
    boxes = itertools.takewhile(lambda above: above.mem_id not in outer, around)
    return any(
        above.tag in ("form", "aside")
        or (above.tag == "footer" and not is_in_article)
        or _BY_OTHERS.search(f"{attribute(above, 'class')} {attribute(above, 'id')}")
        for above in boxes
        if above.tag not in ("html", "body")
    )


def _is_name(text: str) -> bool:
    return 1 < len(text) <= _MOST_AUTHOR_CHARS and not _NO_AUTHOR.search(text)


def _is_home(href: str, url: str) -> bool:
    parts = urlsplit(urljoin(url, href))
    return parts.path in ("", "/") and not parts.query and parts.hostname == urlsplit(url).hostname


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


def _near_heading(tree: LexborHTMLParser, dates: PageDates) -> datetime | None:
    """The first day that the text around the first heading names, when nothing else says any."""
    heading = tree.css_first("h1")
    if heading is None or tree.body is None or dates.modified_at is not None:
        return None
    name = inline_text(heading)
    before, _, after = inline_text(tree.body).partition(name) if name else ("", "", "")
    lines = f"{before[-_LEAD_CHARS // 3 :]} {after[:_LEAD_CHARS]}"
    days = (
        _find(f"<html><body><p class=date>{day[0]}</p></body></html>", "", original=True)
        for day in _DAY.finditer(lines)
    )
    return next((day for day in days if day), None)


def _clean(text: str | None, limit: int) -> str | None:
    cleaned = collapse(normalize_characters(strip_private_use(text or "")))
    return cleaned[:limit].rstrip() or None

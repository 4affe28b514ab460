"""Reads a page's own statements: title, description, language, dates, canonical address."""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import unescape
from typing import Any, Final
from urllib.parse import SplitResult, urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webrag.ingestion.addresses import link_target, page_address, site_of
from webrag.ingestion.characters import folded, one_line
from webrag.ingestion.html.tree import BLOCK_TAGS, ancestors, attribute, inline_text, without
from webrag.ingestion.models import PageMetadata, markdown_version
from webrag.ingestion.versions import MAX_NAME_CHARS, parse_date, plain_version

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


@dataclass(frozen=True)
class _Page:
    """A page's sources: its text is parted by zeros, `outer` is around its headings."""

    tree: LexborHTMLParser
    url: str
    metas: Mapping[str, str]
    linked: Sequence[Mapping[str, Any]]
    text: str
    head: LexborNode | None
    outer: set[int]


def _version(page: _Page) -> str:
    """The version that a page's generator names; empty where it names none."""
    tree = page.tree
    named = [part for name in _METAS for part in page.metas.get(name, "")[:_MAX_CHARS].split(",")]
    tag = tree.css_first("head > title") or tree.css_first("title")
    title = " ".join(tag.text()[:_MAX_CHARS].split())[-300:] if tag is not None else ""
    scripts = (each.text() for each in tree.css("script:not([src])"))
    options = (text[:_MAX_CHARS] for text in scripts if "DOCUMENTATION_OPTIONS" in text)
    marks = (tree.css_first(selector) for selector in _BY_ELEMENT)
    searched = [
        *((pattern, title) for pattern in (_SPHINX_TITLE, _JAVADOC_TITLE, _JAVA_TITLE)),
        *((_SPHINX_OPTIONS, text) for text in options),
        *((_FIRST_NUMBER, inline_text(mark)[:100]) for mark in marks if mark is not None),
    ]
    named += [found[1] for pattern, text in searched if (found := pattern.search(text))]
    versions = (plain_version(text.strip().rstrip(".")) for text in named)
    return next(filter(None, versions), "")


# Names of meta tags.
_PUBLISHED = re.compile(r"publi(?:sh|cation)|pub[-_]?date|created|issued|dc[.:]date\Z")
_MODIFIED = re.compile(r"modifi|updated|revised|docsearch:date")
# Marks of the day of publication in the page.
_PUBLISHED_MARKS = (
    "[itemprop=datePublished], time[pubdate], article header time, time.entry-date,"
    " .published, .dt-published"
)
_DATED_MARKS = "time, :is([class*=date i], [class*=datum]):not([class*=update i], [class*=modif])"
_OFFSET = re.compile(r"(?<=\d)\s?[+-]\d\d:?\d\d\Z")
_AFTER_HEADING, _BEFORE_HEADING = 600, 200  # characters
_MOST_HEADS, _MOST_PLACES = 120, 2
# The beginnings of the names of months, January first.
_MONTHS = [
    *("jan jän ene gen янв", "feb fév fev фев", "mar mär mrt maa мар", "apr abr avr апр"),
    *("may mai mei mag май мая", "jun juin giu июн", "jul juil lug июл", "aug aoû ago авг"),
    *("sep set сен", "oct okt ott out окт", "nov ноя", "dec dez déc dic дек"),
]
_DAY = re.compile(
    r"(?<!\w)(?<!\d[./-])(?:(?P<y>(?:19|20)\d\d)(?P<s>[-/.])(?P<m>\d\d?)(?P=s)(?P<d>\d\d?)(?!\d)"
    r"|(?P<d2>\d\d?)(?P<s2>[./-])\s?(?P<m2>\d\d?)(?P=s2)\s?(?P<y2>(?:19|20)\d\d)(?!\.?\d)"
    r"|(?P<d3>\d\d?)(?P<s3>[./])(?P<m3>\d\d?)(?P=s3)(?P<y3>\d\d)(?=\W{1,3}\d\d[:.]\d\d(?!\d))"
    r"|(?P<m4>[^\W\d_]{3,12})\.?\s(?P<d4>\d\d?)(?:st|nd|rd|th)?,?\s(?P<y4>(?:19|20)\d\d)(?!\d)"
    r"|(?P<d5>\d\d?)(?:\.|st|nd|rd|th)?\s?(?:de |of )?(?P<m5>[^\W\d_]{3,12})[.,]?"
    r"\s(?:de )?(?P<y5>(?:19|20)\d\d)(?!\d))"
)
# What parts the day at the beginning of a paragraph from its text.
_DATELINE_END = re.compile(r"[).:|]|,? [-–—|]")  # noqa: RUF001
_YEAR = re.compile(r"(?:19|20)(?<!\d\d\d)\d\d(?!\d)")
_MOST_YEARS = 500
_MOST_MARKS, _MOST_SAMPLES = 10, 20
_LABEL_CHARS, _LINE_CHARS = 40, 100
_SAID_PUBLISHED = re.compile(
    r"\b(?:published|posted|veröffentlicht|erschienen|publié|mise? en ligne|publicado"
    r"|pubblicato|datum)[\w\s:,.]{0,20}\Z",
    re.IGNORECASE,
)
_SAID_CHANGED = re.compile(
    r"\b(?:updated?|modified|changed|revised|edited|built|aktualisiert|geändert|änderung"
    r"|stand\b|zuletzt|mise? à jour|modifié|modification|actualizado|aggiornato|bijgewerkt"
    r"|atualizado)[\w\s:,.]{0,20}\Z",
    re.IGNORECASE,
)


def _dates(page: _Page) -> tuple[datetime | None, datetime | None]:
    """The days of publication and change, by the first of a page's sources that says so."""
    sources = (
        _marked_days(page, _PUBLISHED_MARKS),
        _beside(page),
        (day for day, _ in _days(urlsplit(page.url).path[:_MAX_CHARS])),
    )
    seen = [day for days in sources for day in itertools.islice(days, 1)]
    stated = _stated(text for name, text in page.metas.items() if _PUBLISHED.search(name))
    linked = _stated(item.get("datePublished") for item in page.linked)
    published = next(itertools.chain(stated, linked, seen), None)
    stated = _stated(text for name, text in page.metas.items() if _MODIFIED.search(name))
    linked = _stated(item.get("dateModified") for item in page.linked)
    marked = _marked_days(page, "[itemprop=dateModified]")
    modified = next(itertools.chain(stated, linked, marked), None)
    if published is None:
        said, changed = _labelled_days(page.text)
        modified = modified or changed
        others = () if modified else _marked_days(page, _DATED_MARKS)
        named = _stated([page.metas.get("date")])
        published = next(itertools.chain(named, said, others), None)
    # Metadata may count the hours of another place than readers do.
    if published is not None and all(day.date() != published.date() for day in seen):
        near = (day for day in seen if abs((day.date() - published.date()).days) == 1)
        published = next(near, published)
    is_earlier = published is not None and modified is not None and modified < published
    return published, None if is_earlier else modified


def _stated(values: Iterable[Any]) -> Iterator[datetime]:
    # The day is that which readers see, whatever it is elsewhere.
    written = (_OFFSET.sub("", str(value).strip()) for value in values if value)
    return filter(None, map(parse_date, written))


def _marked_days(page: _Page, selector: str) -> Iterator[datetime]:
    for mark in page.tree.css(selector)[:_MOST_MARKS]:
        if not _is_by_others(mark, page.outer):
            yield from _stated(attribute(mark, name) for name in ("datetime", "content", "title"))
            # Before a time a short year is one, which elsewhere may be a part of a version.
            yield from (day for day, _ in _days(f"{inline_text(mark)[:_LINE_CHARS]} 00:00"))


def _beside(page: _Page) -> Iterator[datetime]:
    """The days beside the places of a page that say its heading, else those at its top."""
    text, head = page.text, page.head
    if page.metas.get("generator", "").startswith("MediaWiki"):
        return  # the days of a wiki's text are of what it tells
    if head is None:
        top = _days(_lines(text[:_MAX_CHARS]))
        yield from (day for day, label in top if not _SAID_CHANGED.search(label))
        return
    name = _parted(head)[:_MAX_CHARS]
    for place in itertools.islice(re.finditer(re.escape(name), text), _MOST_PLACES):
        before = text[max(0, place.start() - 4 * _BEFORE_HEADING) : place.start()]
        after = text[place.end() : place.end() + 4 * _AFTER_HEADING]
        earlier = [*_days(_lines(before)[-_BEFORE_HEADING:])]
        later = _days(_lines(after)[:_AFTER_HEADING])
        for day, label in (*later, *reversed(earlier), *_days(_lines(name))):
            if not _SAID_CHANGED.search(label):
                yield day


def _labelled_days(text: str) -> tuple[list[datetime], datetime | None]:
    """The days of a text that it calls those of publication, and the last one of a change."""
    published, changed = [], None
    for year in itertools.islice(_YEAR.finditer(text), _MOST_YEARS):
        around = text[max(0, year.start() - 2 * _LINE_CHARS) : year.end() + _LINE_CHARS]
        for day, label in _days(_lines(around)):
            if _SAID_PUBLISHED.search(label):
                published.append(day)
            elif _SAID_CHANGED.search(label):
                changed = day
    return published, changed


def _days(text: str) -> Iterator[tuple[datetime, str]]:
    """The days that a text names before or outside of sentences, each with the words before it."""
    for found in _DAY.finditer(text):
        said = {name[0]: part for name, part in found.groupdict().items() if part}
        year, month, day = (said[unit] for unit in "ymd")
        if not month.isdecimal():
            stems = {month.casefold()[:length] for length in (3, 4)}
            numbers = (at for at, names in enumerate(_MONTHS, 1) if stems & set(names.split()))
            month = str(next(numbers, 0))
        elif int(month) > len(_MONTHS):
            day, month = month, day
        moment = parse_date(f"{year if len(year) > 2 else f'20{year}'}-{month}-{day}")
        before, after = text[: found.start()], text[found.end() :]
        line = len(before) - before.rfind("\n") + f"{after}\n".find("\n")
        is_first = before[before.rfind("\n") + 1 :] in ("", "(") and _DATELINE_END.match(after)
        if moment is not None and (line < _LINE_CHARS or is_first):
            yield moment, before[-_LABEL_CHARS:]


def _parted(node: LexborNode) -> str:
    return f"\0{node.text(separator=chr(0))}\0"


def _prose(body: LexborNode) -> str:
    """A page's text in parts, without the first samples of code, scripts and styles."""
    samples = body.css("pre, script, style, template")[:_MOST_SAMPLES]
    return without(_parted(body), map(_parted, samples), "\0")


def _lines(text: str) -> str:
    return "\n".join(filter(None, (" ".join(part.split()) for part in text.split("\0"))))


MAX_TITLE_CHARS = 300
_MOST_AUTHORS = 10
_MOST_AUTHOR_CHARS = 80
_AUTHOR_METAS = re.compile(r"(?<!banner:)author|creator|\bbyl\b")
# Items of JSON-LD within a page, whose authors are others.
_PARTS = ("ImageObject", "VideoObject", "Comment", "Review", "WebSite")
# Marks of a name in the page, the plainest first.
_BYLINES = (
    "[itemprop=author] [itemprop=name]",
    "[itemprop=author]",
    "a[rel~=author], .vcard .fn, .author .fn, .submitted .username, a.username",
    "a[href*='/author/'], a[href*='/autor/'], a[href*='/authors/'], a[href*='/autoren/']",
    "[class*=byline], [class*=author], #author, [class*=autor], [class*=Autor]",
)
_NAME = r"(?:[^\W\d_a-z][\w.'\u2019-]*+ ){1,3}[^\W\d_a-z][\w'\u2019-]+"
# A line of the text that names who wrote it, in parts that zeros part.
_WRITTEN_BY = re.compile(
    r"\0\s*+(?:\d[\d.:/ ]{7,19}+(?:Uhr\s*+)?[|\u2013-]\s*+"
    r"|(?:\d[\d.:/ ]{7,19}+(?:Uhr\s*+)?)?(?:(?:(?:Posted|Written|Text|Eine? [\w-]{4,20}) )?"
    r"(?:[Bb]y|BY|[Vv]on|VON|[Pp]ar|[Pp]or)(?!\w)"
    r"|(?:Text|Aut(?:eur|or|oren|orin|or/in)|Redaktion)(?: ?:|\s)):?[\s\0]*+)"
    rf"({_NAME}(?:(?:, | und | and | et ){_NAME})*+)"
    r"\s*(?:[\0|,(@/]|(?:on|am|under|Foto|Illustration)\b)"
)
_SAYS_BY = re.compile(r"\b(?:by|von|par|por)\Z", re.IGNORECASE)
# What stands before "by" in a line that is no sentence: "3 hours ago", "Posted in News".
_BEFORE_BY = re.compile(
    r".{0,60}\b\d|(?:posted|published|written|filed|submitted|shared|veröffentlicht|gepostet"
    r"|geschrieben|verfasst|erschienen|publié|écrit|publicado|escrito)\b",
    re.IGNORECASE,
)
_ENDS_IN_WORD = re.compile(r"(?:\A|[^\w])[^\W\d]+\W?\Z")
# What stands before the name in a line: "Posted on May 2, 2024 by", "Text and photos:".
_BY = re.compile(
    r"^(?:.{0,60}\d\S*+\s\W*+)?(?:[\w ]{0,30}\b(?:by|par|por)|(?:(?:text|alles|geschrieben|verfasst"
    r"|veröffentlicht|(?:eine? )?[\w-]*(?:beitrag|kolumne|mitteilung|interview)) )?"
    r"(?:von|door|di|av))\b[\s:]*"
    r"|^[^:]{0,20}(?:author|autor|text|words|story|redaktion|interview)[^:]{0,20}:\s*",
    re.IGNORECASE,
)
_LINE_BREAKS = BLOCK_TAGS | {"br"}
_LINE_END = re.compile(r"\s[|·•–—]\s")  # noqa: RUF001
_BY_OTHERS = re.compile(r"comment|respond|reply|widget|sidebar|related|teaser", re.IGNORECASE)
_LEAST_SITE_CHARS = 5
# Of a person; that of a user, or a first name alone, tells less.
_FULL_NAME = re.compile(r"[^\W\d_a-z]\S* ")
_OFFICE = re.compile(
    r"\be\.\s?V\.|\b(?:AG|GmbH|Inc|Ltd|SE)\b"
    r"|(?i:redaktion|editor|stiftung|verlag|verband|team\b|online\b)"
)
_NO_AUTHOR = re.compile(
    r"www\.|@|[*(?:\u2192]|\b\d|\A(?:name|autore?n|authors|admin(?:istrator)?|author|autor|editor|by)\Z",
    re.I,
)
MAX_DESCRIPTION_CHARS = 1_000
_SITE_SEPARATOR = re.compile(r"(?<!\s)\s++(?:[-–—|·»«:~/]|::|//)\s++")  # noqa: RUF001
_LANGUAGE_METAS = ("content-language", "dc.language", "language", "og:locale")
_SITE_METAS = ("og:site_name", "application-name", "apple-mobile-web-app-title", "twitter:site")
_MOST_HEADINGS = 20
_LEAST_CONTAINED = 15  # characters: a shorter heading may be part of any title
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")
_GENERIC_TITLE = re.compile(
    r"\W*(?:untitled(?: document| page)?|home(?: ?page)?|index|document|page|loading|new page"
    r"|default|welcome|react app|vite app)\W*\Z",
    re.IGNORECASE,
)
# "Site - ", where a template found no title for the page.
_UNFILLED_TITLE = re.compile(r"(.*\S)\s+[-–—|·»«:]\Z")  # noqa: RUF001
# "1. Introduction", "Chapter 6. Introduction", "A.2 Keys".
_NUMBERED = re.compile(r"(?:[^\W\d_]{4,12} )?(?:\d{1,3}|[A-Z])(?:[.:]|(?:\.\d{1,3}){1,5}[.:]?)\s")
_INDEX_FILE = re.compile(r"/(?:index|default)\.(?:html?|php|aspx?)\Z", re.IGNORECASE)


def read_metadata(tree: LexborHTMLParser, page_url: str) -> PageMetadata:
    """Read a parsed page's metadata; must run before anything is pruned.

    Args:
        tree: The whole page.
        page_url: Where the page came from, after redirects.
    """
    metas = _meta_values(tree)
    linked = list(_linked_data(tree))
    names = _names(tree, metas, linked, page_url)
    title = _title(tree, metas, names)
    text = _prose(tree.body) if tree.body is not None else ""
    head = _head(tree, title or "")
    heads = [*tree.css("h1")[:_MOST_HEADINGS], *([head] if head is not None else ())]
    outer = {above.mem_id for each in heads for above in ancestors(each)}
    page = _Page(tree, page_url, metas, linked, text, head, outer)
    published, modified = _dates(page)
    marked = tree.css_first("meta[itemprop=description][content]")
    said = "" if marked is None else attribute(marked, "content")
    described = metas.get("description") or metas.get("og:description") or said
    named = tree.css_first("base[href]")
    href = "" if named is None else attribute(named, "href")
    base = link_target(href, page_url, keep_tracking=True) or page_url
    root = tree.css_first("html")
    declared = attribute(root, "lang") or attribute(root, "xml:lang") if root is not None else ""
    robots = f"{metas.get('robots', '')},{metas.get('webrag', '')}".lower().split(",")[:50]
    versions = tree.css('link[rel~="alternate"][href][type]')
    named_versions = ((attribute(each, "href"), attribute(each, "type")) for each in versions)
    return PageMetadata(
        base_url=base,
        url=_canonical(tree, page_url, base),
        title=_in_document(tree, title or "") or None,
        author=_author(page, names),
        site_name=_clean(names.named, MAX_NAME_CHARS),
        description=_clean(described, MAX_DESCRIPTION_CHARS),
        languages=(declared, *(metas.get(name, "") for name in _LANGUAGE_METAS)),
        published_at=published,
        modified_at=modified,
        is_nofollow=not {"nofollow", "none"}.isdisjoint(map(str.strip, robots)),
        markdown_url=markdown_version(named_versions, page_url, base),
        version=_version(page),
    )


def _meta_values(tree: LexborHTMLParser) -> dict[str, str]:
    values: dict[str, str] = {}
    for meta in tree.css("meta[content]"):
        content = attribute(meta, "content").strip()
        for name in ("property", "name", "http-equiv"):
            key = attribute(meta, name).strip().lower()
            if key and content:
                values.setdefault(key, content)
    return values


def _linked_data(tree: LexborHTMLParser) -> Iterator[dict[str, Any]]:
    for script in tree.css('script[type="application/ld+json"]'):
        try:
            data = json.loads(script.text(), strict=False)
        except (ValueError, RecursionError):
            continue
        items = data if isinstance(data, list) else [data]
        for item in items:
            if isinstance(item, dict):
                yield item
                graph = item.get("@graph")
                if isinstance(graph, list):
                    yield from (entry for entry in graph if isinstance(entry, dict))


def _canonical(tree: LexborHTMLParser, page_url: str, base: str) -> str:
    own = page_address(page_url)
    link = tree.css_first('link[rel~="canonical"][href]')
    # One file cannot speak for another.
    if link is None or not own.startswith("http"):
        return own
    named = link_target(attribute(link, "href"), base) or own
    if own.startswith("https:") and named.startswith("http:"):
        named = f"https:{named.removeprefix('http:')}"
    # Many sites name a section's first page on every page of it. A page filed under such an
    # address would replace another, and quotations would point to a page that lacks them; so only
    # spellings of one address count. Pages with equal text are joined when they are stored.
    return named if _spelling(named) == _spelling(own) else own


def _spelling(url: str) -> tuple[str, str, str]:
    """An address without scheme, `www.`, index file and final slash."""
    parts = urlsplit(url)
    path = _INDEX_FILE.sub("", parts.path).rstrip("/")
    return site_of(url), path, parts.query


@dataclass(frozen=True)
class _Names:
    """Names of a page and its site in metadata: each folded, the first as written."""

    headline: str | None
    site: frozenset[str]
    named: str | None


def _title(tree: LexborHTMLParser, metas: Mapping[str, str], names: _Names) -> str | None:
    """The title that its sources agree on, without the name of the site."""
    tag = tree.css_first("head > title") or tree.css_first("title")
    whole = _clean(tag.text() if tag is not None else None, MAX_TITLE_CHARS)
    heads = [text for node in tree.css("h1")[:_MOST_HEADINGS] if (text := _heading(node))]
    named = _without_site(metas.get("og:title") or metas.get("twitter:title"), names)
    site = _UNFILLED_TITLE.match(whole or "")
    if site:
        whole = site[1]
        heads = [text for text in heads if folded(text) != folded(whole)]
    if not whole or site or _GENERIC_TITLE.match(whole):
        return next(filter(None, (named, *heads, names.headline)), whole)
    tagged = _without_site(whole, names) or whole
    parts = [part for part in _SITE_SEPARATOR.split(whole) if part.strip()]
    below = [text for node in tree.css("h2")[:_MOST_HEADINGS] if (text := _heading(node))]
    own = [text for text in heads if folded(text) not in names.site]
    others = [text for text in (*own, *below, named) if text]
    others = [text for text in others if folded(text) not in names.site]
    agreed = (text for text in others if text in parts or tagged.startswith(text))
    # The heading that readers see, where the title tag speaks to search engines of the same.
    alike = [text for text in own if _is_like(text, f"{whole} {named}")]
    seen = (text for text in alike if len(alike) == 1)
    return next(itertools.chain(agreed, seen), tagged)


def _in_document(tree: LexborHTMLParser, title: str) -> str:
    """A title with the name of the document it is a numbered part of, where a page tells it."""
    home = tree.css_first("link[rel~=home][title]")
    name = (home is not None and _clean(attribute(home, "title"), MAX_TITLE_CHARS)) or ""
    is_told = not name or name in title or _GENERIC_TITLE.match(name)
    return title if is_told or not _NUMBERED.match(title) else f"{title} \u2013 {name}"


def _without_site(text: str | None, names: _Names) -> str | None:
    """A title from its first to its last part that is not the site's name."""
    whole = _clean(text, MAX_TITLE_CHARS)
    parts = _SITE_SEPARATOR.split(whole or "")
    own = [part for part in parts if part.strip() and folded(part) not in names.site]
    if not whole or not own:
        return whole
    return whole[whole.find(own[0]) : whole.rfind(own[-1]) + len(own[-1])]


def _is_like(heading: str, title: str) -> bool:
    said = set(_LONG_WORD.findall(title.casefold()))
    return len(heading) >= _LEAST_CONTAINED and any(
        word in said for word in _LONG_WORD.findall(heading.casefold())
    )


def _head(tree: LexborHTMLParser, title: str) -> LexborNode | None:
    """The heading that says most of a title; the main one where none does."""
    said = [(head, _heading(head) or "") for head in tree.css("h1, h2, h3, h4")[:_MOST_HEADS]]
    same = (head for head, text in said if text in title and 2 * len(text) > len(title))
    main = [(head, text) for head, text in said if text and head.tag == "h1"]
    alike = (head for head, text in main if _is_like(text, title))
    return next(itertools.chain(same, alike, (head for head, _ in main)), None)


def _heading(node: LexborNode) -> str | None:
    return _clean(inline_text(node).rstrip(" ¶#§🔗"), MAX_TITLE_CHARS)


def _names(
    tree: LexborHTMLParser, metas: Mapping[str, str], linked: Sequence[Mapping[str, Any]], url: str
) -> _Names:
    written = [metas.get(name, "") for name in _SITE_METAS]
    for item in linked:
        written += [str(item.get("name") or "")] if item.get("@type") == "WebSite" else []
        written += _people(item.get("publisher"), linked)
    named = next((name for name in written if name and not name.startswith(("@", "http"))), None)
    # What leads to the start page from the top of a page is the site's name, or its logo.
    written += [link.text() for link in _home_links(tree, url, "h1 > a[href], a[rel=home]")]
    host = (urlsplit(url).hostname or "").removeprefix("www.")
    written += [host, *host.split(".")[:-1]]
    headlines = (_clean(str(item.get("headline") or ""), MAX_TITLE_CHARS) for item in linked)
    site = frozenset(map(folded, written)) - {""}
    return _Names(next(filter(None, headlines), None), site, named)


def _home_links(tree: LexborHTMLParser, url: str, selector: str) -> list[LexborNode]:
    """The first links that match and lead to the first page of a site."""
    here, links = urlsplit(url), tree.css(selector)[:_MOST_HEADINGS]
    targets = (urlsplit(urljoin(url, attribute(link, "href"))) for link in links)
    return [link for link, to in zip(links, targets, strict=True) if _is_start_page(to, here, tree)]


def _is_start_page(to: SplitResult, here: SplitResult, tree: LexborHTMLParser) -> bool:
    """Tell the first page of a host, or of a folder that holds the page read.

    A folder's may be that of a thread or chapter, unless it is a file of a copied site, or the page
    has another main heading.
    """
    folder, own = (_INDEX_FILE.sub("/", each.path or "/") for each in (to, here))
    is_above = folder.endswith("/") and own.startswith(folder) and (folder != own or own == "/")
    is_told = folder == "/" or _INDEX_FILE.search(to.path) or len(tree.css("h1")) > 1
    return is_above and bool(is_told) and not to.query and to.hostname == here.hostname


def site_headings(tree: LexborHTMLParser, page_url: str, title: str | None) -> list[LexborNode]:
    """Main headings that are no title of a page but lead to the first page of its site."""
    here = urlsplit(page_url)
    if _is_start_page(here, here, tree):
        return []
    links = _home_links(tree, page_url, "h1 > a[href]")
    alone = (link.parent for link in links if inline_text(link.parent or link) == inline_text(link))
    return [heading for heading in alone if heading is not None and _heading(heading) != title]


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


def _author(page: _Page, names: _Names) -> str | None:
    """The author, by the first of a page's sources that names somebody else than the site."""
    found: dict[int, list[list[str]]] = {}
    for source in _authors(page):
        lines = (each for each in map(_byline, source) if 1 < len(each) <= _MOST_AUTHOR_CHARS)
        people = list(dict.fromkeys(each for each in lines if not _NO_AUTHOR.search(each)))
        others = [each for each in people if not _is_of_site(each, names)]
        if people:
            rank = 2 if not others else 0 if all(map(_FULL_NAME.match, others)) else 1
            found.setdefault(rank, []).append(others or people)
    best = [", ".join(people) for people in found[min(found)]] if found else [""]
    # A source may name one of several persons, or a part of a name.
    said = set(re.findall(r"\w+", best[0]))
    wider = (line for line in best if 0 in found and said < set(re.findall(r"\w+", line)))
    return next(wider, best[0])[:MAX_NAME_CHARS] or None


def _byline(text: str) -> str:
    """The name in a line that may also say when."""
    whole = (len(text) < MAX_TITLE_CHARS and _clean(unescape(text), MAX_TITLE_CHARS)) or ""
    named = _BY.sub("", whole)
    line, *days = _DAY.split(named, maxsplit=1)
    name = _LINE_END.split(line)[0].rstrip(",; ")
    # Before a day alone may also stand a title, or words such as "Published on".
    return name if not days or named != whole or re.fullmatch(_NAME, name) else ""


def _is_of_site(name: str, names: _Names) -> bool:
    own = folded(name)
    is_named = any(site in own for site in names.site if len(site) >= _LEAST_SITE_CHARS)
    return is_named or own in names.site or _OFFICE.search(name) is not None


def _authors(page: _Page) -> Iterator[list[str]]:
    """The authors that several places of a page name, the surest place first."""
    works = (item for item in page.linked if item.get("@type") not in _PARTS)
    yield from (_people(item["author"], page.linked) for item in works if item.get("author"))
    yield from ([text] for name, text in page.metas.items() if _AUTHOR_METAS.search(name))
    labels = (n for n in "12" if _BY.match(page.metas.get(f"twitter:label{n}", "")))
    yield from ([page.metas.get(f"twitter:data{n}", "")] for n in labels)
    yield from (_marked(page, selector) for selector in _BYLINES)
    written = [*itertools.islice(_WRITTEN_BY.finditer(page.text), _MOST_AUTHORS)]
    body = page.tree.body if written else None
    nodes = body.traverse(include_text=True) if body is not None else ()
    said = ((node, (node.text_content or "").strip()) for node in nodes if node.is_text_node)
    texts = [(node, text) for node, text in said if text]
    own = (found[1] for found in written if _is_byline(found, texts))
    yield list(itertools.islice(own, 1))


def _is_byline(found: re.Match[str], texts: Sequence[tuple[LexborNode, str]]) -> bool:
    """Tell a byline from the end of a sentence and the words of a link.

    "`$missing` by Missing Plugin" and the link "Text Widget Overview" name nobody.
    """
    label = found[0][: found.start(1) - found.start()].strip("\0: \t\r\n")
    parts = [part for part in map(str.strip, found[0].split("\0")) if part]
    whole = "\0".join(parts)
    for at, (node, text) in enumerate(texts):
        if text.startswith(parts[0]):
            told = "\0".join(said for _, said in texts[at : at + len(parts)])
            is_in_link = node.parent is not None and node.parent.tag == "a" and len(parts) == 1
            if told.startswith(whole) and _may_follow(label, _line_before(node), is_in_link):
                return True
    return False


def _may_follow(label: str, before: str, is_in_link: bool) -> bool:
    """Tell whether words such as "By" begin a byline behind what stands before them in a line."""
    if not _SAYS_BY.search(label):
        return not is_in_link and not _ENDS_IN_WORD.search(before)
    is_capital = not label[0].islower()
    return is_capital or not _ENDS_IN_WORD.search(before) or bool(_BEFORE_BY.match(before))


def _line_before(node: LexborNode | None) -> str:
    parts: list[str] = []
    while node is not None and node.tag not in BLOCK_TAGS:
        before = node.prev
        while before is not None and before.tag not in _LINE_BREAKS:
            parts.append(before.text())
            before = before.prev
        node = node.parent if before is None else None
    return " ".join(" ".join(reversed(parts)).split())


def _marked(page: _Page, selector: str) -> list[str]:
    """The names that the first element of some marks, and those like it beside, hold."""
    marks = page.tree.css(selector)[:_MOST_AUTHORS]
    marks = [mark for mark in marks if not _is_by_others(mark, page.outer)]
    beside = [mark for mark in marks if mark.parent == marks[0].parent]
    return [attribute(mark, "content") or inline_text(mark) for mark in beside]


def _is_by_others(mark: LexborNode, outer: set[int]) -> bool:
    """Tell an element in comments, a form, a masthead or a box of other pages."""
    around = [mark, *ancestors(mark)]
    is_in_article = any(above.tag == "article" for above in around)
    is_in_main = is_in_article or any(above.tag == "main" for above in around)
    # Boxes around headings do not tell: layouts call that around page and sidebar by both.
    boxes = itertools.takewhile(lambda above: above.mem_id not in outer, around)
    return any(
        above.tag in ("form", "aside")
        or (above.tag == "footer" and not is_in_article)
        or (above.tag in ("header", "nav") and not is_in_main)
        or _BY_OTHERS.search(f"{attribute(above, 'class')} {attribute(above, 'id')}")
        for above in boxes
        if above.tag not in ("html", "body")
    )


def _clean(text: str | None, limit: int) -> str | None:
    cleaned = one_line(text or "")
    return cleaned[:limit].rstrip() or None

"""Finds a site's own map by scripts, links and the generator's mark of a page; no I/O here."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final
from urllib.parse import unquote, urlsplit

from selectolax.lexbor import LexborHTMLParser

from webrag.ingestion.addresses import same_site
from webrag.ingestion.characters import collapse
from webrag.ingestion.html.tree import attribute, select
from webrag.ingestion.models import MapKind, MapMark

_MAX_MARKS: Final = 3
_MAX_ELEMENTS: Final = 400
_MAX_INLINE_CHARS: Final = 4_000
_MAX_ADDRESS_CHARS: Final = 2_000
_MAX_TAG_CHARS: Final = 100

_SPHINX_FILE: Final = re.compile(
    r"_static/(?:documentation_options|doctools|sphinx_highlight|searchtools|language_data)\.js"
)
_URL_ROOT: Final = re.compile(r"URL_ROOT:\s{0,9}+'([^']{0,200}+)'")
_MKDOCS_SEARCH: Final = re.compile(
    r"search/(?:main|require)\.js|javascripts/workers/search[\w.]*\.js"
)
_MKDOCS_BASE: Final = re.compile(
    r"(?:var\s{1,9}+base_url\s{0,9}+=\s{0,9}+|\"base\"\s{0,9}+:\s{0,9}+)[\"']([^\"']{0,200}+)[\"']"
)
_MDBOOK_ROOT: Final = re.compile(r"path_to_root\s{0,9}+=\s{0,9}+\"([^\"]{0,200}+)\"")
_MDBOOK_INDEX: Final = re.compile(r"path_to_searchindex_js\s{0,9}+=\s{0,9}+\"([^\"]{1,300}+)\"")
_JAVADOC_ROOT: Final = re.compile(
    r"(?:pathtoroot|pathToRoot)\s{0,9}+=\s{0,9}+[\"']([^\"']{0,200}+)[\"']"
)
_RUSTDOC: Final = "#rustdoc-vars, meta[name='rustdoc-vars']"
_DOXYGEN_TREE: Final = re.compile(r"navtreedata\.js")
_DOXYGEN_FILE: Final = re.compile(r"search/search(?:data)?\.js|navtreedata\.js")
_DOCUSAURUS_FILE: Final = re.compile(r"assets/js/(?:main|runtime~main)\.")
_JEKYLL_SEARCH: Final = re.compile(r"(?:^|/)(?:search|search-data|index)\.json$")
_JEKYLL_SCRIPT: Final = re.compile(r"assets/js/(?:just-the-docs|search-data)\.js")
_INDEX_NAMES: Final = frozenset(
    """index|general index|book index|genindex|alphabetical index|keyword index|keywords
keyword list|list of keywords|concept index|function index|variable index|symbol index|subject index
command index|alphabetical list|index of names|key index""".replace("\n", "|").split("|")
)
_HOME_RELATIONS: Final = frozenset({"home", "start", "top", "contents"})


class _Page:
    def __init__(self, tree: LexborHTMLParser, url: str) -> None:
        self.tree, self.url = tree, url
        scripts = select(tree.root, "script")[:_MAX_ELEMENTS] if tree.root else []
        sources = (attribute(node, "src")[:_MAX_ADDRESS_CHARS] for node in scripts)
        self.scripts = [src for src in sources if src]
        self.inline = "\n".join(
            node.text()[:_MAX_INLINE_CHARS] for node in scripts if not attribute(node, "src")
        )
        self.links = [
            (
                frozenset(attribute(node, "rel").casefold().split()),
                attribute(node, "href")[:_MAX_ADDRESS_CHARS],
                attribute(node, "type").casefold(),
            )
            for node in tree.css("link[href]")[:_MAX_ELEMENTS]
        ]
        self.generator = self.first("meta[name=generator i]", "content")[:200].casefold()

    def first(self, selector: str, name: str) -> str:
        """Give an attribute of the first element that matches, as far as an address may reach."""
        found = self.tree.css_first(selector)
        return "" if found is None else attribute(found, name)[:_MAX_ADDRESS_CHARS]

    def at(self, href: str) -> str | None:
        return same_site(href, self.url)

    def script(self, pattern: re.Pattern[str]) -> str | None:
        """Give the part before a match in the first script's address that has one."""
        found = ((src, pattern.search(src)) for src in self.scripts)
        return next((src[: match.start()] for src, match in found if match is not None), None)

    def mark(self, kind: MapKind, root: str, *files: str) -> MapMark | None:
        """A map whose files are named from a folder, which is named from the page."""
        folder = self.at(root or "./")
        urls = tuple(url for file in files if folder and (url := same_site(file, folder)))
        return MapMark(kind=kind, root=folder, urls=urls) if folder else None

    def single(self, kind: MapKind, href: str) -> MapMark | None:
        url = self.at(href)
        folder = (url or "").partition("?")[0].rpartition("/")[0] + "/"
        return MapMark(kind=kind, root=folder, urls=(url,)) if url else None


def find_marks(tree: LexborHTMLParser, url: str) -> tuple[MapMark, ...]:
    """Maps of the site that a whole page names, the richest first."""
    page = _Page(tree, url)
    found = [mark for find in _FINDERS if (mark := find(page)) is not None]
    found = found or [*islice(_index_pages(page), _MAX_MARKS)] or [*_home(page)]
    return tuple(found[:_MAX_MARKS])


def _sphinx(page: _Page) -> MapMark | None:
    before = page.script(_SPHINX_FILE)
    inline = _URL_ROOT.search(page.inline)
    if before is None and inline is None:
        return None
    stated = (
        page.first("html[data-content_root]", "data-content_root")
        or page.first("script[data-url_root]", "data-url_root")
        or (inline[1] if inline else None)
    )
    root = before if stated in (None, "#") else stated
    return page.mark("sphinx", root or "", "searchindex.js")


def _mkdocs(page: _Page) -> MapMark | None:
    base = _MKDOCS_BASE.search(page.inline)
    is_named = page.generator.startswith(("mkdocs", "zensical"))
    if base is None or not (is_named or page.script(_MKDOCS_SEARCH) is not None):
        return None
    files = ["search/search_index.json", "search.json"]
    if page.generator.startswith("zensical"):
        files.reverse()
    return page.mark("mkdocs", f"{base[1] or '.'}/", *files)


def _mdbook(page: _Page) -> MapMark | None:
    root, named = _MDBOOK_ROOT.search(page.inline), _MDBOOK_INDEX.search(page.inline)
    return page.mark("mdbook", root[1], named[1] if named else "searchindex.js") if root else None


def _rustdoc(page: _Page) -> MapMark | None:
    # Its search index is written in another way every few versions.
    root, crate = (page.first(_RUSTDOC, f"data-{name}") for name in ("root-path", "current-crate"))
    return page.mark("index_page", root, f"{crate}/all.html") if root and crate else None


def _javadoc(page: _Page) -> MapMark | None:
    root = _JAVADOC_ROOT.search(page.inline)
    if root is None or not page.generator.startswith("javadoc"):
        return None
    return page.mark("javadoc", root[1], "type-search-index.js", "member-search-index.js")


def _doxygen(page: _Page) -> MapMark | None:
    before = page.script(_DOXYGEN_FILE)
    if before is None or not page.generator.startswith("doxygen"):
        return None
    has_tree = page.script(_DOXYGEN_TREE) is not None
    files = ("navtreedata.js", "search/searchdata.js")
    return page.mark("doxygen", before, *(files if has_tree else files[1:]))


def _docusaurus(page: _Page) -> MapMark | None:
    before = page.script(_DOCUSAURUS_FILE)
    if before is None or not page.generator.startswith("docusaurus"):
        return None
    # One for each of the usual plugins; no page says which of them its site has.
    tag = page.first("meta[name=docusaurus_tag]", "content")[:_MAX_TAG_CHARS]
    tagged = [f"search-index-{tag}.json"] if tag else []
    return page.mark("docusaurus", before, "search-index.json", *tagged, "search-doc.json")


def _vitepress(page: _Page) -> MapMark | None:
    themes = [href for _, href, _ in page.links if "/chunks/theme." in href]
    theme = page.at(themes[0]) if themes and page.generator.startswith("vitepress") else None
    return page.mark("vitepress", themes[0].partition("assets/")[0], theme) if theme else None


def _json(page: _Page) -> MapMark | None:
    for rels, href, kind in page.links:
        is_search = _JEKYLL_SEARCH.search(href.partition("?")[0]) is not None
        if kind == "application/json" and "alternate" in rels and is_search:
            return page.single("json", href)
    before = page.script(_JEKYLL_SCRIPT)
    return None if before is None else page.mark("json", before, "assets/js/search-data.json")


def _llms(page: _Page) -> MapMark | None:
    for _, href, _ in page.links:
        if href.partition("?")[0].rpartition("/")[2] in ("llms.txt", "llms-full.txt"):
            return page.single("llms", href.replace("llms-full.txt", "llms.txt"))
    return None


def _sitemap(page: _Page) -> MapMark | None:
    named = (page.at(href) for rel, href, _ in page.links if "sitemap" in rel)
    url = next((each for each in named if each), None)
    return MapMark(kind="sitemap", root=page.url, urls=(url,)) if url else None


_FINDERS: Final[Sequence[Callable[[_Page], MapMark | None]]] = (
    _sphinx,
    _mkdocs,
    _mdbook,
    _rustdoc,
    _javadoc,
    _doxygen,
    _docusaurus,
    _vitepress,
    _json,
    _llms,
    _sitemap,
)


def _index_pages(page: _Page) -> Iterator[MapMark]:
    seen = set()
    for node in page.tree.css("link[rel~='index'], a[href]"):
        is_stated = "index" in attribute(node, "rel").casefold().split()
        if not is_stated and collapse(node.text()[:60]).strip().casefold() not in _INDEX_NAMES:
            continue
        mark = page.single("index_page", attribute(node, "href")[:_MAX_ADDRESS_CHARS])
        if mark is None or mark.urls[0] in seen:
            continue
        name = unquote(urlsplit(mark.urls[0]).path.rpartition("/")[2])
        # "Index.html" is the index of a Texinfo manual, "index.html" its first page.
        if not name or name.partition(".")[0] == "index":
            continue
        seen.add(mark.urls[0])
        yield mark


def _home(page: _Page) -> Iterator[MapMark]:
    for node in page.tree.css("link[rel][href], a[rel][href], a[accesskey='h'][href]"):
        rels = attribute(node, "rel").casefold().split()
        if attribute(node, "accesskey") != "h" and _HOME_RELATIONS.isdisjoint(rels):
            continue
        mark = page.single("home", attribute(node, "href")[:_MAX_ADDRESS_CHARS])
        if mark is not None and mark.urls[0] != page.url:
            yield mark
            return

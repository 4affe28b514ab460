"""Where a page says its site's own map is: in scripts, links and the generator's mark.

It reads what the page says and asks for nothing.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from selectolax.lexbor import LexborHTMLParser

from webrag.errors import InputError
from webrag.ingestion.addresses import canonical_url, site_of
from webrag.ingestion.characters import collapse
from webrag.ingestion.html.tree import attribute, select
from webrag.ingestion.models import MapMark

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
_DOXYGEN_TREE: Final = re.compile(r"navtreedata\.js")
_DOXYGEN_FILE: Final = re.compile(r"search/search(?:data)?\.js|navtreedata\.js")
_RUST_VERSION: Final = re.compile(r"1\.(\d{1,4})\.")
# From then on the index has other numbers, then other files, again and again.
_RUST_VERSION_WITHOUT_INDEX: Final = 76
_DOCUSAURUS_FILE: Final = re.compile(r"assets/js/(?:main|runtime~main)\.")
_JEKYLL_SEARCH: Final = re.compile(r"(?:^|/)(?:search|search-data|index)\.json$")
_JEKYLL_SCRIPT: Final = re.compile(r"assets/js/(?:just-the-docs|search-data)\.js")
_INDEX_NAMES: Final = frozenset(
    """index|general index|book index|genindex|alphabetical index|keyword index|keywords
keyword list|list of keywords|concept index|function index|variable index|symbol index|subject index
command index|alphabetical list|index of names|key index""".replace("\n", "|").split("|")
)
_HOME_RELATIONS: Final = frozenset({"home", "start", "top", "contents"})


@dataclass(slots=True)
class _Page:
    """What the finders look at; read once."""

    url: str
    generator: str
    scripts: list[str]
    inline: str
    links: list[tuple[frozenset[str], str, str]]
    content_root: str | None
    url_root: str | None
    docusaurus_tag: str
    rustdoc: dict[str, str] = field(default_factory=dict)

    def at(self, href: str) -> str | None:
        """The address a relative one means, on the page's own site."""
        return _same_site(href, self.url)

    def script(self, pattern: re.Pattern[str]) -> str | None:
        """What stands before a match in the first script's address that has one."""
        for src in self.scripts:
            match = pattern.search(src)
            if match is not None:
                return src[: match.start()]
        return None


def find_marks(tree: LexborHTMLParser, url: str) -> tuple[MapMark, ...]:
    """Maps of the site that a page names, the richest first.

    Args:
        tree: The whole page, before anything is removed.
        url: Where it came from.
    """
    page = _read(tree, url)
    found = [mark for find in _FINDERS if (mark := find(page)) is not None]
    if not found:
        found = [*_index_pages(tree, page)]
    if not found:
        found = [*_home(tree, page)]
    return tuple(found[:_MAX_MARKS])


def _read(tree: LexborHTMLParser, url: str) -> _Page:
    scripts = select(tree.root, "script")[:_MAX_ELEMENTS] if tree.root else []
    metas = tree.css("meta[name]")[:_MAX_ELEMENTS]
    named = {attribute(node, "name").casefold(): node for node in reversed(metas)}
    links = [
        (
            frozenset(attribute(node, "rel").casefold().split()),
            attribute(node, "href")[:_MAX_ADDRESS_CHARS],
            attribute(node, "type").casefold(),
        )
        for node in tree.css("link[href]")[:_MAX_ELEMENTS]
    ]
    roots = tree.css("html[data-content_root]")
    options = tree.css("script[data-url_root]")
    tags = tree.css("meta[name='docusaurus_tag']")
    variables = tree.css("#rustdoc-vars, meta[name='rustdoc-vars']")
    return _Page(
        url=url,
        generator=attribute(named["generator"], "content")[:200] if "generator" in named else "",
        scripts=[src for node in scripts if (src := attribute(node, "src")[:_MAX_ADDRESS_CHARS])],
        inline="\n".join(
            node.text()[:_MAX_INLINE_CHARS] for node in scripts if not attribute(node, "src")
        ),
        links=links,
        content_root=attribute(roots[0], "data-content_root") if roots else None,
        url_root=attribute(options[0], "data-url_root") if options else None,
        docusaurus_tag=attribute(tags[0], "content")[:_MAX_TAG_CHARS] if tags else "",
        rustdoc={
            name: attribute(variables[0], f"data-{name}")[:_MAX_ADDRESS_CHARS]
            for name in (
                "root-path",
                "resource-suffix",
                "search-index-js",
                "rustdoc-version",
                "current-crate",
            )
        }
        if variables
        else {},
    )


def _sphinx(page: _Page) -> MapMark | None:
    before = page.script(_SPHINX_FILE)
    inline = _URL_ROOT.search(page.inline)
    stated = page.content_root or page.url_root or (inline[1] if inline else None)
    if before is None and inline is None:
        return None
    root = page.at((stated if stated not in (None, "#") else before) or "./")
    return _mark("sphinx", root, "searchindex.js", "objects.inv") if root else None


def _mkdocs(page: _Page) -> MapMark | None:
    base = _MKDOCS_BASE.search(page.inline)
    is_named = page.generator.casefold().startswith(("mkdocs", "zensical"))
    if base is None or not (is_named or page.script(_MKDOCS_SEARCH) is not None):
        return None
    root = page.at(f"{base[1] or '.'}/")
    files = ["search/search_index.json", "search.json"]
    if page.generator.casefold().startswith("zensical"):
        files.reverse()
    return _mark("mkdocs", root, *files) if root else None


def _mdbook(page: _Page) -> MapMark | None:
    match = _MDBOOK_ROOT.search(page.inline)
    if match is None:
        return None
    root = page.at(match[1] or "./")
    named = _MDBOOK_INDEX.search(page.inline)
    return _mark("mdbook", root, named[1] if named else "searchindex.js") if root else None


def _rustdoc(page: _Page) -> MapMark | None:
    path = page.rustdoc.get("root-path")
    if not path:
        return None
    root = page.at(path)
    version = _RUST_VERSION.match(page.rustdoc["rustdoc-version"])
    if root and version is not None and int(version[1]) >= _RUST_VERSION_WITHOUT_INDEX:
        return _mark("index_page", root, f"{page.rustdoc['current-crate']}/all.html")
    own = page.rustdoc["search-index-js"]
    named = page.at(own) if own else None
    if root and named:
        return MapMark(kind="rustdoc", root=root, urls=(named,))
    return (
        _mark("rustdoc", root, f"search-index{page.rustdoc['resource-suffix']}.js")
        if root
        else None
    )


def _javadoc(page: _Page) -> MapMark | None:
    match = _JAVADOC_ROOT.search(page.inline)
    if match is None or not page.generator.casefold().startswith("javadoc"):
        return None
    root = page.at(match[1] or "./")
    return (
        _mark("javadoc", root, "type-search-index.js", "member-search-index.js") if root else None
    )


def _doxygen(page: _Page) -> MapMark | None:
    before = page.script(_DOXYGEN_FILE)
    if before is None or not page.generator.casefold().startswith("doxygen"):
        return None
    root = page.at(before or "./")
    has_tree = page.script(_DOXYGEN_TREE) is not None
    files = ("navtreedata.js", "search/searchdata.js")
    return _mark("doxygen", root, *(files if has_tree else files[1:])) if root else None


def _docusaurus(page: _Page) -> MapMark | None:
    before = page.script(_DOCUSAURUS_FILE)
    if before is None or not page.generator.casefold().startswith("docusaurus"):
        return None
    root = page.at(before or "./")
    # One for each of the usual plugins; no page says which of them its site has.
    tagged = [f"search-index-{page.docusaurus_tag}.json"] if page.docusaurus_tag else []
    files = ["search-index.json", *tagged, "search-doc.json"]
    return _mark("docusaurus", root, *files) if root else None


def _vitepress(page: _Page) -> MapMark | None:
    if not page.generator.casefold().startswith("vitepress"):
        return None
    themes = [href for _, href, _ in page.links if "/chunks/theme." in href]
    root = page.at(themes[0].partition("assets/")[0] or "./") if themes else None
    theme = page.at(themes[0]) if themes else None
    return MapMark(kind="vitepress", root=root, urls=(theme,)) if root and theme else None


def _json(page: _Page) -> MapMark | None:
    for rels, href, kind in page.links:
        is_search = _JEKYLL_SEARCH.search(href.partition("?")[0]) is not None
        if kind == "application/json" and "alternate" in rels and is_search:
            url = page.at(href)
            return MapMark(kind="json", root=_folder(url), urls=(url,)) if url else None
    before = page.script(_JEKYLL_SCRIPT)
    root = page.at(before or "./") if before is not None else None
    return _mark("json", root, "assets/js/search-data.json") if root else None


def _llms(page: _Page) -> MapMark | None:
    for _, href, _ in page.links:
        if href.partition("?")[0].rpartition("/")[2] in ("llms.txt", "llms-full.txt"):
            url = page.at(href.replace("llms-full.txt", "llms.txt"))
            return MapMark(kind="llms", root=_folder(url), urls=(url,)) if url else None
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


def _index_pages(tree: LexborHTMLParser, page: _Page) -> Iterator[MapMark]:
    """Index pages made for readers, by `rel=index` or by what the link to them says."""
    seen = set()
    for node in tree.css("link[rel~='index'], a[href]"):
        is_stated = "index" in attribute(node, "rel").casefold().split()
        if not is_stated and collapse(node.text()[:60]).strip().casefold() not in _INDEX_NAMES:
            continue
        url = page.at(attribute(node, "href")[:_MAX_ADDRESS_CHARS])
        if url is None or url in seen or _is_start(url):
            continue
        seen.add(url)
        yield MapMark(kind="index_page", root=_folder(url), urls=(url,))
        if len(seen) == _MAX_MARKS:
            return


def _home(tree: LexborHTMLParser, page: _Page) -> Iterator[MapMark]:
    """The page that a manual begins with; it names the manual's index."""
    for node in tree.css("link[rel][href], a[rel][href], a[accesskey='h'][href]"):
        rels = attribute(node, "rel").casefold().split()
        if attribute(node, "accesskey") != "h" and _HOME_RELATIONS.isdisjoint(rels):
            continue
        url = page.at(attribute(node, "href")[:_MAX_ADDRESS_CHARS])
        if url is not None and url != page.url:
            yield MapMark(kind="home", root=_folder(url), urls=(url,))
            return


def _is_start(url: str) -> bool:
    name = unquote(urlsplit(url).path.rpartition("/")[2])
    # "Index.html" is the index of a Texinfo manual, "index.html" its first page.
    return not name or name.partition(".")[0] == "index"


def _mark(kind: str, root: str, *files: str) -> MapMark:
    urls = [url for file in files if (url := _same_site(file, root))]
    return MapMark.model_validate({"kind": kind, "root": root, "urls": urls})


def _same_site(href: str, base: str) -> str | None:
    try:
        url = canonical_url(href, base)
    except InputError:
        return None
    return url if site_of(url) == site_of(base) else None


def _folder(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[0] + "/"

"""The version that a documentation generator wrote into a page."""

import re
from collections.abc import Mapping
from typing import Final

from selectolax.lexbor import LexborHTMLParser

from webrag.ingestion.html.tree import inline_text
from webrag.ingestion.versions import plain_version

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

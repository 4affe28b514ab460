"""The content's HTML as it is kept for presentation; nothing is quoted from it."""

import re

from ada_url import URL
from selectolax.lexbor import LexborNode

from webrag.errors import InputError
from webrag.ingestion.html.tree import attribute, select
from webrag.ingestion.links import canonical_url

__all__ = ["presentable"]

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"<[a-z][^<>]*>", re.IGNORECASE)
_UNPRESENTABLE = re.compile(
    r"\s(?:on\w+|style|data-[\w-]+|srcset|sizes|loading|decoding|integrity|nonce)=\"[^\"]*\""
)
_LATE_SOURCES = ("data-src", "data-lazy-src", "data-original", "data-srcset", "srcset")


def presentable(root: LexborNode, base_url: str) -> str:
    """Return the content's HTML without hooks for scripts, with addresses that work elsewhere."""
    for picture in select(root, "img"):
        source = _picture_source(picture)
        try:
            picture.attrs["src"] = canonical_url(source, base_url, keep_tracking=True)
        except InputError:
            if "src" in picture.attributes:
                del picture.attrs["src"]
    for link in select(root, "a[href]"):
        href = attribute(link, "href")
        if not href.startswith("#"):
            link.attrs["href"] = _absolute(href, base_url)
    html = _COMMENT.sub("", root.html or "")
    return _TAG.sub(lambda tag: _UNPRESENTABLE.sub("", tag.group()), html)


def _picture_source(picture: LexborNode) -> str:
    """The picture's address; pages that load pictures late show a placeholder first."""
    source = attribute(picture, "src")
    if source and not source.startswith("data:"):
        return source
    late = (attribute(picture, name).strip() for name in _LATE_SOURCES)
    return next((value.split(",")[0].split()[0] for value in late if value.strip(", ")), source)


def _absolute(href: str, base_url: str) -> str:
    try:
        url = URL(href.strip(), base_url)
    except ValueError:
        return ""
    return str(url.href) if url.protocol in ("http:", "https:", "mailto:") else ""

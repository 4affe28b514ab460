"""Which of the forms Firecrawl gives of a page is the one to read; a pure function."""

import re

from webrag.ingestion.characters import collapse
from webrag.ingestion.firecrawl.models import ScrapedPage
from webrag.ingestion.html.markdown import html_from_markdown
from webrag.ingestion.page_shell import PageFacts, page_html

__all__ = ["page_content"]

# A page drawn by scripts is nearly empty as it was sent; what was drawn is in the other forms.
_LEAST_SHARE = 0.5
_UNSEEN = frozenset({"script", "style", "template", "noscript", "head"})
_PIECE = re.compile(r"<(/?)([a-z][a-z0-9]*+)[^<>]*+>|([^<]+)|<", re.IGNORECASE)


def page_content(page: ScrapedPage) -> str:
    """The page as one HTML document; "" when there is nothing in it.

    The page's own HTML comes first: it has the metadata, the formulas' sources and everything
    else that cleaning loses. It is passed over when it shows much less than what Firecrawl read.
    Cleaned HTML and Markdown get a page around them that says what Firecrawl knows of theirs.
    """
    facts = PageFacts(
        title=page.title,
        description=page.description,
        language=page.language,
        published_at=page.published_at,
        modified_at=page.modified_at,
        links=page.links,
    )
    markdown = html_from_markdown(page.markdown) if page.markdown.strip() else ""
    if not _is_html(page.content_type) and markdown:
        return page_html(markdown, facts)
    enough = _shown_chars(markdown) * _LEAST_SHARE
    if page.raw_html.strip() and _shown_chars(page.raw_html) >= enough:
        return page.raw_html
    if page.html.strip() and _shown_chars(page.html) >= enough:
        return page_html(page.html, facts)
    return page_html(markdown, facts) if markdown else ""


def _is_html(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind in ("", "text/html", "application/xhtml+xml")


def _shown_chars(html: str) -> int:
    """Characters a reader would see, roughly; parsing is left to the worker processes."""
    inside = ""
    count = 0
    for match in _PIECE.finditer(html):
        slash, tag, text = match.groups()
        if text and not inside:
            count += len(collapse(text))
        elif tag and tag.lower() in _UNSEEN and not inside:
            inside = "" if slash else tag.lower()
        elif tag and slash and tag.lower() == inside:
            inside = ""
    return count

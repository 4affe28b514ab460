"""A fetched page to a normalised document: a pure function, run in worker processes."""

import itertools
import re
from dataclasses import dataclass, replace

from selectolax.lexbor import LexborNode

from webrag.errors import InputError, UnusablePageError
from webrag.ingestion.characters import collapse, normalize_characters, strip_private_use
from webrag.ingestion.links import canonical_url, content_hash
from webrag.ingestion.markdown import html_from_markdown, marked_markdown
from webrag.ingestion.marks import HEADING, MAX_LINKS, Span, mark_start, read_marks
from webrag.ingestion.metadata import PageMetadata, parse_date, read_metadata
from webrag.ingestion.models import FetchedPage, NormalizedDocument, OutgoingLink
from webrag.ingestion.outgoing import collect_links, mark_links, outgoing_links
from webrag.ingestion.passages import Passages
from webrag.ingestion.prescan import MarkupBomb, check_markup
from webrag.ingestion.prune import main_content, remove_chrome, remove_hidden, remove_machinery
from webrag.ingestion.rewrite import rewrite_formulas, rewrite_structure
from webrag.ingestion.tree import attribute, parse, select

__all__ = ["extract"]

_SHELL_CHARS = 200
_SHELL = re.compile(
    r"enable javascript|javascript is (?:disabled|required)|just a moment|checking your browser"
    r"|verify (?:that )?you are (?:a )?human|are you a robot|complete the captcha"
    r"|^loading\W*$|^please wait\W*$",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"<[a-z][^<>]*>", re.IGNORECASE)
_UNPRESENTABLE = re.compile(
    r"\s(?:on\w+|style|data-[\w-]+|srcset|sizes|loading|decoding|integrity|nonce)=\"[^\"]*\""
)
_BARE_URL = re.compile(r"https?://[^\s<>\"'`]+[^\s<>\"'`.,;:!?)\]}*_]")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.{0,20000}?)\n(?:---|\.\.\.)[ \t]*\n", re.DOTALL)
_FRONT_MATTER_FIELD = re.compile(r"^(\w+):[ \t]*[\"']?(.*?)[\"']?[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class _Content:
    meta: PageMetadata
    markdown: str
    html: str
    links: tuple[OutgoingLink, ...]


def extract(page: FetchedPage) -> NormalizedDocument:
    """Convert a page to markdown with located links and metadata.

    The same page gives the same document. `markdown[link.char_start:link.char_end]` is the
    link's text as the page shows it.

    Raises:
        UnusablePageError: The page holds no readable text, or its markup cannot be parsed safely.
    """
    if page.kind == "text":
        content = _from_text(page)
    elif page.kind == "markdown":
        content = _from_markdown(page)
    else:
        content = _from_html(page, page.text)
    _refuse_empty(page, content.markdown)
    return NormalizedDocument(
        url=content.meta.url,
        requested_url=page.requested_url,
        title=content.meta.title,
        description=content.meta.description,
        language=content.meta.language,
        published_at=content.meta.published_at,
        modified_at=content.meta.modified_at,
        fetched_at=page.fetched_at,
        markdown=content.markdown,
        html=content.html,
        links=content.links,
        content_hash=content_hash(content.markdown),
        etag=page.etag,
        last_modified=page.last_modified,
        status=page.status,
        source=page.source,
    )


def _from_html(page: FetchedPage, html: str) -> _Content:
    try:
        check_markup(html)
    except MarkupBomb as error:
        raise UnusablePageError(
            f"The page {page.url} cannot be converted: {error}.", url=page.url
        ) from error
    tree = parse(strip_private_use(html))
    meta = read_metadata(tree, page.url)
    body = tree.body
    if body is None:
        return _Content(meta, "", "", ())
    found = collect_links(tree, meta.base_url, canonical_url(page.url))
    rewrite_formulas(body)
    remove_machinery(tree)
    remove_hidden(body)
    remove_chrome(body)
    root = main_content(body)
    shown = _presentable(root, meta.base_url)
    rewrite_structure(root)
    for heading in select(root, "h1, h2, h3, h4, h5, h6"):
        mark_start(heading, HEADING)
    found = mark_links(root, found)
    markdown, spans, headings = _without_margins(marked_markdown(root.html or ""))
    links = outgoing_links(found, spans, Passages(markdown, headings))
    return _Content(meta, markdown, shown, links)


def _from_markdown(page: FetchedPage) -> _Content:
    source = page.text
    fields: dict[str, str] = {}
    front = _FRONT_MATTER.match(source.replace("\r\n", "\n")[:25_000])
    if front:
        found = _FRONT_MATTER_FIELD.findall(front.group(1))
        fields = {name.lower(): value for name, value in found}
    content = _from_html(page, f"<body>{html_from_markdown(source)}</body>")
    meta = replace(
        content.meta,
        title=fields.get("title") or content.meta.title or _first_line(content.markdown),
        description=fields.get("description") or content.meta.description,
        language=content.meta.language or fields.get("lang"),
        published_at=parse_date(fields.get("date", "")),
    )
    return replace(content, meta=meta)


def _from_text(page: FetchedPage) -> _Content:
    text = normalize_characters(strip_private_use(page.text)).strip("\n").rstrip()
    own = canonical_url(page.url)
    passages = Passages(text, [])
    links: list[OutgoingLink] = []
    for match in itertools.islice(_BARE_URL.finditer(text), MAX_LINKS):
        try:
            target = canonical_url(match.group())
        except InputError:
            continue
        if target != own:
            span = Span(match.start(), match.end())
            links.append(
                OutgoingLink(
                    url=target,
                    anchor_text=match.group(),
                    sentence=passages.sentence(span),
                    char_start=span.start,
                    char_end=span.end,
                )
            )
    meta = PageMetadata(base_url=page.url, url=own, title=_first_line(text))
    return _Content(meta, text, "", tuple(links))


def _without_margins(marked: str) -> tuple[str, dict[int, Span], list[int]]:
    """Read the marks, and drop blank lines before and after the text."""
    text, spans, headings = read_marks(marked)
    lead = len(text) - len(text.lstrip("\n"))
    trimmed = text[lead:].rstrip()
    last = len(trimmed)

    def moved(offset: int) -> int:
        return min(max(0, offset - lead), last)

    places = {number: Span(moved(span.start), moved(span.end)) for number, span in spans.items()}
    return trimmed, places, [moved(offset) for offset in headings]


def _presentable(root: LexborNode, base_url: str) -> str:
    """The content's HTML without scripts' hooks, with picture addresses that work elsewhere."""
    for picture in select(root, "img[src]"):
        source = attribute(picture, "src")
        try:
            picture.attrs["src"] = canonical_url(source, base_url, keep_tracking=True)
        except InputError:
            del picture.attrs["src"]
    html = _COMMENT.sub("", root.html or "")
    return _TAG.sub(lambda tag: _UNPRESENTABLE.sub("", tag.group()), html)


def _refuse_empty(page: FetchedPage, markdown: str) -> None:
    if not any(char.isalnum() for char in markdown):
        raise UnusablePageError(
            f"The page {page.url} holds no readable text.",
            url=page.url,
            status=page.status,
            hint="Pages that are drawn by scripts in the browser cannot be read.",
        )
    if len(markdown) <= _SHELL_CHARS and _SHELL.search(markdown.strip()):
        raise UnusablePageError(
            f"The page {page.url} only shows '{collapse(markdown)[:80]}', not its content.",
            url=page.url,
            status=page.status,
        )


def _first_line(text: str) -> str | None:
    for line in text.splitlines()[:20]:
        cleaned = collapse(re.sub(r"^[#>*\s]+", "", line))
        if any(char.isalnum() for char in cleaned):
            return cleaned[:150]
    return None

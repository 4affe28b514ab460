"""A fetched page to a normalised document: a pure function, run in worker processes."""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser

from webrag.errors import UnusablePageError, how_to_install
from webrag.frozen import shared_fields
from webrag.ingestion.addresses import content_hash, is_local, page_address
from webrag.ingestion.characters import (
    collapse,
    normalize_characters,
    storable,
    strip_private_use,
)
from webrag.ingestion.formats.code import line_anchors
from webrag.ingestion.formats.markdown import (
    read_front_matter,
    without_components,
    without_containers,
)
from webrag.ingestion.html.content import (
    remove_contents,
    remove_pagers,
    remove_unwanted,
    remove_ways_back,
)
from webrag.ingestion.html.controls import (
    framed,
    spell_out,
    spell_out_formulas,
    unveil,
    unveil_formulas,
)
from webrag.ingestion.html.layouts import name_page, rewrite_layouts
from webrag.ingestion.html.markdown import html_from_markdown, marked_markdown
from webrag.ingestion.html.metadata import (
    MAX_DESCRIPTION_CHARS,
    MAX_TITLE_CHARS,
    read_metadata,
    site_headings,
)
from webrag.ingestion.html.outgoing import Passages, collect_links, mark_links, outgoing_links
from webrag.ingestion.html.prune import (
    lift_title,
    main_content,
    presentable,
    remove_chrome,
    remove_hidden,
    remove_machinery,
)
from webrag.ingestion.html.rewrite import remove_controls, rewrite_structure
from webrag.ingestion.html.tree import (
    HEADING,
    MAX_LINKS,
    MarkupBomb,
    Span,
    check_markup,
    drop,
    mark_start,
    read_marks,
    select,
)
from webrag.ingestion.models import (
    Content,
    Conversion,
    FetchedPage,
    NormalizedDocument,
    OutgoingLink,
    PageMetadata,
    PageSigns,
    written_links,
)
from webrag.ingestion.quality import judge, read_signs
from webrag.ingestion.site_maps.marks import find_marks
from webrag.ingestion.versions import edition_of, parse_date

# By a link's title or text, and its address: a print version holds other pages once more, mdBook's
# the whole book.
_PRINT = re.compile(
    r"\W*(?:(?:view |show )?print(?:able|er[- ]friendly)?"
    r" (?:this (?:page|book|site|article|document|manual|section|topic)|book|site|version|view)"
    r"|printer[- ]friendly)\W*",
    re.IGNORECASE,
)


def _with_nofollow(links: tuple[OutgoingLink, ...], *, of_page: bool) -> tuple[OutgoingLink, ...]:
    """Mark links that are not to be followed: all of a page, or those to print versions."""

    def marked(link: OutgoingLink) -> OutgoingLink:
        is_print = "print" in link.url.lower().split("/", 3)[-1] and (
            _PRINT.fullmatch(link.title or "") or _PRINT.fullmatch(link.anchor_text)
        )
        if "nofollow" in link.rel or not (of_page or is_print):
            return link
        return link.model_copy(update={"rel": (*link.rel, "nofollow")})

    return tuple(map(marked, links))


_PRIMARY = re.compile(r"\s*([a-z]{2,3})(?=$|[-_,;\s])", re.IGNORECASE)
_UNSURE = frozenset({"und", "mul", "zxx", "mis", "xx"})
# Names the Unicode database gives to letters begin with their script.
_SCRIPT_LANGUAGE = {
    "HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko", "CJK": "zh", "THAI": "th", "HEBREW": "he",
    "GREEK": "el", "GEORGIAN": "ka", "ARMENIAN": "hy", "CYRILLIC": None, "ARABIC": None,
    "DEVANAGARI": None, "BENGALI": "bn", "TAMIL": "ta", "TELUGU": "te", "KHMER": "km",
}  # fmt: skip

# Languages written in another script than Latin; a page in one may hold mostly Latin code.
_NOT_LATIN = frozenset(
    """am ar be bg bn ckb dv el fa gu he hi hy ja ka kk km kn ko ky lo mk ml mn mr my ne or pa ps
    ru sd si sr ta te tg th ti ug uk ur yi zh""".split()  # noqa: SIM905
)

_SAMPLE_CHARS = 10_000
_FAR = re.compile("[\u0370-\U0010ffff]")
_LEAST_LETTERS = 40
_MAJORITY = 0.6


def page_language(declared: Sequence[str], text: str) -> str | None:
    """Return the primary language tag of a page, lower case, None when it is not known.

    The first usable declaration counts, unless most of the text is in a script that this language
    does not use: templates declare English whatever they are filled with.
    """
    found = (match[1].lower() for value in declared if (match := _PRIMARY.match(value)))
    language = next((tag for tag in found if tag not in _UNSURE), None)
    script = _main_script(text)
    if script is None or language in _NOT_LATIN:
        return language
    return _SCRIPT_LANGUAGE.get(script)


def _main_script(text: str) -> str | None:
    """The script most letters are in when it is not Latin; kana decide for Japanese."""
    sample = text[:_SAMPLE_CHARS]
    # Most pages are in Latin script; naming each letter takes longer than converting the page.
    if sample.isascii() or len(_FAR.findall(sample)) < len(sample) / 5:
        return None
    letters = [char for char in sample if char.isalpha()]
    if len(letters) < _LEAST_LETTERS:
        return None
    scripts = Counter(unicodedata.name(char, "").partition(" ")[0] for char in letters)
    kana = scripts["HIRAGANA"] + scripts["KATAKANA"]
    if kana > len(letters) * 0.1:
        return "HIRAGANA"
    script, count = scripts.most_common(1)[0]
    return script if count >= len(letters) * _MAJORITY and script in _SCRIPT_LANGUAGE else None


_LESS = "\ufdd0"  # no character of any text


def extract(page: FetchedPage) -> NormalizedDocument:
    """Convert a page to markdown with located links and metadata.

    The same page gives the same document. `markdown[link.char_start:link.char_end]` is the
    link's text as the page shows it.

    Raises:
        UnusablePageError: The page shows something else than its content (`kind` says what), or
            cannot be parsed safely; `alternative_url` is its Markdown version where it names one.
    """
    content = _READERS[page.kind](page)
    markdown_url = page.markdown_url or content.meta.markdown_url
    try:
        if is_local(page.url):
            content = _as_file(page, content)
        elif wall := judge(content.signs, content.markdown):
            raise wall.error(page.url, page.status)
    except UnusablePageError as error:
        error.alternative_url = markdown_url
        raise
    meta = content.meta
    return NormalizedDocument(
        **shared_fields(NormalizedDocument, page, "url", "language", "markdown_url"),
        **shared_fields(NormalizedDocument, meta, "title", "description", "markdown_url"),
        **shared_fields(NormalizedDocument, content, "links"),
        # Every chunk carries the title, wherever it was written.
        title=meta.title and meta.title[:MAX_TITLE_CHARS].rstrip(),
        description=meta.description and meta.description[:MAX_DESCRIPTION_CHARS].rstrip(),
        language=page_language((*meta.languages, page.language), content.markdown),
        links=_with_nofollow(content.links, of_page=page.is_nofollow or meta.is_nofollow),
        markdown_url=markdown_url,
        content_hash=content_hash(content.markdown),
        edition=edition_of(meta.url, marked=meta.version, manifest=page.manifest),
    )


def _from_html(page: FetchedPage, html: str) -> Content:
    try:
        return _converted(page, html)
    except MarkupBomb as error:
        raise _unusable(page, f"cannot be converted: {error}", "unsafe_markup") from error


def _unusable(page: FetchedPage, why: str, kind: str, hint: str | None = None) -> UnusablePageError:
    said = f"{page.url} {why}."
    return UnusablePageError(said, url=page.url, status=page.status, kind=kind, hint=hint)


def _converted(page: FetchedPage, html: str) -> Content:
    check_markup(html)
    tree = framed(LexborHTMLParser(strip_private_use(html)))
    meta = read_metadata(tree, page.url)
    signs = read_signs(tree, html)
    map_marks = find_marks(tree, page.url)
    body = tree.body
    if body is None:
        return Content(meta, "", "", (), signs, map_marks=map_marks)
    unveil(tree)
    found = collect_links(tree, meta.base_url, page_address(page.url))
    unveil_formulas(body)
    remove_hidden(tree)
    spell_out(body)
    remove_machinery(tree)
    drop(site_headings(tree, page.url, meta.title))
    name_page(body)
    remove_chrome(body)
    root = main_content(body)
    if page.kind == "html":  # other formats have nothing beside their content
        remove_pagers(root)
        remove_unwanted(root, page_address(page.url), meta.base_url)
        remove_contents(root)
        remove_ways_back(root)
        lift_title(root)
    remove_controls(root)
    rewrite_layouts(root)
    shown = presentable(root, meta.base_url)
    spell_out_formulas(root)
    rewrite_structure(root)
    for heading in select(root, "h1, h2, h3, h4, h5, h6"):
        mark_start(heading, HEADING)
    marked = mark_links(root, found)
    markdown, spans, headings = _without_margins(marked_markdown(root.html or ""))
    links = outgoing_links(marked, spans, Passages(markdown, headings))
    return Content(meta, markdown, shown, links, signs, map_marks=map_marks)


def _from_markdown(page: FetchedPage) -> Content:
    source = without_components(page.text) if page.url.endswith(".mdx") else page.text
    return _described(page, without_containers(source))


def _described(
    page: FetchedPage,
    source: str,
    given: Mapping[str, str] | None = None,
    *,
    has_tags: bool = True,
) -> Content:
    """Markdown with what its front matter says of it, or what was `given` in its place.

    Made of a format that has no tags, what looks like one is text.
    """
    fields = dict(given or {}) | read_front_matter(source)
    # An entity would stand in code as it is written.
    html = html_from_markdown(source if has_tags else source.replace("<", _LESS))
    html = html.replace(_LESS, "&lt;")
    content = _from_html(page, f"<body>{html}</body>")
    meta = replace(
        content.meta,
        title=fields.get("title") or content.meta.title or _first_words(content.markdown),
        description=fields.get("description") or content.meta.description,
        author=fields.get("author") or content.meta.author,
        languages=(fields.get("lang", "") or fields.get("language", ""),),
        published_at=parse_date(fields.get("date", "")),
        modified_at=parse_date(fields.get("lastmod", "") or fields.get("updated", "")),
    )
    # What is a sign in a page's markup is text here.
    return replace(content, meta=meta, signs=PageSigns(title=meta.title or ""))


def _from_text(page: FetchedPage) -> Content:
    text = normalize_characters(strip_private_use(page.text)).strip("\n").rstrip()
    own = page_address(page.url)
    passages = Passages(text, [])
    places = (
        (link, Span(link.char_start or 0, link.char_end or 0)) for link in written_links(text, own)
    )
    links = tuple(
        link.model_copy(update={"sentence": passages.sentence(place)})
        for link, place in itertools.islice(places, MAX_LINKS)
    )
    meta = PageMetadata(base_url=page.url, url=own, title=_first_line(text))
    return Content(meta, text, "", links)


def _titled(content: Content, title: str | None, **meta: Any) -> Content:
    return replace(content, meta=replace(content.meta, title=title or None, **meta))


def _without_margins(marked: str) -> tuple[str, dict[int, Span], list[int]]:
    text, spans, headings = read_marks(marked)
    lead = len(text) - len(text.lstrip("\n"))
    trimmed = text[lead:].rstrip()
    last = len(trimmed)

    def moved(offset: int) -> int:
        return min(max(0, offset - lead), last)

    places = {number: Span(moved(span.start), moved(span.end)) for number, span in spans.items()}
    return trimmed, places, [moved(offset) for offset in headings]


def _first_words(markdown: str) -> str | None:
    return None if markdown.startswith("```") else _first_line(markdown)


def _first_line(text: str) -> str | None:
    for line in text.splitlines()[:20]:
        cleaned = collapse(re.sub(r"^[#>*\s]+", "", line))
        if any(char.isalnum() for char in cleaned):
            return cleaned[:150]
    return None


def _as_file(page: FetchedPage, content: Content) -> Content:
    """A file needs no wall to be looked for, leads to its lines, and belongs to no site's map."""
    if not any(map(str.isalnum, content.markdown)):
        raise _unusable(page, "holds no readable text", "empty")
    anchors = content.anchors
    if not anchors and page.kind in _OF_LINES:
        anchors = line_anchors(page.text, content.markdown)
    return replace(content, anchors=anchors[:MAX_LINKS], map_marks=())


# Of other kinds the reader itself names pages, or there is no line to lead to.
_OF_LINES = frozenset({"html", "markdown", "text", "rst", "asciidoc"})


def _from_rst(page: FetchedPage) -> Content:
    try:
        from webrag.ingestion.formats.rst import read_rst
    except ImportError as error:
        why = "is reStructuredText, and what reads it is not installed"
        raise _unusable(page, why, "not_text", how_to_install("rst")) from error

    html, title, date = read_rst(page.text)
    content = _from_html(page, html)
    # Otherwise the date is any that the text holds, and the title the name docutils gave it.
    title = title or _first_line(content.markdown) or ""
    return _titled(content, title, published_at=parse_date(date), modified_at=None)


def _from_asciidoc(page: FetchedPage) -> Content:
    from webrag.ingestion.formats.asciidoc import read_asciidoc

    return _described(page, *read_asciidoc(page.text), has_tags=False)


def _from_notebook(page: FetchedPage) -> Content:
    from webrag.ingestion.formats.code import markdown_from_notebook

    try:
        return _described(page, markdown_from_notebook(page.text))
    except ValueError as error:
        raise _unusable(page, f"cannot be read as a notebook: {error}", "damaged") from error


def _from_code(page: FetchedPage) -> Content:
    from webrag.ingestion.formats.code import read_code
    from webrag.ingestion.formats.kinds import code_language

    path = unquote(page.url).split("/")
    source = normalize_characters(strip_private_use(page.text))
    markdown, anchors = read_code(source, code_language(path[-1]))
    own = page_address(page.url)
    meta = PageMetadata(base_url=page.url, url=own, title="/".join(path[-2:]))
    return Content(meta, markdown, "", (), anchors=anchors)


def _from_mail(page: FetchedPage) -> Content:
    from webrag.ingestion.formats.office import read_mail

    text, is_plain, said = read_mail(page.body)
    if not is_plain:
        return _described(page, text, said)
    # Signs that Markdown would take for its own, and line ends, are meant as they stand.
    content = _from_text(page.model_copy(update={"text": storable(text)}))
    return _titled(content, said["title"], published_at=parse_date(said["date"]))


_BOOK_TITLE = re.compile(r"\*\*Title:\*\* ([^\n]{1,300}+)")


def _from_office(page: FetchedPage) -> Content:
    from webrag.ingestion.formats.office import read_office

    text, is_html, said = read_office(page.body, page.url.rpartition(".")[2].lower(), page.url)
    if is_html:
        content = _from_html(page, f"<body><main>{text}</main></body>")
        title = content.meta.title or _first_words(content.markdown)
        return _titled(content, title, published_at=None)
    named = _BOOK_TITLE.match(text)
    # Only what reads OpenDocument marks what is no tag.
    return _described(page, text, {"title": named[1]} if named else said, has_tags=bool(said))


def _from_pdf(page: FetchedPage) -> Content:
    # Loading the library takes longer than converting a page; few pages are PDFs.
    from webrag.ingestion.pdf.reader import read_pdf

    return read_pdf(page.body, page.url)


_READERS = {
    "html": lambda page: _from_html(page, page.text),
    "markdown": _from_markdown,
    "text": _from_text,
    "pdf": _from_pdf,
    "rst": _from_rst,
    "asciidoc": _from_asciidoc,
    "notebook": _from_notebook,
    "code": _from_code,
    "mail": _from_mail,
    "office": _from_office,
}


def make_converter(_setup: object) -> Callable[[FetchedPage], Conversion]:
    """Give the job behind `ExtractionPool` what it converts pages with."""

    def convert(page: FetchedPage) -> Conversion:
        try:
            return Conversion(document=extract(page))
        except UnusablePageError as error:
            return Conversion(failure=str(error), **shared_fields(Conversion, error))

    return convert

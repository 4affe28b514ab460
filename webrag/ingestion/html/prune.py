"""Finds a page's main content and removes what is around it; inside only the title may move."""

import itertools
import re

from ada_url import join_url
from selectolax.lexbor import LexborHTMLParser, LexborNode

from webrag.ingestion.addresses import link_target
from webrag.ingestion.html.hidden import remove_unseen
from webrag.ingestion.html.tree import (
    ancestors,
    attribute,
    drop,
    holds,
    inline_text,
    preceding,
    prepend,
    rename,
    select,
    text_length,
)

_MACHINERY = [
    *("script", "style", "template", "noscript", "svg", "iframe", "object", "embed", "canvas"),
    *("audio", "video", "select", "datalist", "textarea", "dialog", "link", "meta", "base"),
    *("noframes", "noembed", "title"),
]
# Written out again, what these hold would be read as markup.
_UNREAD = "xmp, plaintext, listing"
# Boxes that say whether something is done; of an ingredient, a reader may tick it.
_STATES = (
    "input[type=checkbox i][disabled], input[type=checkbox i][checked],"
    " [class*=task-list] input[type=checkbox i]"
)
# Menus by what they are; those that only their names tell, `content` finds.
_CHROME = (
    "nav, header, footer, aside, [role=navigation], [role=search], [role=banner],"
    " [role=contentinfo], [role=complementary], [role=menu], [role=menubar], [role=toolbar],"
    " [role=dialog], [role=alertdialog], [aria-label=breadcrumb], [aria-label=breadcrumbs],"
    " .sphinxsidebar, .navheader, .navfooter, .NAVHEADER, .NAVFOOTER, .skip-link, .mw-editsection,"
    " .navbox, .vector-toc,"
    " .toc-sidebar, .prev-next-area, .theme-edit-this-page, .md-announce, .theme-doc-breadcrumbs,"
    " .theme-doc-toc-mobile, .md-source-file, #markdown-toc, .rst-versions, #titlearea, #main-nav,"
    " #nav-path, .navpath, #MSearchSelectWindow, #MSearchResultsWindow, .ttc, address.footer,"
    " div.header > div.summary, div:is(.header, .nav-panel):has(> p > a[accesskey]),"
    " .td-page-meta, .td-page-meta__lastmod, .source-toolbox,"
    " .feedback--title, .feedback--question, .feedback--response,"
    " [class*=language-] > span.lang, .nav-container, #onetrust-consent-sdk,"
    " #CybotCookiebotDialog, #usercentrics-root, .qc-cmp2-container, .fc-consent-root,"
    " .modal:has(> .modal-dialog), .modal[data-reveal], .reveal-modal,"
    " .comment-respond, #respond:has(#cancel-comment-reply-link)"
)
# Set beside the text, yet part of it: docutils and many themes use `aside` for these.
_CONTENT_ASIDE = re.compile(
    r"admonition|footnote|callout|\bnote\b|\btip\b|warning|caution|danger|important|\btopic\b"
    r"|example|notice|starlight-aside",
    re.IGNORECASE,
)
_MAIN = "main, [role=main], article"
_LEAST_SHARE = 0.4
_OTHER_SHARE = 0.1
_HEADINGS = "h1, h2, h3, h4, h5, h6"
_MOST_ABOVE_TITLE = 100
_HIDDEN = "[hidden], [aria-hidden=true], .sr-only, .visually-hidden"
_BOXES = frozenset({"article", "div", "main", "section"})
# A smaller element is never most of a page with content.
_LEAST_GUARDED_CHARS = 200
# Where a page that arrives in pieces keeps them until its script puts them in place.
_STREAMED = "div[hidden][id^='S:']"


def remove_machinery(tree: LexborHTMLParser) -> None:
    """Remove scripts, styles, embedded objects and form controls; make plain text a `<pre>`."""
    tree.strip_tags(_MACHINERY, recursive=True)
    body = tree.body
    if body is None:
        return
    for plain in select(body, _UNREAD):
        rename(plain, "pre")
    states = {node.mem_id for node in select(body, _STATES)}
    drop(node for node in select(body, "input") if node.mem_id not in states)
    drop(node for node in select(body, "button") if not select(node, _HEADINGS))
    whole = len(body.text())
    drop(form for form in select(body, "form") if len(form.text()) < whole * _LEAST_SHARE)


def remove_hidden(tree: LexborHTMLParser) -> None:
    """Remove what a browser does not show; text hidden from people may address machines.

    Inactive tab panels and text that search reveals are one click away and stay. To be called
    before scripts and style sheets are removed, which say what is hidden.
    """
    body = tree.body
    if body is None:
        return
    shown = "[role=tabpanel][hidden], [hidden=until-found]"
    if any("$RC" in script.text() for script in tree.css("script:not([src])")):
        shown = f"{shown}, {_STREAMED}"
    for node in select(body, shown):
        del node.attrs["hidden"]
    # Seen by readers, and read out by the box around it instead.
    for title in select(body, ".starlight-aside__title[aria-hidden]"):
        del title.attrs["aria-hidden"]
    remove_unseen(tree)
    can_change = tree.css_first("script") is not None
    hidden = [node for node in select(body, _HIDDEN) if node.tag != "body"]
    drop(node for node in hidden if not _is_guarded(node, body, can_change=can_change))


def _is_guarded(node: LexborNode, body: LexborNode, *, can_change: bool) -> bool:
    """Tell most of a page, hidden until a script has run or a dialog is closed."""
    if node.tag not in _BOXES or len(node.text()) < _LEAST_GUARDED_CHARS:
        return False
    if "hidden" in node.attributes and not can_change:
        return False
    return 2 * text_length(node) > text_length(body)


def remove_chrome(body: LexborNode) -> None:
    """Remove navigation, headers, footers and sidebars, unless they hold the page's title."""
    drop(node for node in select(body, _CHROME) if _is_chrome(node))


def _is_chrome(node: LexborNode) -> bool:
    if node.tag in ("body", "html", "main") or node.css_first("h1, main, [role=main]") is not None:
        return False
    if node.tag == "aside":
        return not _CONTENT_ASIDE.search(attribute(node, "class"))
    around = {above.tag for above in ancestors(node)}
    said = "h2, h3, p" if around & {"article", "main"} else "h2, h3, h4"
    # A section's own header carries its heading; a page's header carries the menu.
    is_of_part = not around.isdisjoint(("article", "main", "section"))
    return not (node.tag == "header" and is_of_part and node.css_first(said))


def main_content(body: LexborNode) -> LexborNode:
    """Return the element that holds the page's text, the body when nothing better is marked.

    A marked element with less than 40% of the body's text is not trusted: it is a teaser, or one
    article of many. Where another has 10%, both are content: the element around all of these.
    """
    candidates = [(len(inline_text(node)), node) for node in select(body, _MAIN)]
    if not candidates:
        return body
    longest, best = max(candidates, key=lambda found: found[0])
    whole = len(inline_text(body))
    if longest < _LEAST_SHARE * whole:
        return body
    for length, other in candidates:
        if length >= _OTHER_SHARE * whole:
            outer = {above.mem_id for above in (best, *ancestors(best))}
            around = (each for each in (other, *ancestors(other)) if each.mem_id in outer)
            best = next(around, best)
    # Some layouts put the page's heading above its main element; a reader sees both. An unclosed
    # heading holds all that follows it.
    titles = select(body, "h1") if best.tag != "body" else []
    if len(titles) == 1 and best.css_first("h1") is None and not holds(titles[0], best):
        prepend(best, titles[0], move=True)
    return best


def lift_title(root: LexborNode) -> None:
    """Move a page's title above the few words before it, such as its section and date.

    They would be a passage of their own. A title within a link, a cell or a quotation stays there.
    """
    title = root.css_first(_HEADINGS)
    if title is None or title.tag != "h1" or len(select(root, "h1")) > 1:
        return
    around = [*itertools.takewhile(lambda up: up.mem_id != root.mem_id, ancestors(title))]
    if any(up.tag not in (*_BOXES, "header") for up in around):
        return
    above = (each.text() for node in (title, *around) for each in preceding(node))
    if 0 < len("".join(above).strip()) <= _MOST_ABOVE_TITLE:
        prepend(root, title, move=True)


_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"<[a-z][^<>\s]*+\s[^<>]*>", re.IGNORECASE)
_UNPRESENTABLE = re.compile(
    r"\s(?:on\w+|style|data-[\w-]+|srcset|sizes|loading|decoding|integrity|nonce)=\"[^\"]*\""
)
_LATE_SOURCES = ("data-src", "data-lazy-src", "data-original", "data-srcset", "srcset")


def presentable(root: LexborNode, base_url: str) -> str:
    """Return the content's HTML without hooks for scripts, with addresses that work elsewhere."""
    for picture in select(root, "img"):
        source = link_target(_picture_source(picture), base_url, keep_tracking=True)
        if source is not None:
            picture.attrs["src"] = source
        elif "src" in picture.attributes:
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
        url = join_url(base_url, href.strip())
    except ValueError:
        return ""
    return url if url.startswith(("http:", "https:", "mailto:")) else ""

"""Finds a page's main content and removes what is around it; it rewrites nothing inside."""

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webrag.ingestion.html.tree import ancestors, attribute, drop, inline_text, select

__all__ = ["main_content", "remove_chrome", "remove_hidden", "remove_machinery"]

_MACHINERY = [
    *("script", "style", "template", "noscript", "svg", "iframe", "object", "embed", "canvas"),
    *("audio", "video", "select", "datalist", "textarea", "dialog", "link", "meta", "base"),
]
_CHROME = (
    "nav, header, footer, aside, [role=navigation], [role=search], [role=banner],"
    " [role=contentinfo], [role=complementary], [role=menu], [role=menubar], [role=toolbar],"
    " [role=dialog], [role=alertdialog], .sphinxsidebar, .related, .navheader, .navfooter,"
    " .navbar, .sidebar, .menu, .breadcrumb, .breadcrumbs, .skip-link, .skip-to-content,"
    " .cookie-banner, .cookie-consent, .cookie-notice, #cookie-banner, #onetrust-consent-sdk,"
    " .mw-editsection, .noprint, .navbox, .vector-toc, .toc-sidebar, .table-of-contents,"
    " .pagination, .prev-next-area, .edit-this-page, .theme-edit-this-page, .share-buttons,"
    " .social-share, .md-announce, .announcement, .theme-doc-breadcrumbs, .theme-doc-toc-mobile,"
    " .skip-nav, .md-source-file, .newsletter-signup, .cookie-bar, #cookie-bar, #cookie-notice,"
    " #cookieConsent, #cookie-law-info-bar, #CybotCookiebotDialog, #usercentrics-root, .cc-window,"
    " .qc-cmp2-container, .osano-cm-window, .fc-consent-root, .cky-consent-container, .gdpr-banner,"
    " [aria-label=breadcrumb], [aria-label=breadcrumbs], #markdown-toc, .rst-versions,"
    " #titlearea, #main-nav, #nav-path, .navpath, #MSearchSelectWindow, #MSearchResultsWindow,"
    " address.footer, div.header > div.summary, .td-page-meta__lastmod, .td-page-meta,"
    " .feedback--title, .feedback--question, .feedback--response, .side-bar, .source-toolbox,"
    " [class*=language-] > span.lang, .nav-container"
)
# Set beside the text, yet part of it: docutils and many themes use `aside` for these.
_CONTENT_ASIDE = re.compile(
    r"admonition|footnote|callout|\bnote\b|\btip\b|warning|caution|danger|important|\btopic\b"
    r"|example|notice|starlight-aside",
    re.IGNORECASE,
)
_MAIN = "main, [role=main], article"
_LEAST_SHARE = 0.4

_HIDDEN_ATTRIBUTES = "[hidden], [aria-hidden=true], [style], .sr-only, .visually-hidden"
_HIDDEN_STYLE = re.compile(
    r"display:none|visibility:(?:hidden|collapse)|opacity:0(?:\.0+)?(?:;|$|!)"
    r"|text-indent:-\d{3,}|(?:left|top|right):-\d{4,}px|clip:rect\(0|clip-path:inset\((?:50|100)%"
    r"|transform:scale\(0|(?<![-\w])(?:width|height):0(?:px)?;.{0,500}overflow:hidden"
    r"|(?<![-\w])color:transparent"
)
_FONT_SIZE = re.compile(r"font-size:([\d.]+)(px|pt|em|rem|%)?")
_COLOR = re.compile(r"(?<![-\w])color:(#?\w+)")
_BACKGROUND = re.compile(r"background(?:-color)?:(#?\w+)")
_WHITE = frozenset({"white", "#fff", "#ffff", "#ffffff", "#ffffffff"})


def remove_machinery(tree: LexborHTMLParser) -> None:
    """Remove scripts, styles, embedded objects and form controls."""
    tree.strip_tags(_MACHINERY, recursive=True)
    body = tree.body
    if body is None:
        return
    boxes = select(body, "input")
    drop(node for node in boxes if attribute(node, "type").lower() != "checkbox")
    drop(node for node in select(body, "button") if not select(node, "h1, h2, h3, h4, h5, h6"))
    whole = len(body.text())
    drop(form for form in select(body, "form") if len(form.text()) < whole * _LEAST_SHARE)


def remove_hidden(body: LexborNode) -> None:
    """Remove what a browser does not show; text hidden from people may address machines.

    Inactive tab panels and text that search reveals are one click away and stay.
    """
    for node in select(body, "[role=tabpanel][hidden], [hidden=until-found]"):
        del node.attrs["hidden"]
    # Seen by readers, and read out by the box around it instead.
    for title in select(body, ".starlight-aside__title[aria-hidden]"):
        del title.attrs["aria-hidden"]
    drop(node for node in select(body, _HIDDEN_ATTRIBUTES) if _is_hidden(node))


def _is_hidden(node: LexborNode) -> bool:
    if node.tag == "body":
        return False
    attributes = node.attributes
    if "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return True
    classes = (attributes.get("class") or "").split()
    if "sr-only" in classes or "visually-hidden" in classes:
        return True
    style = re.sub(r"\s+", "", (attributes.get("style") or "").lower())
    if not style:
        return False
    return bool(_HIDDEN_STYLE.search(style) or _is_tiny(style) or _is_invisible_ink(node, style))


def _is_tiny(style: str) -> bool:
    size = _FONT_SIZE.search(style)
    if size is None or size.group(1).count(".") > 1 or size.group(1) == ".":
        return False
    smallest = 0.1 if size.group(2) in ("em", "rem") else 1.0
    return float(size.group(1)) <= smallest


def _is_invisible_ink(node: LexborNode, style: str) -> bool:
    """The text has its background's colour, as far as inline styles tell."""
    color = _COLOR.search(style)
    if color is None:
        return False
    background = _BACKGROUND.search(style)
    if background is not None:
        return color.group(1) == background.group(1)
    return color.group(1) in _WHITE and not any(_is_painted(above) for above in ancestors(node))


def _is_painted(node: LexborNode) -> bool:
    return "bgcolor" in node.attributes or "background" in attribute(node, "style").lower()


def remove_chrome(body: LexborNode) -> None:
    """Remove navigation, headers, footers and sidebars, unless they hold the page's title."""
    drop(node for node in select(body, _CHROME) if _is_chrome(node))


def _is_chrome(node: LexborNode) -> bool:
    if node.tag in ("body", "html", "main") or node.css_first("h1, main, [role=main]") is not None:
        return False
    if node.tag == "aside":
        return not _CONTENT_ASIDE.search(attribute(node, "class"))
    is_inside_article = any(above.tag in ("article", "main") for above in ancestors(node))
    # A section's own header carries its heading; a page's header carries the menu.
    return not (node.tag == "header" and is_inside_article and node.css_first("h2, h3, p"))


def main_content(body: LexborNode) -> LexborNode:
    """Return the element that holds the page's text, the body when nothing better is marked.

    A marked element with less than 40% of the body's text is not trusted: it is a teaser, or one
    article of many.
    """
    candidates = [(len(inline_text(node)), node) for node in select(body, _MAIN)]
    if not candidates:
        return body
    longest, best = max(candidates, key=lambda found: found[0])
    if longest < _LEAST_SHARE * len(inline_text(body)):
        return body
    _bring_title(body, best)
    return best


def _bring_title(body: LexborNode, root: LexborNode) -> None:
    """Some layouts put the page's heading above its main element; a reader sees both."""
    titles = select(body, "h1")
    first = root.first_child
    if len(titles) == 1 and root.css_first("h1") is None and first is not None:
        first.insert_before(titles[0], move=True)

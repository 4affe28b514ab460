"""Makes text of what readers see or open, though its element is a control, picture or formula.

What it leaves as a control is removed with the page's machinery.
"""

import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webrag.ingestion.html.tree import (
    BLOCK_TAGS,
    SILENT,
    ancestors,
    attribute,
    drop,
    element,
    holds,
    inline_text,
    is_blank,
    next_element,
    preceding,
    prepend,
    rename,
    select,
    text_length,
    texts_of,
)
from webrag.ingestion.quality import has_sign

_HEADINGS: Final = "h1, h2, h3, h4, h5, h6, dt, th, legend, caption, summary"
_READ_OUT: Final = ".sr-only, .visually-hidden, .screen-reader-text, .u-visually-hidden"
_ICON: Final = "i, svg, img, span:empty, [aria-hidden=true]"
_PICTURE: Final = (
    "img[alt], svg, [role=img][aria-label], i[title], span[title]:empty, i, span:empty"
)
_MOST_LABEL_CHARS: Final = 60
_MOST_EMOJI_CHARS: Final = 12
_MARK_CLASSES: Final = (
    (re.compile(r"(?:^|[\s_-])(?:check(?:mark)?|tick|ok)(?:$|[\s_-])"), "✓"),
    (re.compile(r"(?:^|[\s_-])(?:times|cross|xmark|x-mark|remove)(?:$|[\s_-])"), "✗"),
)
_TABS: Final = (
    "[role=tab], [data-toggle=tab], [data-bs-toggle=tab], [data-toggle=pill],"
    " [data-bs-toggle=pill], :is([data-tab], [data-tabs]) > :is(li, .tabs-title, dd) > a[href^='#']"
)
# Labels and panels of tabs that only their order joins, within the first element.
_TAB_SETS: Final = (
    ("[role=tablist]", "[role=tab]", "[role=tabpanel]"),
    (".tabbed-labels", "label", ".tabbed-block"),
)
_NAMED: Final = ("aria-controls", "data-bs-target", "data-target", "href")
_DISCLOSES: Final = re.compile(r"accordion|faq|question|collaps|disclosure|expander", re.IGNORECASE)
# What a control is called that opens a menu or more of the same.
_GENERIC: Final = re.compile(
    r"\W*(?:(?:main |site )?(?:menu|navigation|toc|contents?)|(?:toggle|open|close|show|hide|expand"
    r"|collapse|view|read|load|see|copy|search|filter|sort|share|edit|skip)\b.*|more|on this page"
    r"|options?|settings|language|theme)\W*",
    re.IGNORECASE,
)
_MOST_LINKED: Final = 0.5
_MOST_FRAMES: Final = 50
_SHADOW: Final = "template[shadowrootmode], template[shadowroot]"
_TEMPLATE_SCRIPTS: Final = (
    'script[type="text/template"], script[type="text/html"], script[type="text/x-template"],'
    ' script[type="text/x-handlebars-template"], script[type="text/x-handlebars"]'
)
_PLACEHOLDER: Final = re.compile(r"\{\{|<%|\$\{|\{%")
_LEAST_PAGE_CHARS: Final = 200
_LEAST_PICTURES: Final = 3  # fewer are the logo of a page that scripts draw
_ASKS_FOR: Final = "[type=email], [type=password], [type=search], [type=tel], textarea"
_PROSE: Final = "p, h1, h2, h3, h4, h5, h6, li, td, dd, blockquote, pre, figcaption"
_LEAST_PROSE_CHARS: Final = 60


def framed(tree: LexborHTMLParser) -> LexborHTMLParser:
    """The page itself, or in place of a frameset a page that links to its frames.

    Browsers show their contents together, which have addresses of their own.
    """
    frames = tree.css("frameset frame[src]")
    if tree.body is not None or not frames:
        return tree
    items = ""
    for frame in frames[:_MOST_FRAMES]:
        src = attribute(frame, "src").strip()
        name = attribute(frame, "title") or attribute(frame, "name") or src
        items += f'<li><a href="{html.escape(src)}">{html.escape(name)}</a></li>'
    head = (tree.html or "").partition("<frameset")[0]
    return LexborHTMLParser(f"{head}<body><ul>{items}</ul></body>")


def unveil(tree: LexborHTMLParser) -> None:
    """Put declared shadow roots, and texts for readers without scripts, where they are shown.

    To be called before hidden text is told from what is shown.
    """
    body = tree.body
    if body is None:
        return
    for template in select(body, _SHADOW):
        _open_shadow(template)
    _unveil_page(body)
    for words in select(body, _READ_OUT):
        cell = next((above for above in ancestors(words) if above.tag in ("td", "th")), None)
        # Such words in place of a picture are what the cell says; beside others they are none.
        if cell is not None and cell.css_first(_ICON) is not None:
            label = inline_text(cell)
            if label == inline_text(words) and len(label) <= _MOST_LABEL_CHARS:
                words.replace_with(element("span", label))
    _unveil_map(body)


def _unveil_map(body: LexborNode) -> None:
    """Of a page without words, the words of pictures that lead on, or of their parts, are said."""
    pictures, areas = select(body, "a[href] img[alt]"), select(body, "area[href]")
    if len(pictures) + len(areas) < _LEAST_PICTURES or any(map(_is_said, texts_of(body))):
        return
    for picture in pictures:
        picture.replace_with(attribute(picture, "alt"))
    for area in areas:
        link = element("a", attribute(area, "alt") or attribute(area, "title"))
        link.attrs["href"] = attribute(area, "href")
        area.replace_with(element("p", link))


def _is_said(text: LexborNode) -> bool:
    return not is_blank(text) and all(up.tag not in SILENT for up in ancestors(text))


def spell_out(body: LexborNode) -> None:
    """Make text of controls that are headings, of tabs' labels, and of pictures that are words.

    To be called after hidden text was removed and before controls are.
    """
    _label_tabs(body)
    for button in select(body, "button"):
        _spell_out_button(body, button)
    _spell_out_pictures(body)
    for ruby in select(body, "ruby"):
        # Readings set above the characters would stand between them.
        for reading in select(ruby, "rt, rp, rtc"):
            reading.decompose()
    for form in select(body, "form"):
        prose = sum(len(inline_text(node)) for node in select(form, _PROSE))
        if form.css_first(_ASKS_FOR) is None and prose >= _LEAST_PROSE_CHARS:
            rename(form, "div")


def _open_shadow(template: LexborNode) -> None:
    """Show a shadow root's text, with the text of its host where the root has a place for it."""
    host = template.parent
    opening = (template.html or "").find(">")
    if host is None or opening < 0:
        return
    inner = (template.html or "")[opening + 1 :].removesuffix("</template>")
    shown = LexborHTMLParser(f"<body>{inner}").body
    if shown is None:
        return
    for node in list(shown.iter(include_text=True)):
        template.insert_before(node)
    template.decompose()
    slots = [slot for slot in select(host, "slot") if inline_text(slot)]
    for slot in slots:
        slot.unwrap()


def _unveil_page(body: LexborNode) -> None:
    """A page that says nothing by itself may say it without scripts, or in a template."""
    said: list[tuple[LexborNode, LexborNode, str]] = []
    for node in (*select(body, "noscript"), *select(body, _TEMPLATE_SCRIPTS)):
        markup = node.text() if node.tag == "script" else node.inner_html or ""
        is_long = len(markup) >= _LEAST_PAGE_CHARS
        held = LexborHTMLParser(f"<body>{markup}").body if is_long else None
        if held is not None and len(text := inline_text(held)) >= _LEAST_PAGE_CHARS:
            said.append((node, held, text))
    spoken = text_length(body) if said else 0
    for node, held, text in said:
        is_order = has_sign("script order", text) or _PLACEHOLDER.search(text)
        if len(text) >= spoken and not is_order:
            for child in list(held.iter(include_text=True)):
                node.insert_before(child)
            node.decompose()


def _label_tabs(body: LexborNode) -> None:
    labelled: dict[int, tuple[LexborNode, LexborNode]] = {}
    labelling = select(body, "[aria-labelledby]")
    for tab in select(body, _TABS):
        panel = _target(body, tab) or _first_with(
            labelling, "aria-labelledby", attribute(tab, "id")
        )
        if panel is not None and not holds(panel, tab) and not holds(tab, panel):
            labelled[tab.mem_id] = (tab, panel)
    for held, label, opened in _TAB_SETS:
        for box in select(body, held):
            labels = select(box, label)
            if labels and labels[0].mem_id not in labelled:
                panels = _as_many(box, opened, len(labels))
                found = zip(labels, panels, strict=False)
                labelled |= {tab.mem_id: (tab, each) for tab, each in found}
    sharing = Counter(panel.mem_id for _, panel in labelled.values())
    for tab, panel in labelled.values():
        if sharing[panel.mem_id] > 1:
            continue  # each shows a part of it
        label = inline_text(tab)
        if label and inline_text(panel) and not inline_text(panel).startswith(label):
            prepend(panel, element("p", element("strong", label)))
        tab.remove()


def _as_many(box: LexborNode, selector: str, count: int) -> Sequence[LexborNode]:
    """The panels of the nearest element around some labels that holds as many."""
    for above in ancestors(box):
        panels = select(above, selector)
        if panels:
            return panels if len(panels) == count else ()
    return ()


def _first_with(nodes: Iterable[LexborNode], name: str, value: str) -> LexborNode | None:
    return next((node for node in nodes if value and attribute(node, name) == value), None)


def _target(body: LexborNode, control: LexborNode) -> LexborNode | None:
    """Find the element a control opens, by its id; never one that the control stands in."""
    for name in _NAMED:
        wanted = attribute(control, name).removeprefix("#").strip()
        found = _first_with(select(body, "[id]"), "id", wanted) if wanted else None
        if found is not None:
            return None if holds(found, control) else found
    return None


def _spell_out_button(body: LexborNode, button: LexborNode) -> None:
    label = inline_text(button)
    if not any(map(str.isalnum, label)):
        return
    heading = next((up for up in ancestors(button) if up.tag in _HEADINGS.split(", ")), None)
    if heading is not None:
        if label == inline_text(heading):
            button.unwrap()
    elif _is_in_sentence(button):
        button.unwrap()
    elif not _GENERIC.fullmatch(label) and _discloses(body, button, label):
        button.insert_before(element("p", element("strong", label)))
        button.decompose()


def _discloses(body: LexborNode, button: LexborNode, label: str) -> bool:
    opened = _target(body, button)
    if opened is None and (
        "aria-expanded" in button.attributes or _DISCLOSES.search(attribute(button, "class"))
    ):
        opened = _following(button)
    if opened is None or opened.tag in ("nav", "dialog") or opened.attrs.sget("role", "") == "menu":
        return False
    text = inline_text(opened)
    linked = sum(len(inline_text(link)) for link in select(opened, "a"))
    return bool(text) and text != label and linked <= _MOST_LINKED * len(text)


def _following(node: LexborNode) -> LexborNode | None:
    """The next element that stands beside a node, or beside the box around it alone."""
    after = next_element(node) or (node.parent and next_element(node.parent))
    is_block = after is not None and (after.tag in BLOCK_TAGS or "-" in (after.tag or ""))
    return after if is_block else None


def _is_in_sentence(node: LexborNode) -> bool:
    around = (node.prev, node.next)
    return all(
        each is not None and each.is_text_node and (each.text_content or "").strip()
        for each in around
    )


def _spell_out_pictures(body: LexborNode) -> None:
    for picture in select(body, "img[alt]"):
        alt = attribute(picture, "alt").strip()
        is_drawn = not alt.isascii() and not any(map(str.isalnum, alt))
        is_emoji = is_drawn and len(alt) <= _MOST_EMOJI_CHARS
        if is_emoji or (0 < len(alt) <= _MOST_LABEL_CHARS and _is_in_sentence(picture)):
            picture.replace_with(alt)
    for picture in select(body, "svg"):
        label = _label_of(picture)
        if label and len(label) <= _MOST_LABEL_CHARS and _is_in_sentence(picture):
            picture.replace_with(label)
    around = {up.mem_id for each in select(body, _PICTURE) for up in ancestors(each)}
    for cell in select(body, "td, th"):
        if cell.mem_id in around and not _shows_text(cell):
            named = (_label_of(each) for each in select(cell, _PICTURE))
            # DocBook draws the title of a note beside it, and calls the picture `[Note]`.
            beside = f"[{inline_text(cell.parent or cell)}]"
            labels = [label for label in named if label and label != beside]
            if labels and sum(map(len, labels)) <= 2 * _MOST_LABEL_CHARS:
                cell.insert_child(element("span", " ".join(labels)))
        elif attribute(cell, "aria-label") and not inline_text(cell):
            cell.insert_child(attribute(cell, "aria-label")[:_MOST_LABEL_CHARS])


def _shows_text(cell: LexborNode) -> bool:
    """Tell a cell with more than the names of its drawings, which are not shown."""
    drawn = sum(len(inline_text(picture)) for picture in select(cell, "svg"))
    return len(inline_text(cell)) > drawn or cell.css_first("pre, math, input") is not None


def _label_of(picture: LexborNode) -> str:
    title = picture.css_first("title") if picture.tag == "svg" else None
    named = (attribute(picture, name).strip() for name in ("alt", "aria-label", "title"))
    label = next((text for text in named if text), "") or (inline_text(title) if title else "")
    if label or picture.tag in ("img", "svg"):
        return label
    classes = attribute(picture, "class").lower()
    return next((mark for pattern, mark in _MARK_CLASSES if pattern.search(classes)), "")


_OPENING: Final = ("aria-controls", "data-target", "data-bs-target", "data-tab", "onclick", "href")
_OPENERS: Final = ", ".join(f"[{name}]" for name in _OPENING[:-1]) + ", [href^='#']"
_CONTROL: Final = (
    "button, summary, label, [role=button], [role=tab], [onclick], a[data-toggle],"
    " a[data-bs-toggle], [aria-controls], [aria-expanded]"
)
_WORD: Final = re.compile(r"[\w-]+")


def opened_by_controls(body: LexborNode) -> set[str]:
    """The identifiers of elements that controls with a label may open."""
    told = [each for each in select(body, _OPENERS) if inline_text(each)]
    said = [(name, attribute(each, name)[:500]) for each in told for name in _OPENING]
    values = [value for name, value in said if name != "href" or value.startswith("#")]
    words = {word for value in values for word in _WORD.findall(value)}
    return (words | {value.removeprefix("#") for value in values}) - {""}


def follows_control(node: LexborNode) -> bool:
    """Tell an element that stands after a labelled control, or after what holds one."""
    before = next((each for each in preceding(node) if each.is_element_node), None)
    if before is None or not inline_text(before):
        return False
    return before.css_first(_CONTROL) is not None  # which may be the element itself


_TEX = ("application/x-tex", "tex", "latex", "application/x-latex")
# After a backslash the last sign is a character.
_WRAPPED = (
    re.compile(r"\A(?P<sign>\$\$|\$)(?P<held>.+)(?<!\\)(?P=sign)", re.DOTALL),
    re.compile(r"\A\{\\displaystyle(?P<held>.*)\}", re.DOTALL),
    re.compile(r"\A\{\\textstyle(?P<held>.*)\}", re.DOTALL),
)
_MAX_NESTING = 60
# By element and number of its parts; the parts come plain first, then grouped.
_FORMS = {
    ("mfrac", 2): "{2}/{3}",
    ("mroot", 2): "{3}√{2}",
    **dict.fromkeys([("msup", 2), ("mover", 2)], "{0}^{3}"),
    **dict.fromkeys([("msub", 2), ("munder", 2)], "{0}_{3}"),
    **dict.fromkeys([("msubsup", 3), ("munderover", 3)], "{0}_{4}^{5}"),
}


def _plain_latex(source: str) -> str:
    """Wikipedia wraps every formula in a style command; others bring their own dollar signs."""
    text = source.strip()
    for wrapped in _WRAPPED:
        found = wrapped.fullmatch(text)
        text = found["held"].strip() if found else text
    return text


def _read(node: LexborNode, depth: int) -> str:
    if node.is_text_node:
        return node.text_content or ""
    if node.tag in ("annotation", "annotation-xml"):
        return ""
    if depth > _MAX_NESTING:
        return node.text()
    # Blank text and comments stand between arguments.
    inner = [child for child in node.iter(include_text=True) if not is_blank(child)]
    parts = [_read(child, depth + 1).strip() for child in inner]
    tag = node.tag or ""
    if form := _FORMS.get((tag, len(parts))):
        return form.format(*parts, *map(_group, parts))
    if tag == "msqrt":
        return f"√{_group(' '.join(parts))}"
    if tag == "mtr":
        return ", ".join(parts) + ";"
    return " ".join(part for part in parts if part)


def _group(text: str) -> str:
    return text if len(text) <= 1 or text.isalnum() else f"({text})"


_PICTURES = "img.math, img.latex, img.tex, img.texImage, img.mwe-math-fallback-image-display"
_DRAWN = (
    ".MathJax_Preview, .MathJax:not(mjx-container), .MathJax_Display,"
    " .MathJax_SVG, .katex-html, mjx-math,"
    " .mwe-math-fallback-image-inline, .mwe-math-fallback-image-display"
)


def unveil_formulas(body: LexborNode) -> None:
    """Replace formulas by their LaTeX between dollar signs where the page has it.

    MathML without it stays as it is, but visible. Must run before hidden elements are removed:
    pages hide the formula and show a picture.
    """
    for script in select(body, 'script[type^="math/tex"]'):
        is_block = "display" in attribute(script, "type")
        _replace(script, script.text_content or script.text(), is_block=is_block)
    for math in select(body, "math"):
        _unveil(math)
    drop(select(body, _DRAWN))
    for picture in select(body, _PICTURES):
        source = attribute(picture, "alt").strip()
        if source:
            _replace(picture, source.strip("$"), is_block=False)


def spell_out_formulas(root: LexborNode) -> None:
    """Replace the MathML that is left by one line: `a/(b + 1)`, `x^2`, `√y`; markdown has none."""
    for math in select(root, "math"):
        math.replace_with(" ".join(_read(math, 0).split()))


def _unveil(math: LexborNode) -> None:
    notes = (each for each in math.css("annotation") if attribute(each, "encoding").lower() in _TEX)
    told = (*(each.text() for each in notes), attribute(math, "alttext"))
    source = next(filter(None, map(_plain_latex, told)), "")
    above = list(ancestors(math))[:4]
    is_block = attribute(math, "display") == "block" or any(
        "katex-display" in attribute(node, "class") for node in above
    )
    for node in above[:2]:
        # Wikipedia hides the MathML and shows an image of it.
        if node.tag in ("span", "div") and "display" in attribute(node, "style"):
            del node.attrs["style"]
    if source:
        _replace(math, source, is_block=is_block)
        return
    for name in math.attributes:
        del math.attrs[name]
    if is_block:
        math.attrs["display"] = "block"


def _replace(node: LexborNode, latex: str, *, is_block: bool) -> None:
    text = " ".join(latex.split())
    node.replace_with(f"$${text}$$" if is_block else f"${text}$")

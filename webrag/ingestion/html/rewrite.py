"""Rewrites what the converter would flatten: definition lists, notes, code, small print."""

import itertools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from selectolax.lexbor import LexborNode, create_tag

from webrag.ingestion.html.layouts import (
    own_cells,
    rewrite_tables,
    shows_something,
    unwrap_table,
)
from webrag.ingestion.html.tree import (
    BLOCK_TAGS,
    CELL_LINE,
    ITEM_NUMBER,
    LINE_NUMBER,
    QUOTE,
    TERM_END,
    TERM_START,
    ancestors,
    attribute,
    drop,
    element,
    inline_text,
    is_blank,
    mark_end,
    mark_start,
    next_element,
    preceding,
    prepend,
    rename,
    replace_with_contents,
    select,
    texts_of,
)

_KINDS = ("note", "tip", "warning", "caution", "important", "danger")
_NAMED_BOXES = [f"div.{name}" for kind in _KINDS for name in (kind, kind.upper())]
_ADMONITIONS = (
    ".alert, .admonition, .admonitionblock, .theme-admonition, .markdown-alert, .callout,"
    f" .custom-block, .starlight-aside, .notecard, .nextra-callout, {', '.join(_NAMED_BOXES)}"
)
# Quotations that are notes: mdBook has the title in one, or names its kind by the class.
_NAMED_QUOTATIONS = 'blockquote[class^="markdown-alert-"]'
_QUOTED_ADMONITIONS = f"blockquote.blockquote-tag, {_NAMED_QUOTATIONS}"
# DocBook and AsciiDoc set the icon beside the text with a table, or the title above it.
_ADMONITION_TABLES = ", ".join(f"{box} > table" for box in (".admonitionblock", *_NAMED_BOXES))
_TABLE_TITLES = "th, td.icon, tr:first-child > td > b:only-child"
_ADMONITION_TITLES = (
    ".admonition-title, .title, .markdown-alert-title, .callout-title, .alert-heading,"
    " .admonition-heading, .custom-block-title, .starlight-aside__title, .blockquote-tag-title,"
    " [class*=admonitionHeading], h2, h3, h4, h5, h6"
)


def rewrite_admonitions(root: LexborNode) -> None:
    """Make a note's title a bold line of the same block as its text, not a heading."""
    for table in reversed(select(root, _ADMONITION_TABLES)):
        if len(select(table, "th")) > 1:
            continue  # of data
        for said in select(table, _TABLE_TITLES):
            text = inline_text(said)
            around = said.parent if said.tag == "b" else None
            if text and (around is None or inline_text(around) == text):
                table.insert_before(_title(text))
                said.decompose()
        drop(cell for cell in own_cells(table) if not inline_text(cell))  # the icon's
        unwrap_table(table)
    for box in select(root, _NAMED_QUOTATIONS):
        kind = attribute(box, "class").removeprefix("markdown-alert-").split()[0]
        prepend(box, _title(kind.capitalize()))
    for box in select(root, f"{_ADMONITIONS}, {_QUOTED_ADMONITIONS}"):
        title = box.css_first(_ADMONITION_TITLES)
        text = inline_text(title) if title is not None else ""
        if title is None or not (0 < len(text) <= 120 and inline_text(box).startswith(text)):
            continue
        following = _first_block_after(title, box)
        line = element("p", element("strong", text))
        line.insert_child(TERM_END)
        title.replace_with(line)
        if following is not None:
            mark_start(following, TERM_START)
    for box in reversed(select(root, _QUOTED_ADMONITIONS)):
        replace_with_contents(box, [box])


def _title(text: str) -> LexborNode:
    title = element("p", text)
    title.attrs["class"] = "admonition-title"
    return title


def _first_block_after(title: LexborNode, box: LexborNode) -> LexborNode | None:
    around = itertools.takewhile(lambda node: node.mem_id != box.mem_id, (title, *ancestors(title)))
    return next(filter(None, map(next_element, around)), None)


_CODE_TAGS = frozenset({"code", "dt", "kbd", "math", "pre", "samp", "tt"})
_SPACED = ("p", "div", "dd", "li", "td", "blockquote")
_PERMALINK_TEXTS = frozenset({"", "¶", "#", "§", "🔗", "⚓", "link", "permalink", "anchor"})
# Lexbor finds nothing two levels below an element that `:is` names.
_OWN_LINKS = ("h1 a", "h2 a", "h3 a", "h4 a", "h5 a", "h6 a", "dt a", "caption a", "a.anchor")
_PERMALINKS = (
    "a.headerlink, a.anchor-link, a.hash-link, a.permalink, a.header-anchor, a.heading-anchor,"
    " a.id_link, a.anchorjs-link, a.heading-link, a.toc-anchor, a.headinglink, a.mark,"
    " a.section-anchor, a.docs-heading-anchor-permalink, .sl-anchor-link, a.octicon-link, "
    + ", ".join(f"{link}[href^='#'], {link}:not([href])" for link in _OWN_LINKS)
)
# Small controls that documentation generators, WordPress and Drupal put into the text.
_CONTROLS = (
    "a.srclink, a.src, a.test-arrow, span.permalink, .hideme, .copybtn, .copy-button, #copy-path,"
    " .scraped-help, #toggle-all-docs, .clipboard-button, clipboard-copy, label.ocn,"
    " a.comment-reply-link, li.comment-reply"
)
_MARKED = "ul > li, dd, h1, h2, h3, h4, h5, h6"
# Of an item of a list, which may also count down below zero.
_NUMBER = re.compile(r"-?\d{1,9}")
_FIGURES = re.compile(r"\d{1,4}[.,:/-]\d")  # a date, a time, an amount
_INLINE_CODE = "code, kbd, samp, tt"
_EMPHASIS = ("em", "i", "strong", "b")
_AROUND_CODE = (*_EMPHASIS, *_INLINE_CODE.split(", "), "pre")
# What a quotation of nothing else only sets in.
_SET_IN = frozenset({"blockquote", "dl", "ol", "pre", "table", "ul"})
_ORDINAL = re.compile(r"(?:st|nd|rd|th|e|er|re|o|a|TM|SM|™|®|\*+|†|‡)\Z")


def remove_controls(root: LexborNode) -> None:
    """Remove permalink marks and the small controls that generators put beside the text.

    Sphinx's `[source]` links stay: they stand in the line of a signature, and a quotation that
    spans one would otherwise not be on the page as quoted.
    """
    links = select(root, _PERMALINKS)
    # Some themes wrap the whole heading in the link; then it is the heading.
    drop(link for link in links if inline_text(link).lower() in _PERMALINK_TEXTS)
    drop(select(root, _CONTROLS))
    # Doxygen ends the row of a member with a link to the section about it.
    drop(link for link in select(root, ".mdescRight > a") if inline_text(link) == "More...")
    # Docutils writes a heading's text and a note's number into such links.
    arrows = select(root, "a.footnote-backref, a.footnote-back, a[role=doc-backlink]")
    drop(arrow for arrow in arrows if not any(map(str.isalnum, arrow.text())))


def rewrite_structure(root: LexborNode) -> None:
    """Rewrite definition lists, notes, code blocks, tables, sub- and superscripts."""
    _part_side_by_side(root)
    _drop_leading_breaks(root)
    _unmark_blank(root)
    _number_items(root)
    _join_callout_lists(root)
    _rewrite_scripts(root)
    _part_emphasis(root)
    _unwrap_empty_emphasis(root)
    rewrite_code(root)
    _trim_code(root)
    _unwrap_summaries(root)
    rewrite_admonitions(root)
    rewrite_tables(root)
    _rewrite_quotations(root)
    _tighten_lists(root)
    _join_definition_lists(root)
    _join_footnotes(root)


def _part_side_by_side(root: LexborNode) -> None:
    """Put a space where only a style sets one: between labels, links and spans of other classes."""
    for label in select(root, "label + label, input + label"):
        label.insert_before(" ")
    for node in select(root, ", ".join(f"{a} + {b}" for a in ("span", "a") for b in ("span", "a"))):
        before = node.prev
        if before is not None and before.is_element_node and _are_apart(before, node):
            node.insert_before(" ")


def _are_apart(before: LexborNode, node: LexborNode) -> bool:
    text = before.text()
    end, start = text[-1:], node.text()[:1]
    is_glued = start.isalnum() and (end.isalnum() or unicodedata.category(end or " ") == "Sc")
    if not is_glued or any(above.tag in _CODE_TAGS for above in ancestors(node)):
        return False
    places = {attribute(each, "href") for each in (before, node)} - {""}
    classes = [{*attribute(each, "class").split()} for each in (before, node)]
    is_classed = all(classes) and classes[0].isdisjoint(classes[1])
    # A word goes on in small letters after a large initial or in another colour, a name in figures.
    goes_on = start.isdigit() or (end.isalpha() and (start.islower() or len(text) == 1))
    is_figure = len(text) > 1 and _FIGURES.match(node.text()) is not None
    return len(places) > 1 or is_figure or (is_classed and not goes_on)


def _drop_leading_breaks(root: LexborNode) -> None:
    """Space above the text of a paragraph or a definition, made of empty lines."""
    for block in select(root, ", ".join(f"{tag}:has(> br)" for tag in _SPACED)):
        for node in list(block.iter(include_text=True)):
            if node.tag != "br" and not is_blank(node):
                break
            node.remove()


def _trim_code(root: LexborNode) -> None:
    """Spaces at the ends of code within a line stand outside it; code of nothing else is none."""
    for node in select(root, _INLINE_CODE):
        if any(above.tag == "pre" for above in ancestors(node)):
            continue
        said = node.text().replace(CELL_LINE, " ")
        if not said.strip():
            node.unwrap()
        if said.strip() in ("", said):
            continue
        for step, strip, put in (
            (1, str.lstrip, node.insert_before),
            (-1, str.rstrip, node.insert_after),
        ):
            texts = [*texts_of(node)][::step]
            blank = list(itertools.takewhile(is_blank, texts))
            outer = texts[len(blank)]
            text = outer.text_content or ""
            if blank or strip(text) != text:
                drop(blank)
                outer.replace_with(strip(text))
                put(" ")


def _rewrite_scripts(root: LexborNode) -> None:
    for node in select(root, "sup, sub"):
        text = inline_text(node)
        before, after = ("^" if node.tag == "sup" else "_"), ""
        if node.tag == "sup" and _is_footnote(node, text):
            before, after = ("", "") if text.startswith(("[", "(")) else ("[", "]")
        elif _reads_plainly(node, text):
            before = ""
        elif len(text) > 1 and not text.isalnum():
            before, after = f"{before}(", ")"
        node.insert_before(before)
        node.insert_after(after)
        node.unwrap()


def _reads_plainly(node: LexborNode, text: str) -> bool:
    """1st, H2O and trade marks need no symbol; powers and indices would change their meaning."""
    if not text or node.css_first("p, div") is not None:
        return True
    return bool(_ORDINAL.match(text)) if node.tag == "sup" else text.isdigit()


def _is_footnote(node: LexborNode, text: str) -> bool:
    if "footnote" in attribute(node, "class"):
        return True
    is_linked = node.css_first("a") is not None or any(up.tag == "a" for up in ancestors(node))
    return is_linked and len(text) <= 6


def _part_emphasis(root: LexborNode) -> None:
    """End emphasis at an empty line, as a paragraph of the text ends there."""
    for node in select(root, ", ".join(f"{tag}:has(> br + br)" for tag in _EMPHASIS)):
        part: LexborNode | None = None
        children = list(node.iter(include_text=True))
        for is_gap, group in itertools.groupby(children, lambda e: e.tag == "br" or is_blank(e)):
            nodes = list(group)
            if is_gap and sum(each.tag == "br" for each in nodes) > 1:
                part = None
                for each in nodes:
                    node.insert_before(each, move=True)
                continue
            if part is None:
                part = node.parser.create_node(node.tag or "b")
                node.insert_before(part, move=True)
            for each in nodes:
                part.insert_child(each, move=True)
        node.decompose()


def _unwrap_empty_emphasis(root: LexborNode) -> None:
    """A lone `*` in italics would come out as a rule; signatures are italic piece by piece."""
    for node in select(root, ", ".join(_EMPHASIS)):
        if not any(char.isalnum() for char in node.text()):
            node.unwrap()
    for signature in select(root, "dt.sig, dt.py"):
        signature.unwrap_tags([*_EMPHASIS])


def _unwrap_summaries(root: LexborNode) -> None:
    """A summary that holds blocks, such as a heading, cannot become one bold line."""
    for summary in reversed(select(root, "summary")):
        if summary.css_first("h1, h2, h3, h4, h5, h6, p, div, section, ul, pre") is not None:
            replace_with_contents(summary, [summary])


def _unmark_blank(root: LexborNode) -> None:
    """Items and headings of nothing but a picture would come out as marks alone.

    Items of numbered lists count.
    """
    unsaid = (node for node in select(root, _MARKED) if not node.text().strip())
    blank = [node for node in unsaid if node.css_first("input, math") is None]
    for heading in (node for node in blank if node.tag not in ("li", "dd")):
        rename(heading, "div")  # which parts what stands beside it
    drop(node for node in blank if node.tag in ("li", "dd"))


def _number_items(root: LexborNode) -> None:
    """The converter counts a list's items from its start, whatever numbers they bear."""
    for items in select(root, "ol[reversed], ol:has(> li[value])"):
        own = [item for item in items.iter(include_text=False) if item.tag == "li"]
        step = -1 if "reversed" in items.attributes else 1
        start = _number(attribute(items, "start"))
        number = start if start is not None else len(own) if step < 0 else 1
        for item in own:
            value = _number(attribute(item, "value"))
            number = number if value is None else value
            mark_start(item, f"{ITEM_NUMBER}{number}{ITEM_NUMBER}")
            number += step


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


def _join_callout_lists(root: LexborNode) -> None:
    """AsciiDoc explains the numbers in a code block with a table of number and text."""
    for table in reversed(select(root, ".colist > table")):
        for cell in select(table, "td:first-child:nth-last-child(2)"):
            mark_end(cell, TERM_END)
        for cell in select(table, "td:nth-child(2):last-child"):
            mark_start(cell, TERM_START)
        unwrap_table(table)


def _rewrite_quotations(root: LexborNode) -> None:
    """Mark quotations; unwrap those that only indent what they hold, as docutils makes them."""
    for quotation in reversed(select(root, "blockquote")):
        inner = list(quotation.iter(include_text=False))
        if len(inner) == 1 and inner[0].tag == "div":
            inner = list(inner[0].iter(include_text=False))
        if inner and all(node.tag in _SET_IN for node in inner):
            replace_with_contents(quotation, [quotation])
        else:
            mark_start(quotation, QUOTE)


def _tighten_lists(root: LexborNode) -> None:
    """Items of one paragraph need no blank lines between them."""
    for paragraph in select(root, "li > p"):
        item = paragraph.parent
        inner = item.iter(include_text=True) if item else ()
        children = [node.tag for node in inner if node.is_element_node or node.text().strip()]
        if children.count("p") == 1 and children[0] == "p" and set(children[1:]) <= {"ul", "ol"}:
            paragraph.unwrap()


def _join_definition_lists(root: LexborNode) -> None:
    """Mark where a term ends and its definition begins, so that they become one paragraph.

    Empty ones, with which man2html sets paragraphs in and apart, are dropped.
    """
    empty = [term for term in select(root, "dt") if not shows_something(term)]
    below = (each for each in map(next_element, empty) if each is not None and each.tag == "dd")
    drop([*empty, *(each for each in below if not shows_something(each))])
    for classifier in select(root, "dt span.classifier"):
        classifier.insert_before(" : ")
    for term in select(root, "dt"):
        mark_end(term, TERM_END)
    for definition in select(root, "dd"):
        mark_start(definition, TERM_START)
    for term in select(root, "dt + dt"):
        mark_start(term, TERM_START)


def _join_footnotes(root: LexborNode) -> None:
    for note in select(root, ".footnote > p, .citation > p, .footnote-definition > p"):
        before = next((each for each in preceding(note) if not is_blank(each)), None)
        if before is not None and before.tag not in BLOCK_TAGS:
            note.insert_before(TERM_END)
            mark_start(note, TERM_START)


_LINE_NUMBERS = (
    ".linenos, .linenodiv, .lineno, .linenumber, .line-numbers-rows, .hljs-ln-numbers, .lnt,"
    " .react-syntax-highlighter-line-number, td.gutter, td.blob-num, .rouge-gutter, pre .ln,"
    " pre .line-number, [class^=codeLineNumber], .ec-line .gutter, .src-line-numbers,"
    " .line-numbers-wrapper, .source_code pre.lines, .listing_lines"
)
_FIRST_CELLS = "pre tr > td:first-child:not(:last-child)"
_LINE_START = re.compile(r"\s*[0-9]{1,7}[\s:.|]*")
# Elements that hold one line of code each, some with a line break after them, some without.
_SECTIONS = frozenset({"article", "body", "html", "main", "section"})
_LINES = (
    "div, p, tr, li, .line, .token-line, .code-line, .view-line, [data-line],"
    " [style*='display:block'], [style*='display: block']"
)
_AS_WRITTEN = re.compile(r"white-space\s*:\s*(?:pre|break-spaces)", re.IGNORECASE)
_LANGUAGE_CLASS = re.compile(
    r"(?:^|\s)(?:language-|lang-|highlight-source-|highlight-text-|highlight-|brush:\s*|sourceCode\s+)"
    r"(\w[\w+#.-]*)"
)
_NOT_LANGUAGES = frozenset(
    {"default", "none", "text", "plain", "plaintext", "txt", "notranslate", "highlight", "wrap"}
)
_LANGUAGES = frozenset(
    """ada asm awk bash batch c c++ clojure cmake cobol console cpp cs csharp css cuda cypher d dart
    diff docker dockerfile elixir elm erlang fish fortran fsharp go golang graphql groovy
    haskell hcl html http ini java javascript js json json5 jsonc jsx julia kotlin latex less
    lisp lua make makefile markdown matlab md mermaid nginx nim nix objc objectivec ocaml
    pascal perl php plpgsql postgres powershell properties proto protobuf ps1 py python
    python3 r rb ruby rs rust sass scala scheme scss sh shell solidity sql swift tcl terraform
    tex toml ts tsx typescript vb vim vue wasm xml yaml yml zig zsh""".split()  # noqa: SIM905
)


def rewrite_code(root: LexborNode) -> None:
    """Give every `<pre>` plain text and the class the converter reads a fence's language from."""
    numbers = select(root, _LINE_NUMBERS)
    known = {number.mem_id for number in numbers}
    cells = (cell for cell in select(root, _FIRST_CELLS) if cell.mem_id not in known)
    numbers += [cell for cell in cells if _LINE_START.fullmatch(cell.text())]
    _mark_numbered_lines(numbers)
    drop(numbers)
    _make_pres(root)
    # mdBook wraps runnable examples in a second <pre>, which would become a fence in a fence; Rouge
    # sets the table of its numbers and lines into the code; marks of emphasis would undo the fence
    for outer in reversed(select(root, ", ".join(f"{tag}:has(pre)" for tag in _AROUND_CODE))):
        outer.unwrap()
    held = Counter(up.mem_id for pre in root.parser.css("pre") for up in ancestors(pre))
    for pre in select(root, "pre"):
        language = _language_of(pre, held)
        _break_lines(pre)
        target = pre.css_first("code") or pre
        if language:
            target.attrs["class"] = f"language-{language}"
        elif "class" in target.attrs:
            del target.attrs["class"]


def _make_pres(root: LexborNode) -> None:
    """Code of several lines stands in a `<pre>`, however the page keeps its lines apart."""
    for node in select(root, "code:has(br), samp:has(br), [style*=white-space]"):
        if any(above.tag == "pre" for above in (node, *ancestors(node))):
            continue
        is_as_written = bool(_AS_WRITTEN.search(attribute(node, "style")))
        text = node.text() or ""
        if node.tag not in ("code", "samp"):
            if is_as_written and "\n" in text.strip() and node.css_first("p, pre, table") is None:
                _break_as_written(node)
        elif (is_as_written and "\n" in text.strip()) or (
            node.css_first("br") is not None
            and inline_text(node.parent or node) == inline_text(node)
        ):
            pre = node.parser.create_node("pre")
            node.insert_before(pre, move=True)
            pre.insert_child(node, move=True)


def _break_as_written(node: LexborNode) -> None:
    for text in [*texts_of(node)]:
        lines = (text.text_content or "").split("\n")
        for line in lines[:-1]:
            text.insert_before(line)
            text.insert_before(create_tag("br"))
        text.replace_with(lines[-1])


def _mark_numbered_lines(numbers: Iterable[LexborNode]) -> None:
    """Remember where a number stands between lines: what spans it is not on the page in one piece.

    Numbers in a column of their own leave the lines together.
    """
    found: defaultdict[int, list[LexborNode]] = defaultdict(list)
    for number in numbers:
        around = next((node for node in ancestors(number) if node.tag == "pre"), None)
        if around is not None and _LINE_START.fullmatch(number.text()):
            found[around.mem_id].append(number)
    for inside in found.values():
        for number in inside[1:]:
            number.insert_before(LINE_NUMBER)


def _break_lines(pre: LexborNode) -> None:
    for rest in select(pre, "br"):
        rest.replace_with("\n")
    codes = [node for node in pre.iter(include_text=False) if node.tag == "code"]
    lines = select(pre, _LINES) or (codes if len(codes) > 1 else [])
    if lines:
        for line in lines[:-1]:
            if not line.text().endswith("\n") and not _opens_line(line.next):
                line.insert_after("\n")
        pre.unwrap_tags(["div", "p", "tr", "td", "tbody", "table", "li", "ol", "ul"])
        if len(codes) > 1:
            pre.unwrap_tags(["code"])


def _opens_line(node: LexborNode | None) -> bool:
    return node is None or (node.is_text_node and (node.text_content or "").startswith("\n"))


def _language_of(pre: LexborNode, held: Mapping[int, int]) -> str | None:
    code = pre.css_first("code")
    around = itertools.takewhile(lambda node: held[node.mem_id] == 1, ancestors(pre))
    # Line numbers put the code into a table, which puts the class some levels up.
    boxes = itertools.islice((node for node in around if node.tag not in _SECTIONS), 8)
    nodes = [node for node in (code, pre, *boxes) if node is not None]
    names = (name for name in _languages_said(nodes) if name and name not in _NOT_LANGUAGES)
    return next(names, None)


def _languages_said(nodes: Sequence[LexborNode]) -> Iterator[str]:
    """The languages that elements around code name, the surest first, in lower case."""
    for node in nodes:
        for name in ("data-lang", "data-language"):
            yield attribute(node, name).strip().lower()
        classes = attribute(node, "class")
        if "rust" in classes.split():
            yield "rust"
        named = (found[1].lower() for found in _LANGUAGE_CLASS.finditer(classes))
        yield from (name for name in named if not name.startswith("source"))
        language = attribute(node, "lang").strip().lower()
        if language in _LANGUAGES and node.tag in ("pre", "code"):
            yield language
    # Highlighters also write the bare name: `hljs python`, `highlight ruby`, `sourceCode c`.
    for node in nodes:
        if node.tag in ("pre", "code", "figure", "div"):
            yield from filter(_LANGUAGES.__contains__, attribute(node, "class").lower().split())

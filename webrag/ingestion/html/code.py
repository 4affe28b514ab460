"""Makes code blocks plain: one line per line, no line numbers, the language named."""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable

from selectolax.lexbor import LexborNode, create_tag

from webrag.ingestion.html.tree import (
    LINE_NUMBER,
    ancestors,
    attribute,
    drop,
    inline_text,
    select,
)

_LINE_NUMBERS = (
    ".linenos, .linenodiv, .lineno, .linenumber, .line-numbers-rows, .hljs-ln-numbers, .lnt,"
    " .react-syntax-highlighter-line-number, td.gutter, td.blob-num, .rouge-gutter, pre .ln,"
    " pre .line-number, [class^=codeLineNumber], .ec-line .gutter, .src-line-numbers,"
    " .line-numbers-wrapper"
)
_FIRST_CELLS = "pre tr > td:first-child:not(:last-child)"
_NUMBER = re.compile(r"\s*[0-9]{1,7}[\s:.|]*")
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
    numbers += [cell for cell in cells if _NUMBER.fullmatch(cell.text())]
    _mark_numbered_lines(numbers)
    drop(numbers)
    _make_pres(root)
    # mdBook wraps runnable examples in a second <pre>, which would become a fence in a fence.
    for outer in select(root, "pre:has(pre)"):
        outer.unwrap()
    # Rouge sets the table of its numbers and lines into the code.
    for around in reversed(select(root, "code")):
        if around.css_first("pre") is not None:
            around.unwrap()
    for pre in select(root, "pre"):
        language = _language_of(pre)
        _break_lines(pre)
        code = pre.css_first("code")
        target = code if code is not None else pre
        if language:
            target.attrs["class"] = f"language-{language}"
        elif "class" in target.attrs:
            del target.attrs["class"]


def _make_pres(root: LexborNode) -> None:
    """Code of several lines stands in a `<pre>`, however the page keeps its lines apart."""
    for node in select(root, "code, samp, [style*=white-space]"):
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
    for text in [each for each in node.traverse(include_text=True) if each.is_text_node]:
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
        if around is not None and _NUMBER.fullmatch(number.text()):
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


def _language_of(pre: LexborNode) -> str | None:
    code = pre.css_first("code")
    around = itertools.takewhile(lambda node: len(node.css("pre")) == 1, ancestors(pre))
    # Line numbers put the code into a table, which puts the class some levels up.
    boxes = itertools.islice((node for node in around if node.tag not in _SECTIONS), 8)
    nodes = [node for node in (code, pre, *boxes) if node is not None]
    for node in nodes:
        for name in ("data-lang", "data-language", "class", "lang"):
            found = _language_in(attribute(node, name), is_class=name == "class")
            if found and (name != "lang" or (found in _LANGUAGES and node.tag in ("pre", "code"))):
                return found
    return _named_by_itself(nodes)


def _language_in(value: str, *, is_class: bool) -> str | None:
    if not is_class:
        name = value.strip().lower()
        return name if name and name not in _NOT_LANGUAGES else None
    if "rust" in value.split():
        return "rust"
    for match in _LANGUAGE_CLASS.finditer(value):
        name = match.group(1).lower()
        if name not in _NOT_LANGUAGES and not name.startswith("source"):
            return name
    return None


def _named_by_itself(nodes: list[LexborNode]) -> str | None:
    """Highlighters also write the bare name: `hljs python`, `highlight ruby`, `sourceCode c`."""
    for node in nodes:
        if node.tag in ("pre", "code", "figure", "div"):
            for name in attribute(node, "class").lower().split():
                if name in _LANGUAGES:
                    return name
    return None

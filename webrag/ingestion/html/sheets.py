"""Reads the simple rules of a page's style sheets and matches them; it decides nothing."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from webrag.ingestion.html.tree import ancestors, attribute

# Of all sheets of a page; the longest beyond are left aside, so that they hide no short one.
_MOST_CHARS: Final = 1_000_000
_MOST_SELECTOR_CHARS: Final = 200
_MOST_COMBINATORS: Final = 4
# Elements looked at for all rules of a page together: about a third of a second.
_MOST_STEPS: Final = 5_000_000
_ASIDE: Final = re.compile(
    r"/\*.*?(?:\*/|\Z)|<!--|-->|\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?|url\([^)\"']*+\)?",
    re.DOTALL,
)
# A block without others inside it; else the beginning or end of a block, or a statement.
_PIECE: Final = re.compile(r"([^{};]*+)(?:\{([^{}]*+)\}|([{};]|\Z))")
_PASSED: Final = re.compile(r"\s*@(?:media|supports(?!\s+not\b)|container)\b", re.IGNORECASE)
# Queries that do not hold on an ordinary screen 1,280 pixels wide.
_ELSEWHERE: Final = re.compile(
    r"(?<!not )\b(?:print|speech)\b|not (?:screen|all)\b|:\s{0,5}dark|reduced-\w{1,20}:\s{0,5}red"
    r"|(?:max-[a-z-]{0,20}width\s{0,5}:|width\s{0,5}<=?)\s{0,5}"
    r"(?:\d{1,3}|1[01]\d\d|12[0-7]\d)(?:\.\d{1,9})?px|max-width\s{0,5}:\s{0,5}\d{1,2}(?:\.\d{1,9})?r?em"
    r"|min-[a-z-]{0,20}width\s{0,5}:\s{0,5}(?:1[3-9]|[2-9]\d)\d\dpx",
    re.IGNORECASE,
)
# States that last as long as a pointer or a key is held, and boxes that are not elements.
_FLEETING: Final = re.compile(
    r"::|:(?:hover|active|focus|visited|before|after|first-l|-)|\([^()]*\("
)
_STATE: Final = re.compile(
    r":(?:checked|target|popover-open|open)(?![\w-])|\[(?:open|aria-|hidden|data-state)"
)
_FUNCTION: Final = re.compile(r":[\w-]{1,40}+\([^()]*+\)|\[[^\[\]]*+\]")
_NAME: Final = re.compile(r"[.#]-?[A-Za-z_][\w-]*")
_SIMPLE: Final = re.compile(r"[.:\[][^.:#\[]+")
_TYPE: Final = re.compile(r"(?<![\w.#:\[=\"'-])[A-Za-z][\w-]*")
_COMBINATOR: Final = re.compile(r"\s*[>+~]\s*|\s+")


@dataclass(slots=True, eq=False)
class Rule:
    """A selector with the block of its declarations, and its place among all rules."""

    selector: str
    block: str
    order: int


def read_rules(tree: LexborHTMLParser) -> tuple[list[Rule], bool]:
    """Read every `<style>` that is for a screen.

    Returns:
        The rules, those of short sheets first, and whether no sheet was left aside.
    """
    rules: list[Rule] = []
    size = 0
    for text in sorted(_texts(tree), key=len):
        size += len(text)
        if size > _MOST_CHARS:
            return rules, False
        for selector, block in _read(text):
            rules.append(Rule(selector, block, len(rules)))
    return rules, True


def _texts(tree: LexborHTMLParser) -> Iterator[str]:
    for node in tree.css("style"):
        is_css = attribute(node, "type").strip().lower() in ("", "text/css")
        is_elsewhere = any(above.tag in ("noscript", "template") for above in ancestors(node))
        if is_css and not is_elsewhere and not _ELSEWHERE.search(attribute(node, "media")):
            yield without_strings(node.text())


def without_strings(styles: str) -> str:
    """Styles without comments and addresses, and without braces and semicolons in strings."""
    return _ASIDE.sub(_blanked, styles)


def _blanked(match: re.Match[str]) -> str:
    text = match.group()
    if text[0] in "\"'":
        return re.sub(r"[{};]", " ", text)
    return "url()" if text[0] == "u" else ""


@lru_cache(maxsize=8)  # a site's pages share their sheets
def _read(sheet: str) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    around: list[bool] = []
    for piece in _PIECE.finditer(sheet):
        prelude, block, sign = piece.groups()
        if sign == "{":
            around.append(bool(_PASSED.match(prelude)) and not _ELSEWHERE.search(prelude))
        elif sign == "}" and around:
            around.pop()
        elif block and ":" in block and "@" not in prelude and all(around):
            found += [(selector, block) for selector in _alternatives(prelude)]
    return tuple(found)


def _alternatives(selectors: str) -> Iterator[str]:
    """The selectors between the commas of a list, but those inside of brackets."""
    if "(" not in selectors and "[" not in selectors:
        short = (each.strip() for each in selectors.split(",") if len(each) <= _MOST_SELECTOR_CHARS)
        yield from filter(None, short)
        return
    depth, begun = 0, ""
    for part in selectors.split(","):
        begun += "," * bool(begun) + part
        depth += part.count("(") - part.count(")") + part.count("[") - part.count("]")
        if depth <= 0:
            if begun.strip() and len(begun) <= _MOST_SELECTOR_CHARS:
                yield begun.strip()
            depth, begun = 0, ""


@lru_cache(maxsize=10_000)
def specificity(selector: str) -> tuple[int, int, int]:
    """Identifiers, classes and types, as CSS counts them; of functions what they hold."""
    text = re.sub(r":(?:is|not|has)\(", " ", re.sub(r":where\([^()]*\)", "", selector))
    return text.count("#"), len(_SIMPLE.findall(text)), len(_TYPE.findall(text))


@lru_cache(maxsize=10_000)
def last_name(selector: str) -> str:
    """The first name in the last part of a selector: a class, an identifier, a type or `*`."""
    last = _COMBINATOR.split(_FUNCTION.sub("", selector).strip())[-1]
    found = _NAME.findall(last) or _TYPE.findall(last.partition(":")[0])
    return found[0] if found else "*"


class Matcher:
    """Finds the elements that rules mean, as far as a bounded effort allows."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._tree = tree
        self._steps = 0

    @cached_property
    def _worn(self) -> set[str]:
        """The classes (".name") and identifiers ("#name") of all elements."""
        classes = {
            each for node in self._tree.css("[class]") for each in attribute(node, "class").split()
        }
        return {"#" + attribute(node, "id") for node in self._tree.css("[id]")} | {
            "." + name for name in classes
        }

    @cached_property
    def _count(self) -> int:
        return len(self._tree.css("*"))

    def is_later(self, selector: str, *, has_scripts: bool) -> bool:
        """Tell a selector of what a click, or a class that a script sets, changes."""
        if _FLEETING.search(selector):
            return False
        if _STATE.search(selector):
            return True
        names = _NAME.findall(_FUNCTION.sub("", selector))
        return has_scripts and not all(name in self._worn for name in names)

    def matching(self, selector: str) -> list[LexborNode]:
        """The elements a selector means as the page stands; none where it is left aside."""
        plain = _FUNCTION.sub("", selector)
        if not all(name in self._worn for name in _NAME.findall(plain)):
            return []
        if _FLEETING.search(selector) or len(_COMBINATOR.findall(plain)) > _MOST_COMBINATORS:
            return []
        # Counting siblings, and looking below each element, takes quadratic time.
        is_slow = "~" in selector or ":nth" in selector or ":has" in selector
        self._steps += self._count * (self._count // 4 + 1 if is_slow else 1) + 500
        try:
            found = self._tree.css(selector) if self._steps <= _MOST_STEPS else []
        except SelectolaxError:
            return []  # a browser leaves out a rule that it cannot read
        self._steps += 20 * len(found)
        return found

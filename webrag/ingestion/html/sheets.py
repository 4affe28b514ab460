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
    r"|\.(?:is-)?(?:active|current|expanded|open|selected|show|shown|visible)(?![\w-])"
)
# What a page bears until its scripts run.
_PASSING: Final = re.compile(
    r"[.\[](?:no-?_?js|js-disabled|(?:v-|ng-|x-|un-|data-)?cloak|async-hide|wf-loading|preload"
    r"|(?:no-)?fouc|unresolved)(?![\w-])"
)
_FUNCTION: Final = re.compile(r":[\w-]{1,40}+\([^()]*+\)|\[[^\[\]]*+\]")
_NAME: Final = re.compile(r"[.#]-?[A-Za-z_][\w-]*")
_SIMPLE: Final = re.compile(r"[.:\[][^.:#\[]+")
_TYPE: Final = re.compile(r"(?<![\w.#:\[=\"'-])[A-Za-z][\w-]*")
_COMBINATOR: Final = re.compile(r"\s*[>+~]\s*|\s+")
_COMMA: Final = re.compile(r",(?![^(]*\)|[^\[]*\])")


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """Selectors with the block of their declarations, and the rule's place among all."""

    selectors: str
    block: str
    order: int


class Sheets:
    """The rules of every `<style>` that is for a screen, those of short sheets first.

    Attributes:
        rules: All of them.
        is_all: No sheet was left aside or imports another.
    """

    def __init__(self, tree: LexborHTMLParser, *, has_scripts: bool) -> None:
        self._tree, self._has_scripts = tree, has_scripts
        self._count = len(tree.css("*"))
        self._steps = size = 0
        self.is_all = True
        self.rules: list[Rule] = []
        for text in sorted(_texts(tree), key=len):
            size += len(text)
            self.is_all &= size <= _MOST_CHARS and "@import" not in text
            for prelude, block in _read(text) if size <= _MOST_CHARS else ():
                self.rules.append(Rule(prelude, block, len(self.rules)))

    def meant(self, rule: Rule) -> Iterator[tuple[tuple[int, ...], LexborNode]]:
        """The elements that a rule means as the page stands, each with the rule's weight."""
        for selector in _alternatives(rule.selectors):
            for node in self._matching(selector):
                yield (0, *_specificity(selector), rule.order), node

    def later(self, rule: Rule) -> Iterator[str]:
        """The last names of selectors that mean what a click, or a class of a script, changes."""
        for selector in _alternatives(rule.selectors):
            plain = _FUNCTION.sub("", selector)
            is_new = self._has_scripts and not self._worn.issuperset(_NAME.findall(plain))
            if (is_new or _STATE.search(selector)) and not _FLEETING.search(selector):
                last = _COMBINATOR.split(plain.strip())[-1]
                lasting = _STATE.sub("", last).partition(":")[0]
                names = (*_NAME.findall(lasting), *_TYPE.findall(lasting), *_NAME.findall(last))
                yield (*names, "*")[0]

    @cached_property
    def _worn(self) -> set[str]:
        """The classes (".name") and identifiers ("#name") of all elements."""
        nodes = self._tree.css("[class], [id]")
        classes = {name for node in nodes for name in attribute(node, "class").split()}
        ids = {attribute(node, "id") for node in nodes}
        return {f".{name}" for name in classes} | {f"#{name}" for name in ids}

    def _matching(self, selector: str) -> list[LexborNode]:
        plain = _FUNCTION.sub("", selector)
        is_worn = self._worn.issuperset(_NAME.findall(plain))
        if not is_worn or _FLEETING.search(selector):
            return []
        is_passing = self._has_scripts and _PASSING.search(selector)
        if is_passing or len(_COMBINATOR.findall(plain)) > _MOST_COMBINATORS:
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


def without_strings(styles: str) -> str:
    """Styles without comments and addresses, and without braces and semicolons in strings."""
    return _ASIDE.sub(_blanked, styles)


def _blanked(match: re.Match[str]) -> str:
    text = match.group()
    if text[0] in "\"'":
        return re.sub(r"[{};]", " ", text)
    return "url()" if text[0] == "u" else ""


def _texts(tree: LexborHTMLParser) -> Iterator[str]:
    for node in tree.css("style"):
        is_css = attribute(node, "type").strip().lower() in ("", "text/css")
        is_elsewhere = any(above.tag in ("noscript", "template") for above in ancestors(node))
        if is_css and not is_elsewhere and not _ELSEWHERE.search(attribute(node, "media")):
            yield without_strings(node.text())


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
            found.append((prelude, block))
    return tuple(found)


def _alternatives(selectors: str) -> Iterator[str]:
    """The selectors between the commas of a list, but those inside of brackets."""
    parts = (part.strip() for part in _COMMA.split(selectors))
    yield from (part for part in parts if 0 < len(part) <= _MOST_SELECTOR_CHARS)


@lru_cache(maxsize=10_000)
def _specificity(selector: str) -> tuple[int, int, int]:
    """Identifiers, classes and types, as CSS counts them; of functions what they hold."""
    text = re.sub(r":(?:is|not|has)\(", " ", re.sub(r":where\([^()]*\)", "", selector))
    return text.count("#"), len(_SIMPLE.findall(text)), len(_TYPE.findall(text))

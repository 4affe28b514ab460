"""Reads the style sheets inside a page as rules; it knows no elements and decides nothing."""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import tinycss2
from selectolax.lexbor import LexborHTMLParser

from webrag.ingestion.html.css.selectors import Selector, read_selectors
from webrag.ingestion.html.css.values import VIEWPORT, Length, Units, length_of, parts
from webrag.ingestion.html.tree import ancestors, attribute

Tokens = Sequence[Any]

# A megabyte takes the parser about two seconds; pictures and fonts written into it do not count.
MAX_SHEET_CHARS: Final = 1_000_000
_MOST_DEPTH: Final = 40
_MOST_NESTED_SELECTORS: Final = 2_000
_DATA: Final = re.compile(r"url\(\s*([\"']?)data:(?!text/css)[^\"')]*+\1\s*\)", re.IGNORECASE)
_IMPORTED: Final = re.compile(r"\s*data:text/css([^,]{0,100}),(.*)", re.IGNORECASE | re.DOTALL)
_QUOTED_WORD: Final = re.compile(r"[\"'`]\.?([A-Za-z][\w-]{0,60})[\"'`]")
_RELEVANT: Final = frozenset(
    """display visibility content-visibility opacity filter -webkit-filter font font-size zoom
    scale translate rotate transform -webkit-transform position left right top bottom inset
    inset-inline inset-block inset-inline-start inset-inline-end inset-block-start inset-block-end
    margin margin-left margin-top margin-inline margin-inline-start margin-block
    margin-block-start padding padding-left padding-top padding-bottom padding-inline
    padding-inline-start padding-block padding-block-start padding-block-end text-indent clip
    clip-path -webkit-clip-path width height max-width max-height min-width min-height
    inline-size block-size max-inline-size max-block-size line-height overflow overflow-x
    overflow-y overflow-inline overflow-block color -webkit-text-fill-color background
    background-color background-image background-clip -webkit-background-clip text-shadow
    -webkit-text-stroke mask mask-image -webkit-mask -webkit-mask-image animation animation-name
    animation-fill-mode animation-iteration-count transition transition-property will-change
    color-scheme""".split()  # noqa: SIM905
)
# A site's pages share their sheets; the kept rules of one take at most about twice its length.
_MOST_KEPT_CHARS: Final = 200_000
_CLASS_IN_SHEET: Final = re.compile(r"\.(-?[A-Za-z_][\w-]{0,60})")
_IMPORT: Final = re.compile(r"@import\s++(?:url\(\s*+)?+[\"']?+(?!data:)[^\s\"')]", re.IGNORECASE)
_SCRIPTS: Final = (
    "script[src], script:not([type]), script[type=''], script[type=module],"
    " script[type*=javascript], body[onload]"
)
# What a page bears until its scripts run.
_PASSING: Final = frozenset(
    """no-js nojs no_js js-disabled v-cloak ng-cloak x-cloak un-cloak data-cloak cloak async-hide
    wf-loading preload fouc no-fouc unresolved""".split()  # noqa: SIM905
)
_PASSED: Final = frozenset({"supports", "layer", "container", "media", "scope"})


@dataclass(frozen=True, slots=True)
class Declaration:
    """One property set to a value."""

    name: str
    value: Tokens
    important: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """Declarations for the elements that selectors mean.

    Attributes:
        layered: In a cascade layer, so that rules outside of all layers win.
        order: Its place among all rules of the page.
    """

    selectors: list[Selector]
    declarations: list[Declaration]
    layered: bool
    order: int


@dataclass(slots=True)
class Sheets:
    """What all style sheets of a page say.

    Attributes:
        rules: Those of the shortest sheet first.
        keyframes: By name, what an animation ends with.
        has_scripts: Whether something on the page may change it.
        is_complete: Nothing else has a say in how it looks: no sheet or script from elsewhere, and
            no rule that was left aside.
    """

    rules: list[Rule] = field(default_factory=list)
    keyframes: dict[str, list[Declaration]] = field(default_factory=dict)
    has_scripts: bool = False
    is_complete: bool = True


def read_sheets(tree: LexborHTMLParser) -> Sheets:
    """Read every `<style>` and every sheet that lies in a `data:` address, for a screen.

    What is longer or nested deeper than any page needs is left aside, the longest sheets first.
    """
    found = [_DATA.sub("url(x)", text) for text in _texts(tree)]
    shortened = _followed(found)
    has_scripts = tree.css_first(_SCRIPTS) is not None
    states = _state_classes(tree, shortened) if shortened else frozenset()
    read = _read_kept if sum(map(len, shortened)) <= _MOST_KEPT_CHARS else _read
    said = read(shortened, states, _PASSING if has_scripts else frozenset())
    is_complete = said.is_complete and len(shortened) == len(found)
    is_complete = is_complete and not any(map(_IMPORT.search, shortened))
    is_complete = is_complete and not _is_styled_elsewhere(tree)
    return Sheets(said.rules, said.keyframes, has_scripts, is_complete)


def _followed(texts: Sequence[str]) -> tuple[str, ...]:
    """As many sheets as can be read in a bounded time, so that a long one hides no short one."""
    shortest = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    sizes = accumulate(len(texts[at]) for at in shortest)
    kept = (at for at, size in zip(shortest, sizes, strict=True) if size <= MAX_SHEET_CHARS)
    return tuple(texts[at] for at in sorted(kept))


def _read(texts: tuple[str, ...], states: frozenset[str], passing: frozenset[str]) -> Sheets:
    reader = _Reader(states, passing)
    by_sheet: list[list[Rule]] = []
    for text in texts:
        first = len(reader.sheets.rules)
        reader.read_sheet(text)
        by_sheet.append(reader.sheets.rules[first:])
    shortest = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    reader.sheets.rules = [rule for at in shortest for rule in by_sheet[at]]
    return reader.sheets


_read_kept = lru_cache(maxsize=8)(_read)


def _state_classes(tree: LexborHTMLParser, texts: Sequence[str]) -> frozenset[str]:
    """Classes in the sheets that scripts set: they name them, or no element has them at rest."""
    words = _script_words(tree)
    loads_scripts = tree.css_first("script[src]") is not None
    if not words and not loads_scripts:
        return frozenset()
    classes = {name for text in texts for name in _CLASS_IN_SHEET.findall(text)}
    found = {"", *(classes & words)}  # "" as scripts change attributes as well
    if loads_scripts:
        nodes = tree.css("[class]")
        found |= classes.difference(*(attribute(node, "class").split() for node in nodes))
    return frozenset(found)


def _is_styled_elsewhere(tree: LexborHTMLParser) -> bool:
    found = tree.css("link[rel~=stylesheet][href], link[as=style][href], script[src]")
    return any(not attribute(node, "href").lstrip().lower().startswith("data:") for node in found)


def declarations_of(style: str) -> list[Declaration]:
    """The declarations of a `style` attribute that can hide text."""
    tokens = tinycss2.parse_blocks_contents(style, skip_comments=True, skip_whitespace=True)
    return _declarations(tokens)


def _texts(tree: LexborHTMLParser) -> Iterator[str]:
    for node in tree.css("style, link[rel~=stylesheet][href]"):
        outside = any(above.tag in ("noscript", "template") for above in ancestors(node))
        if outside or not _is_for_screen(attribute(node, "media")):
            continue
        if node.tag == "link":
            sheet = _imported(attribute(node, "href"))
            yield from [sheet] if sheet else []
        elif attribute(node, "type").strip().lower() in ("", "text/css"):
            yield node.text()


def _script_words(tree: LexborHTMLParser) -> frozenset[str]:
    """Words that scripts of the page quote: among them the classes they set."""
    scripts = (node.text()[:200_000] for node in tree.css("script:not([src])")[:50])
    words: set[str] = set()
    for script in scripts:
        words.update(_QUOTED_WORD.findall(script))
    words.update(word for node in _handlers(tree) for word in _QUOTED_WORD.findall(node))
    return frozenset(words)


def _handlers(tree: LexborHTMLParser) -> Iterator[str]:
    for node in tree.css("[onclick], [onchange], [ontoggle]")[:500]:
        yield from (attribute(node, name)[:1_000] for name in ("onclick", "onchange", "ontoggle"))


def _imported(address: str) -> str:
    match = _IMPORTED.match(address)
    if match is None:
        return ""
    body = unquote_to_bytes(match.group(2))
    if match.group(1).lower().endswith("base64"):
        try:
            body = base64.b64decode(body)
        except binascii.Error:
            return ""
    return body.decode("utf-8", "replace")


class _Reader:
    def __init__(self, state_classes: frozenset[str], passing: frozenset[str]) -> None:
        self.sheets = Sheets()
        self._state_classes = state_classes
        self._passing = passing
        self._nested = 0

    def read_sheet(self, text: str, *, depth: int = 0) -> None:
        """Take the rules of a sheet but those nested too deep."""
        nodes = tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True)
        followed = [node for node in nodes if not _is_deep(node)]
        self.sheets.is_complete &= len(followed) == len(nodes)
        self._read(followed, depth=depth)

    def _read(
        self, nodes: Tokens, around: Tokens = (), *, layered: bool = False, depth: int
    ) -> None:
        """Take the rules among `nodes`; `around` is the selector they are nested in."""
        if depth > _MOST_DEPTH:
            self.sheets.is_complete = False
            return
        if around:
            self._add(around, nodes, layered=layered)
        for node in nodes:
            if node.type == "qualified-rule":
                prelude = self._inside(node.prelude, around) if around else node.prelude
                if prelude:
                    self._read(_contents(node.content), prelude, layered=layered, depth=depth + 1)
            elif node.type == "at-rule":
                self._at_rule(node, around, layered=layered, depth=depth)

    def _at_rule(self, node: Any, around: Tokens, *, layered: bool, depth: int) -> None:
        name = node.lower_at_keyword
        if name == "import":
            addresses = [part for part in _opened(node.prelude) if part.type in ("url", "string")]
            if addresses and depth < 3 and _is_for_screen(_media_of_import(node.prelude)):
                self.read_sheet(_imported(addresses[0].value), depth=depth + 1)
        elif node.content is None:
            return
        elif name.endswith("keyframes"):
            self._keyframes(node)
        elif name in _PASSED and _applies(name, node.prelude):
            inner = _contents(node.content)
            outer = _scope(node.prelude) if name == "scope" and not around else around
            self._read(inner, outer, layered=layered or name == "layer", depth=depth + 1)

    def _keyframes(self, node: Any) -> None:
        names = [part.value for part in parts(node.prelude) if part.type in ("ident", "string")]
        for frame in _contents(node.content):
            if frame.type == "qualified-rule" and names:
                shown = tinycss2.serialize(frame.prelude).lower()
                if "to" in shown or "100%" in shown:
                    found = _declarations(_contents(frame.content))
                    self.sheets.keyframes[names[0]] = found

    def _add(self, prelude: Tokens, inner: Tokens, *, layered: bool) -> None:
        declarations = _declarations(inner)
        if declarations:
            selectors = read_selectors(prelude, self._state_classes, self._passing)
            if selectors:
                order = len(self.sheets.rules)
                self.sheets.rules.append(Rule(selectors, declarations, layered, order))

    def _inside(self, prelude: Tokens, around: Tokens) -> Tokens:
        """The selectors of a nested rule, each with each of those around it; none of too many."""
        inner, outers = _alternatives(prelude), _alternatives(around)
        if self._nested + len(inner) * len(outers) > _MOST_NESTED_SELECTORS:
            self.sheets.is_complete = False
            return ()
        self._nested += len(inner) * len(outers)
        made: list[Any] = []
        comma, blank = tinycss2.parse_component_value_list(", ")
        for own in inner:
            for outer in outers:
                joined: list[Any] = []
                for token in own:
                    joined += outer if token == "&" else [token]  # noqa: S105
                made += [*([comma] if made else [])]
                made += joined if "&" in own else [*outer, blank, *own]
        return made


def _alternatives(prelude: Tokens) -> list[list[Any]]:
    found: list[list[Any]] = [[]]
    for token in prelude:
        if token.type == "literal" and token.value == ",":
            found.append([])
        elif token.type != "whitespace" or found[-1]:
            found[-1].append(token)
    for tokens in found:
        while tokens and tokens[-1].type == "whitespace":
            tokens.pop()
    return [tokens for tokens in found if tokens]


def _contents(tokens: Tokens) -> list[Any]:
    found: list[Any] = tinycss2.parse_blocks_contents(
        tokens, skip_comments=True, skip_whitespace=True
    )
    return found


def _declarations(nodes: Tokens) -> list[Declaration]:
    return [
        Declaration(
            node.name if node.name.startswith("--") else node.lower_name,
            node.value,
            node.important,
        )
        for node in nodes
        if node.type == "declaration"
        and (node.lower_name in _RELEVANT or node.name.startswith("--"))
    ]


def _is_deep(rule: Any) -> bool:
    """Without recursion, which such input would exhaust."""
    waiting = [(rule, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > _MOST_DEPTH:
            return True
        for name in ("prelude", "content", "arguments"):
            inner = getattr(node, name, None)
            if inner:
                waiting += [(each, depth + 1) for each in inner if hasattr(each, "type")]
    return False


def _scope(prelude: Tokens) -> Tokens:
    blocks = [part for part in prelude if part.type == "() block"]
    return blocks[0].content if blocks else ()


def _opened(prelude: Tokens) -> list[Any]:
    """With what stands in `url("...")`, which is read as a function."""
    found: list[Any] = []
    for part in parts(prelude):
        is_address = part.type == "function" and part.lower_name == "url"
        found += part.arguments if is_address else [part]
    return found


def _media_of_import(prelude: Tokens) -> str:
    rest = [part for part in prelude if part.type not in ("url", "string", "function")]
    return str(tinycss2.serialize(rest)).strip()


def _applies(name: str, prelude: Tokens) -> bool:
    if name == "supports":
        found = parts(prelude)
        return not found or getattr(found[0], "lower_value", "") != "not"
    return name != "media" or _holds(prelude)


def _is_for_screen(media: str) -> bool:
    return _holds(tinycss2.parse_component_value_list(media[:1_000]))


def _holds(query: Tokens) -> bool:
    """Whether one of the media queries holds on an ordinary screen, as far as that can be told."""
    alternatives = _alternatives(query)
    return not alternatives or any(map(_query_holds, alternatives))


def _query_holds(query: Tokens) -> bool:
    found = parts(query)
    words = [part.lower_value for part in found if part.type == "ident"]
    kinds = [word for word in words if word not in ("and", "or", "not", "only")]
    blocks = [part.content for part in found if part.type == "() block"]
    features = map(_feature_holds, blocks)
    told = any(features) if "or" in words else all(features)
    holds = all(kind in ("screen", "all") for kind in kinds) and told
    return not holds if words[:1] == ["not"] else holds


def _feature_holds(content: Tokens) -> bool:
    found = parts(content)
    names = [part.lower_value for part in found if part.type == "ident"]
    if found and (found[0].type == "() block" or names[:1] == ["not"]):
        return _query_holds(content)
    if names and names[0].startswith("prefers-"):
        return names[-1] in ("light", "no-preference")
    lengths = [length for part in found if (length := length_of(part, Units())) is not None]
    if not names or not lengths:
        return names[:1] not in (["print"], ["scripting"]) or "enabled" in names
    return _size_holds(names[0], found, lengths)


def _size_holds(name: str, found: Tokens, lengths: Sequence[Length]) -> bool:
    side = VIEWPORT[1] if "height" in name else VIEWPORT[0]
    if name.startswith("min-"):
        return side >= lengths[0].px
    if name.startswith("max-"):
        return side <= lengths[0].px
    signs = [part.value for part in found if part.type == "literal" and part.value in "<>"]
    if not signs:
        return True
    # `width < 600px`, `600px > width` and `400px <= width <= 900px`.
    is_first = getattr(found[0], "lower_value", "") == name
    first = (signs[0] == "<") == is_first
    holds = side <= lengths[0].px if first else side >= lengths[0].px
    if len(lengths) > 1:
        holds = holds and (side <= lengths[1].px if signs[-1] == "<" else side >= lengths[1].px)
    return holds

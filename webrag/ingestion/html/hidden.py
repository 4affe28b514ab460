"""Removes text that a browser does not show, as far as the page's own styles say simply.

What they leave open counts as shown, and so do text one click away and text that the page holds
back only until its scripts have run: losing what a page says is worse than keeping what it hides.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from operator import itemgetter
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError
from tinycss2.color5 import parse_color

from webrag.ingestion.html.controls import follows_control, opened_by_controls
from webrag.ingestion.html.tree import ancestors, attribute, drop, text_length

# Of all sheets of a page; the longest beyond are left aside, so that they hide no short one.
_MOST_CHARS: Final = 1_000_000
_MOST_SELECTOR_CHARS: Final = 200
_MOST_COMBINATORS: Final = 4
# Elements looked at for all rules of a page together: about a third of a second.
_MOST_STEPS: Final = 5_000_000
_ASIDE: Final = re.compile(
    r"/\*.*?(?:\*/|\Z)|<!--|-->|(\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?)|(url\()[^)\"']*+",
    re.DOTALL,
)
# A block without others inside it; else the beginning or end of a block, or a statement.
_PIECE: Final = re.compile(r"([^{};]*+)(?:\{([^{}]*+)\}|([{};]|\Z))")
# A comma between selectors, but not one of those that a function holds.
_COMMA: Final = re.compile(r",(?![^()]{0,200}\))")
_PASSED: Final = re.compile(r"\s*@(?:media|supports(?!\s+not\b)|container)\b", re.IGNORECASE)
# Queries that do not hold on an ordinary screen 1,280 pixels wide.
_ELSEWHERE: Final = re.compile(
    r"(?<!not )\b(?:print|speech)\b|not (?:screen|all)\b|:\s{0,5}dark|reduced-\w{1,20}:\s{0,5}red"
    r"|(?:max-[a-z-]{0,20}width\s{0,5}:|width\s{0,5}<=?)\s{0,5}"
    r"(?:\d{1,3}|1[01]\d\d|12[0-7]\d)(?:\.\d{1,9})?px|max-width\s{0,5}:\s{0,5}\d{1,2}(?:\.\d{1,9})?r?em"
    r"|min-[a-z-]{0,20}width\s{0,5}:\s{0,5}(?:1[3-9]|[2-9]\d)\d\dpx",
    re.IGNORECASE,
)
_SHEETS: Final = "style:is(:not([type]), [type=''], [type='text/css' i]):not(noscript *)"
_SCRIPTS: Final = (
    "body[onload], script:is([src], :not([type]), [type=''], [type=module], [type*=javascript])"
)
_OTHER_STYLES: Final = (
    "link[rel~=stylesheet], link[as=style], script[src], meta[name=color-scheme][content*=dark]"
)
_OTHER_COLORS: Final = re.compile(r"@import|color-scheme\s{0,5}:[^;}]{0,40}dark")
# Boxes that are no elements, and states that pass: of a pointer, a key, a page that is loading.
_FLEETING: Final = re.compile(
    r"::|:(?:hover|active|focus|visited|before|after|first-l|-)|\([^()]*\("
    r"|[.\[](?:no-?_?js|js-disabled|[a-z-]{0,9}cloak|async-hide|preload|unresolved)(?![\w-])"
)
_STATE: Final = re.compile(
    r":(?:checked|target|popover-open|open)(?![\w-])|\[(?:open|aria-|hidden|data-state)"
)
_FUNCTION: Final = re.compile(r":[\w-]{1,40}+\([^()]*+\)|\[[^\[\]]*+\]")
_NAME: Final = re.compile(r"[.#]-?[A-Za-z_][\w-]*")
_TYPE: Final = re.compile(r"(?<![\w.#:\[=\"'-])[A-Za-z][\w-]*")
_COMBINATOR: Final = re.compile(r"\s*[>+~]\s*|\s+")
# By the number of values that a shorthand gives, the place of each side's value.
_PLACES: Final = {1: (0, 0, 0, 0), 2: (0, 1, 0, 1), 3: (0, 1, 2, 1)}
_UNITS: Final = {"em": 16.0, "rem": 16.0, "pt": 1.33, "vw": 12.8, "vh": 8.0, "ch": 8.0}
_NUMBER: Final = r"(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})"
_LENGTH: Final = re.compile(rf"([-+]?{_NUMBER}(?:e[-+]?\d{{1,3}})?)([a-z]{{0,5}}|%)")
_FONT_SIZE: Final = re.compile(rf"(?:^|\s)({_NUMBER}(?:[a-z]{{1,5}}|%)|0)(?=[\s/]|$)")
_ESCAPE: Final = re.compile(r"\\([\da-f]{1,6})\s?|\\", re.IGNORECASE)
_BOX: Final = ("height", "max-height", "width", "max-width")
_SIDES: Final = ("top", "right", "bottom", "left")
# By property, the values that leave nothing of an element to be seen.
_VALUES: Final = {
    "display": re.compile("none"),
    "content-visibility": re.compile("hidden"),
    "visibility": re.compile("hidden|collapse"),
    "clip": re.compile(r"rect\((?:[01](?:px)?[\s,]{0,9}){4}\)"),
}
# By property, the length or number below which nothing is seen, and what one per cent counts.
_LEAST: Final[Mapping[str, tuple[float, float]]] = {
    "opacity": (0.1, 0.01),
    **dict.fromkeys(_BOX, (5.0, 10.0)),
    **dict.fromkeys((*_SIDES, "margin-left", "margin-top"), (-999.0, 10.0)),
    "font-size": (2.01, 0.16),
    "text-indent": (-99.0, 1.0),
}
_LEAST_CONTRAST: Final = 0.06  # of one channel: white on almost white
# These hide the element's own text; an element inside may be seen.
_INHERITED: Final = frozenset({"visibility", "font-size", "text-indent", "color"})
_PAINT: Final = ("color", "background-color", "background-image")
_WHITE: Final = (1.0, 1.0, 1.0, 1.0)
# What gives a box room that has none by itself.
_ROOMS: Final = {
    "height": ("min-height", "padding-top", "padding-bottom"),
    "width": ("min-width", "padding-left", "padding-right"),
}
# What a block holds that may hide something, so that most blocks need not be read.
_SUSPECT: Final = re.compile(
    r"(?<![-\w])(?:display\s{0,5}:\s{0,5}none|opacity\s{0,5}:\s{0,5}(?:[0.]|\d%)"
    r"|color\s{0,5}:\s{0,5}(?:transparent|rgb|hsl|#[\da-f]{3,7}0\b)"
    r"|(?:max-)?(?:height|width)\s{0,5}:\s{0,5}[0-4]?(?:\.\d{1,9})?(?:px|r?em|pt)?\s{0,5}(?:[;!]|$)"
    r"|font(?:-size)?\s{0,5}:[^;]{0,80}?(?<![\d.])(?:[012](?:\.\d{1,9})?|\.\d{1,9})(?:px|pt|r?em|%|v|[\s/;!]|$))"
    r"|visibility\s{0,5}:\s{0,5}[hc]|fill-color|\brect\(|-\s{0,5}(?:\d{3}|\d{2}r?em)|\\|/\*"
    r"|:\s{0,5}(?:\d{4}|[2-9]\d\d(?:%|v|r?em))",
    re.IGNORECASE,
)
# Selectors of one rule, and a site's pages, share their blocks.
_is_suspect: Final = lru_cache(maxsize=20_000)(_SUSPECT.search)
# What a control of the page may lift, and what a rule names that does.
_COLLAPSED: Final = frozenset({"display", "visibility", "opacity", *_BOX})
_LIFTING: Final = re.compile(r"display|visibility|opacity|height|width")
# What scripts animate elements by.
_FADING: Final = frozenset({"transition", "will-change", "transform", "translate"})
_FADING_MARK: Final = re.compile(
    r"(?:^|[\s_-])(?:aos|wow|fade|reveal|appear|animate|scroll)"
    r"|data-(?:aos|sal|sr|wow|scroll|anim|reveal|framer|w-id)",
    re.IGNORECASE,
)
_GUARDED_SHARE: Final = 0.5
_KEPT: Final = frozenset({"html", "body", "head"})

_Color = tuple[float, ...]  # red, green, blue and opacity, each [0, 1]
_Hidden = list[tuple["_Rule | int", list[LexborNode]]]


class _Rule(NamedTuple):
    """A selector with the block of its declarations, and its place among all rules."""

    selector: str
    block: str
    order: int


class _Style(NamedTuple):
    """Longhand properties with the values that count, rules that give them, and which hide."""

    values: Mapping[str, str]
    rules: Mapping[str, _Rule | None]
    hiding: list[str]


class _Sheets:
    """The rules of a page's `<style>` elements that are for a screen, and what these mean.

    Attributes:
        rules: Those of short sheets first.
        standing: The rules of whose names none is yet to be set.
        are_complete: Nothing else says which colours the page has.
        have_scripts: Scripts of the page may change what a rule means.
    """

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._tree = tree
        self._steps = 0
        self._meant: dict[int, dict[int, LexborNode]] = {}
        self._applied: dict[str, list[tuple[_Rule, dict[int, LexborNode]]]] = {}
        sheets = (
            node for node in tree.css(_SHEETS) if not _ELSEWHERE.search(attribute(node, "media"))
        )
        texts = sorted((_without_strings(node.text()) for node in sheets), key=len)
        sizes = accumulate(map(len, texts))
        read = [text for text, size in zip(texts, sizes, strict=True) if size <= _MOST_CHARS]
        pairs = chain.from_iterable(map(_read, read))
        self.rules = [_Rule(*pair, order) for order, pair in enumerate(pairs)]
        self.standing = [rule for rule in self.rules if self._is_worn(rule)]
        self._by_last_name = _indexed(self.standing)
        self._count = len(tree.css("*")) if self.rules else 0
        self.have_scripts = tree.css_first(_SCRIPTS) is not None
        is_styled_elsewhere = tree.css_first(_OTHER_STYLES) or any(map(_OTHER_COLORS.search, texts))
        self.are_complete = not is_styled_elsewhere and len(read) == len(texts)

    def meant_by(self, rule: _Rule) -> dict[int, LexborNode]:
        """The elements a rule means as the page stands, as far as a bounded effort allows."""
        if rule.order not in self._meant:
            self._meant[rule.order] = {node.mem_id: node for node in self._match(rule)}
        return self._meant[rule.order]

    def _match(self, rule: _Rule) -> list[LexborNode]:
        selector = rule.selector
        if (
            _FLEETING.search(selector)
            or len(_COMBINATOR.findall(_plain(selector))) > _MOST_COMBINATORS
        ):
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

    def _is_worn(self, rule: _Rule) -> bool:
        return self._worn.issuperset(_NAME.findall(_plain(rule.selector)))

    @cached_property
    def _worn(self) -> set[str]:
        """The classes (".name") and identifiers ("#name") of all elements."""
        classes = " ".join(attribute(node, "class") for node in self._tree.css("[class]"))
        names = {"." + name for name in set(classes.split())}
        return names | {"#" + attribute(node, "id") for node in self._tree.css("[id]")}

    def style(self, node: LexborNode) -> _Style:
        """The values that count for an element, of those that it declares or rules give it."""
        meant = tuple(
            rule
            for name in _names_of(node)
            for rule, nodes in self._ending_in(name)
            if node.mem_id in nodes
        )
        said = node.attributes
        hints = f"background-color:{said.get('bgcolor') or ''};color:{said.get('color') or ''}"
        hints += ";background-image:url" * bool(said.get("background"))
        return _cascade(meant, hints, said.get("style") or "")

    def _ending_in(self, name: str) -> list[tuple[_Rule, dict[int, LexborNode]]]:
        """The rules with a name at the end of their selectors, and the elements they mean."""
        if name not in self._applied:
            pairs = ((rule, self.meant_by(rule)) for rule in self._by_last_name.get(name, ()))
            self._applied[name] = [(rule, nodes) for rule, nodes in pairs if nodes]
        return self._applied[name]

    def later_values(self, node: LexborNode) -> Iterator[dict[str, str]]:
        """Give what rules say of an element in a state, or with a class scripts may give it."""
        for name in _names_of(node):
            for rule in self._later_by_last_name.get(name, ()):
                yield {each: value for each, value, _ in _declarations(rule.block)}

    @cached_property
    def _later_by_last_name(self) -> Mapping[str, list[_Rule]]:
        return _indexed(
            rule
            for rule in self.rules
            if _LIFTING.search(rule.block) and not _FLEETING.search(rule.selector)
            if _STATE.search(rule.selector) or (self.have_scripts and not self._is_worn(rule))
        )


def _indexed(rules: Iterable[_Rule]) -> Mapping[str, list[_Rule]]:
    """Rules by the first name in the last part of their selectors."""
    found: defaultdict[str, list[_Rule]] = defaultdict(list)
    for rule in rules:
        found[_last_name(rule.selector)].append(rule)
    return found


@lru_cache(maxsize=10_000)
def _last_name(selector: str) -> str:
    """A class, an identifier, a type or `*`."""
    last = _COMBINATOR.split(_plain(selector))[-1]
    found = _NAME.findall(last) or _TYPE.findall(last.partition(":")[0].lower())
    return found[0] if found else "*"


@lru_cache(maxsize=10_000)
def _plain(selector: str) -> str:
    """A selector without attributes and functions."""
    return _FUNCTION.sub("", selector).strip()


def _names_of(node: LexborNode) -> list[str]:
    """The names that the last part of a selector may call an element by."""
    said = node.attributes
    classes = (f".{name}" for name in (said.get("class") or "").split())
    return [node.tag or "", f"#{said.get('id')}", "*", *classes]


def _without_strings(styles: str) -> str:
    """Styles without comments and addresses, and without braces and semicolons in strings."""
    return _ASIDE.sub(lambda found: found[2] or re.sub(r"[{};]", " ", found[1] or ""), styles)


@lru_cache(maxsize=8)  # a site's pages share their sheets
def _read(sheet: str) -> tuple[tuple[str, str], ...]:
    """Each selector of a sheet with its block, without what is not for this screen."""
    found: list[tuple[str, str]] = []
    around: list[bool] = []
    for piece in _PIECE.finditer(sheet):
        prelude, block, sign = piece.groups()
        if sign == "{":
            around.append(bool(_PASSED.match(prelude)) and not _ELSEWHERE.search(prelude))
        elif sign == "}" and around:
            around.pop()
        elif block and ":" in block and "@" not in prelude and all(around):
            parts = _COMMA.split(prelude) if "(" in prelude else prelude.split(",")
            whole = (each.strip() for each in parts if each.count("(") == each.count(")"))
            found += [(each, block) for each in whole if len(each) <= _MOST_SELECTOR_CHARS]
    return tuple(found)


@lru_cache(maxsize=4_096)  # most elements share their rules with others
def _cascade(rules: tuple[_Rule, ...], hints: str, style: str) -> _Style:
    """The values that count, of rules, of old attributes and of an element's own style."""
    weighed: list[tuple[tuple[int, ...], str, str, _Rule | None]] = []
    for rule in rules:
        weight = (0, *_specificity(rule.selector), rule.order)
        said = _declarations(rule.block)
        weighed += [((important, *weight), name, value, rule) for name, value, important in said]
    for text, rank in ((hints, -1), (style, 1)):
        said = _declarations(text)
        weighed += [((important, rank), name, value, None) for name, value, important in said]
    weighed.sort(key=itemgetter(0))  # of equals the last counts
    values = {name: value for _, name, value, _ in weighed}
    return _Style(values, {name: rule for _, name, _, rule in weighed}, _hiding(values))


@lru_cache(maxsize=10_000)
def _specificity(selector: str) -> tuple[int, int, int]:
    """Identifiers, classes and types, as CSS counts them; of functions what they hold."""
    plain = re.sub(r":(?:is|not|has)\b|:where\([^()]*\)", "", selector)
    return plain.count("#"), sum(map(plain.count, ".[:")), len(_TYPE.findall(plain))


@lru_cache(maxsize=4_096)
def _declarations(block: str) -> tuple[tuple[str, str, bool], ...]:
    """The longhand properties of a block, their values in lower case, and which are important."""
    block = _without_strings(block[:20_000])
    block = _ESCAPE.sub(lambda each: chr(int(each[1] or "20", 16) % 0x110000), block)
    found: list[tuple[str, str, bool]] = []
    for part in block.lower().split(";"):
        name, _, said = part.partition(":")
        value, important, _ = said.partition("!")
        short = name.strip().removeprefix("-webkit-").removeprefix("text-fill-")
        longhands = _longhands(short, value.strip())
        found += [(each, one, bool(important)) for each, one in longhands if one]
    return tuple(found)


def _longhands(name: str, value: str) -> Iterator[tuple[str, str]]:
    words = value.split()
    if name in ("inset", "margin", "padding") and words:
        for side, place in zip(_SIDES, _PLACES.get(len(words), range(4)), strict=True):
            yield f"{name}-{side}".removeprefix("inset-"), words[place]
    elif name == "font":
        yield from (("font-size", size) for size in _FONT_SIZE.findall(value)[:1])
    elif name == "background":
        named = next((word for word in (*words, value) if _color_of(word)), "")
        yield "background-color", named or ("var()" if "var(" in value else "transparent")
        yield "background-image", "url" if "url(" in value or "gradient" in value else "none"
        yield from [("background-clip", "text")] * ("text" in words)
    else:
        yield name, value


@lru_cache(maxsize=4_096)
def _color_of(value: str) -> _Color | None:
    """The colour a value names; None when it names none, or one that depends on the reader."""
    try:
        parsed = parse_color(value)
        channels = () if parsed is None or isinstance(parsed, str) else parsed.to("srgb")
    except (ValueError, TypeError, NotImplementedError):
        return None
    return tuple(float(each or 0) for each in channels) or None


def _pixels(value: str, percent: float = 10.0) -> float:
    """A length in pixels, or a number; not a number for others. One per cent counts as given."""
    match = _LENGTH.fullmatch(value)
    if match is None:
        return math.nan
    return float(match[1]) * (percent if match[2] == "%" else _UNITS.get(match[2], 1.0))


def remove_unseen(tree: LexborHTMLParser) -> None:
    """Remove elements and loose text that styles hide; call it before anything else is removed.

    What hides most of a page that something else may show is a guard until it is complete.
    """
    if tree.body is None:
        return
    sheets = _Sheets(tree)
    hidden = _Page(tree.body, sheets).hidden()
    if hidden and (sheets.have_scripts or not sheets.are_complete):
        most = text_length(tree.body) * _GUARDED_SHARE
        lengths: Counter[_Rule | int] = Counter()
        for cause, nodes in hidden:
            lengths[cause] += sum(len(node.text()) for node in nodes)
        hidden = [(cause, nodes) for cause, nodes in hidden if lengths[cause] <= most]
    drop({node.mem_id: node for _, nodes in hidden for node in nodes}.values())


class _Page:
    """The elements of a page, with what is known of their styles."""

    def __init__(self, body: LexborNode, sheets: _Sheets) -> None:
        self._body, self._sheets = body, sheets

    def hidden(self) -> _Hidden:
        """Elements and texts that are unseen and do not come in, with what hides them."""
        found: _Hidden = []
        for node in self._suspects():
            style = self._sheets.style(node)
            forms = style.hiding or ["color"] * self._is_lost(node, style.values)
            if forms and node.tag not in _KEPT and not self._comes(node, style, forms[0]):
                nodes = list(self._texts(node, forms[0])) if forms[0] in _INHERITED else [node]
                found.append((style.rules[forms[0]] or node.mem_id, nodes))
        return found

    def _suspects(self) -> Iterable[LexborNode]:
        """The elements that something may hide."""
        # Colours of rules are only known where nothing else has a say.
        paints = ("color", "background") if self._sheets.are_complete else ()
        found: dict[int, LexborNode] = {}
        for rule in self._sheets.standing:
            if _is_suspect(rule.block) or any(paint in rule.block for paint in paints):
                found |= self._sheets.meant_by(rule)
        for node in self._body.css("[style], font[color]"):
            style = attribute(node, "style")
            if not style or _SUSPECT.search(style) or "color" in style:
                found[node.mem_id] = node
        return found.values()

    def _texts(self, node: LexborNode, form: str) -> Iterator[LexborNode]:
        """The texts that a value of an inherited property reaches."""
        ends = _PAINT if form == "color" else (form,)
        ink = _color_of(self._sheets.style(node).values.get("color", "")) or _WHITE
        # Sheets from elsewhere may give elements inside a size or colour.
        is_known = self._sheets.are_complete or form in ("visibility", "text-indent")
        waiting = [node]
        while waiting:
            for child in waiting.pop().iter(include_text=True):
                if child.is_text_node:
                    yield child
                elif child.is_element_node and (is_known or ink[3] < _LEAST["opacity"][0]):
                    is_ended = not self._sheets.style(child).values.keys().isdisjoint(ends)
                    waiting += [] if is_ended else [child]

    def _comes(self, node: LexborNode, style: _Style, form: str) -> bool:
        """Tell an element that a click or a script of the page brings in."""
        if form not in _COLLAPSED:
            return False
        if form == "opacity":
            marks = f"{attribute(node, 'class')} {' '.join(node.attributes)}"
            is_fading = _FADING_MARK.search(marks) or not _FADING.isdisjoint(style.values)
            if "animation" in style.values or (self._sheets.have_scripts and is_fading):
                return True
        is_named = attribute(node, "role") == "tabpanel" or attribute(node, "id") in self._opened
        if style.rules[form] is None:
            return self._sheets.have_scripts and is_named
        later = (not _hiding({**style.values, **said}) for said in self._sheets.later_values(node))
        return is_named or follows_control(node) or any(later)

    @cached_property
    def _opened(self) -> set[str]:
        return opened_by_controls(self._body)

    def _is_lost(self, node: LexborNode, values: Mapping[str, str]) -> bool:
        """Tell text without a colour, or in that of what is behind it."""
        ink = _color_of(values.get("color", ""))
        shadows = {values.get(name, "none") for name in ("text-shadow", "text-stroke")}
        if ink is None or values.get("background-clip") == "text" or shadows != {"none"}:
            return False
        ground = ink if ink[3] < _LEAST["opacity"][0] else self._ground(node)
        pairs = zip(ink[:3], ground or (), strict=False)
        return ground is not None and all(
            ink[3] * abs(mine - theirs) <= _LEAST_CONTRAST for mine, theirs in pairs
        )

    def _ground(self, node: LexborNode) -> _Color | None:
        """The colour behind an element; None when it is a picture, or not known."""
        for each in (node, *ancestors(node)):
            values = self._sheets.style(each).values
            if values.get("background-image", "none") != "none":
                return None
            value = values.get("background-color", "transparent")
            if value != "transparent":
                color = _color_of(value)
                return color if color and color[3] >= 1 else None
            # Over a picture or another box, or painted by a sheet from elsewhere.
            if values.get("position", "static") != "static" or not self._sheets.are_complete:
                return None
        return _WHITE


def _hiding(values: Mapping[str, str]) -> list[str]:
    """Name the properties that hide an element, those first that hide it with all it holds."""
    forms = [form for form, pattern in _VALUES.items() if pattern.fullmatch(values.get(form, ""))]
    forms += [form for form in _LEAST if form in values and _is_too_little(form, values)]
    return sorted(forms, key=_INHERITED.__contains__)


def _is_too_little(form: str, values: Mapping[str, str]) -> bool:
    """Tell a length or number that hides an element, if its other values let it."""
    least, percent = _LEAST[form]
    size = _pixels(values[form], percent)
    if form in _SIDES:
        is_beside = form in ("left", "right") and size > -2 * least
        return (size < least or is_beside) and values.get("position") != "static"
    if form in _BOX:
        cuts = " ".join(values.get(each, "") for each in ("overflow", "overflow-x", "overflow-y"))
        rooms = (_pixels(values.get(each, "")) for each in _ROOMS[form.removeprefix("max-")])
        is_open = {"hidden", "clip", "scroll", "auto"}.isdisjoint(cuts.split())
        return size < least and not is_open and not any(room >= least for room in rooms)
    # A strip as wide as the window has as much padding.
    padding = _pixels(values.get(form.replace("margin", "padding"), ""))
    return size < least and not (form.startswith("margin") and padding >= -least)

"""Removes text that a browser does not show, as far as the page's own styles say simply.

What they leave open counts as shown, and so do text one click away and text that the page holds
back only until its scripts have run: losing what a page says is worse than keeping what it hides.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError
from tinycss2.color5 import parse_color

from webrag.ingestion.html.controls import follows_control, opened_by_controls
from webrag.ingestion.html.tree import ancestors, attribute, drop, text_length

# Of all sheets of a page; the longest beyond are left aside, so that they hide no short one.
_MOST_CHARS: Final = 1_000_000
_MOST_SELECTOR_CHARS: Final = 200
# Elements looked at for all rules of a page together: about a third of a second.
_MOST_STEPS: Final = 5_000_000
_ASIDE: Final = re.compile(
    # Without a group at the start of any branch, where one can begin is found far faster.
    r"(?s)/\*.*?(?:\*/|\Z)|<!--|-->"
    r"|\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?|url\([^)\"']*+"
)
# A block without others inside it; else the beginning or end of a block, or a statement.
_PIECE: Final = re.compile(r"([^{};]*+)(?:\{([^{}]*+)(?:\}|\Z)|([{};]|\Z))")
# A comma between selectors, but not one of those that a function or an attribute holds.
_COMMA: Final = re.compile(r",(?![^()]{0,200}+\))(?![^\[\]]{0,200}+\])")
# Blocks whose rules count in a way that is not read, or not always.
_UNREAD: Final = re.compile(r"\s*(?:[^@\s]|@(?:layer|scope|supports)\b)", re.IGNORECASE)
# Parts of queries that plainly hold for a mouse and a light screen 1,280 pixels wide.
_HOLDING: Final = re.compile(
    r"(?:@media|@container)?(?:(?:only)?(?:screen|all)|not(?:print|speech)"
    r"|(?:min-(?:device-)?width:|width>=?)(?:0|(?:\d{1,3}|1[01]\d\d|12[0-7]\d)(?:\.\d{1,9})?px"
    r"|1280px|[0-7]?\d(?:\.\d{1,9})?r?em|80r?em)|(?:any-)?(?:hover(?::hover)?|pointer(?::fine)?)"
    r"|(?:max-(?:device-)?width:|width<=?)(?:(?:12[89]|1[3-9]\d|[2-9]\d\d)\d|\d{5})(?:\.\d{1,9})?px"
    r"|prefers-(?:color-scheme:light|\S*no-preference)|orientation:landscape)?|@supports(?!not).*"
)
_SHEETS: Final = "style:is(:not([type]), [type=''], [type='text/css' i]):not(noscript *)"
_SCRIPTS: Final = (
    "body[onload], script:is([src], :not([type]), [type=''], [type=module], [type*=javascript])"
)
_OTHER_STYLES: Final = (
    "link[rel~=stylesheet], link[as=style], script[src], meta[name=color-scheme][content*=dark]"
)
_OTHER_COLORS: Final = re.compile(r"@import|color-scheme\s{0,5}:[^;}]{0,40}dark")
# Boxes that are no elements and states that pass; beside scripts also those of a loading page.
_FLEETING: Final = re.compile(r"::|:(?:hover|active|focus|visited|before|after|first-l|-)")
_LOADING: Final = re.compile(
    r"[.\[](?:no-?_?js|js-disabled|[a-z-]{0,9}cloak|async-hide|preload|unresolved)(?![\w-])"
)
# What a selector may come to mean, or means in a way that is not read.
_STATE: Final = re.compile(
    r":(?:checked|target|(?:popover-)?open|lang|dir|defined)\b|\[(?:open|aria-|hidden|data-state)"
)
# Functions in functions, and more than four combinators.
_LONG: Final = re.compile(r"\([^()]*+\(|(?<![\s>+~])(?:[\s>+~]++[^\s>+~]++){5}")
_FUNCTION: Final = re.compile(r":[\w-]{1,40}+\([^()]*+\)|\[[^\[\]]*+\]")
_NAME: Final = re.compile(r"[.#]-?[A-Za-z_][\w-]*")
_TYPE: Final = re.compile(r"(?<![\w.#:\[=\"'-])[A-Za-z][\w-]*")
_COMBINATOR: Final = re.compile(r"\s*[>+~]\s*|\s+")
# By the number of values that a shorthand gives, the place of each side's value.
_PLACES: Final = {1: (0, 0, 0, 0), 2: (0, 1, 0, 1), 3: (0, 1, 2, 1)}
_UNITS: Final = {
    **{"em": 16.0, "rem": 16.0, "ch": 8.0, "ex": 8.0, "vw": 12.8, "vh": 8.0, "vmin": 8.0},
    **{"pt": 1.33, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "q": 0.945},
}
_NUMBER: Final = r"(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})"
_LENGTH: Final = re.compile(rf"([-+]?{_NUMBER}(?:e[-+]?\d{{1,3}})?)([a-z]{{0,5}}|%)")
_FONT_SIZE: Final = re.compile(rf"(?:^|\s)({_NUMBER}(?:[a-z]{{1,5}}|%)|0)(?=[\s/]|$)")
_ESCAPE: Final = re.compile(r"\\([\da-f]{1,6})\s?|\\", re.IGNORECASE)
_BOX: Final = ("height", "max-height", "width", "max-width")
_SIDES: Final = ("top", "right", "bottom", "left")
# Properties with values that leave nothing of an element to be seen.
_UNSEEN: Final = re.compile(
    r"display:none|content-visibility:hidden|visibility:(?:hidden|collapse)"
    r"|clip:rect\((?:[01](?:px)?[\s,]{0,9}){4}\)"
)
# By property, the length or number below which nothing is seen, and what one per cent counts.
_LEAST: Final[Mapping[str, tuple[float, float]]] = {
    "opacity": (0.1, 0.01),
    **dict.fromkeys(_BOX, (5.0, 10.0)),
    **dict.fromkeys((*_SIDES, "margin-left", "margin-top"), (-999.0, 10.0)),
    "font-size": (2.01, 0.16),
    "text-indent": (-99.0, 1.0),
}
_HIDING: Final = frozenset({"display", "content-visibility", "visibility", "clip", *_LEAST})
_LEAST_CONTRAST: Final = 0.06  # of one channel: white on almost white
# These hide the element's own text; an element inside may be seen.
_INHERITED: Final = frozenset({"visibility", "font-size", "text-indent", "color"})
_HANDED_ON: Final = frozenset({"inherit", "unset", "100%", "1em"})
_WHITE: Final = (1.0, 1.0, 1.0, 1.0)
# Where padding gives a box room that has none by itself.
_ROOMS: Final = {"height": ("top", "bottom"), "width": ("left", "right")}
# What a control of the page may lift.
_COLLAPSED: Final = frozenset({"display", "visibility", "opacity", *_BOX})
# What scripts animate elements by.
_FADING: Final = ("transition", "will-change", "transform", "translate")
_FADING_MARK: Final = re.compile(
    r"(?i)(?:^|[\s_-])(?:aos|wow|fade|reveal|appear|animate|scroll)"
    r"|data-(?:aos|sal|sr|wow|scroll|anim|reveal|framer|w-id)"
)
_GUARDED_SHARE: Final = 0.5
_KEPT: Final = frozenset({"html", "body", "head"})

_Color = tuple[float, ...]  # red, green, blue and opacity, each [0, 1]
_Hidden = list[tuple["_Rule | int", list[LexborNode]]]


class _Rule(NamedTuple):
    """A selector with its block of declarations, and whether it stands where all blocks count."""

    selector: str
    block: str
    is_plain: bool
    order: int

    @property
    def is_read(self) -> bool:
        """Nothing else decides what it means."""
        return self.is_plain and not _LONG.search(self.selector)


class _Style(NamedTuple):
    """Longhand properties with the values that count, rules that give them, and which hide."""

    values: Mapping[str, str]
    rules: Mapping[str, _Rule | None]
    hiding: list[str]


class _Sheets:
    """The rules of a page's `<style>` elements that are for a screen, and what these mean.

    Attributes:
        standing: The rules that are read, of whose names none is yet to be set.
        are_complete: Nothing else says which colours the page has.
        have_scripts: Scripts of the page may change what a rule means.
    """

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._tree = tree
        self._steps = 0
        self._meant: dict[int, dict[int, LexborNode]] = {}
        self._applied: dict[str, list[tuple[_Rule, dict[int, LexborNode]]]] = {}
        self._lifted: dict[str, set[str]] = {}
        sheets = (node for node in tree.css(_SHEETS) if _is_for_screen(attribute(node, "media")))
        texts = sorted((_without_strings(node.text()) for node in sheets), key=len)
        sizes = accumulate(map(len, texts))
        read = (_read(text) for text, size in zip(texts, sizes, strict=True) if size <= _MOST_CHARS)
        rules = [_Rule(*each, order) for order, each in enumerate(chain.from_iterable(read))]
        self.have_scripts = tree.css_first(_SCRIPTS) is not None
        self._rules = [rule for rule in rules if not _FLEETING.search(rule.selector)]
        if self.have_scripts:
            self._rules = [rule for rule in self._rules if not _LOADING.search(rule.selector)]
        self.standing = [rule for rule in self._rules if self._is_worn(rule) and rule.is_read]
        self._by_last_name: defaultdict[str, list[_Rule]] = defaultdict(list)
        for rule in self.standing:
            self._by_last_name[_last_names(rule.selector)[0]].append(rule)
        self._count = len(tree.css("*")) if self._rules else 0
        is_styled_elsewhere = tree.css_first(_OTHER_STYLES) or any(map(_OTHER_COLORS.search, texts))
        self.are_complete = not is_styled_elsewhere and sum(map(len, texts)) <= _MOST_CHARS

    def meant_by(self, rule: _Rule) -> dict[int, LexborNode]:
        """The elements a rule means as the page stands, as far as a bounded effort allows."""
        if rule.order not in self._meant:
            # Counting siblings, and looking below each element, takes quadratic time.
            is_slow = any(sign in rule.selector for sign in ("~", ":nth", ":has"))
            self._steps += self._count * (self._count // 4 + 1 if is_slow else 1) + 500
            found: list[LexborNode] = []
            with suppress(SelectolaxError):  # a browser leaves out a rule that it cannot read
                found = self._tree.css(rule.selector) if self._steps <= _MOST_STEPS else []
            self._steps += 20 * len(found)
            self._meant[rule.order] = {node.mem_id: node for node in found}
        return self._meant[rule.order]

    def _is_worn(self, rule: _Rule) -> bool:
        return self._worn.issuperset(_NAME.findall(_plain(rule.selector)))

    @cached_property
    def _worn(self) -> set[str]:
        """The names of all elements that have a class (".name") or an identifier ("#name")."""
        said = [node.attributes for node in self._tree.css("[class], [id]")]
        classes = " ".join([each.get("class") or "" for each in said])
        return {*(f".{name}" for name in set(classes.split())), *(f"#{e.get('id')}" for e in said)}

    def style(self, node: LexborNode) -> _Style:
        """The values that count for an element, of those that it declares or rules give it."""
        applied = chain.from_iterable(map(self._ending_in, _names_of(node)))
        meant = tuple(rule for rule, nodes in applied if node.mem_id in nodes)
        said = node.attributes
        hints = f"background-color:{said.get('bgcolor') or ''};color:{said.get('color') or ''}"
        hints += ";background-image:url" * bool(said.get("background"))
        hints += ";display:table-cell" * (node.tag in ("td", "th"))
        return _cascade(meant, hints, said.get("style") or "")

    def _ending_in(self, name: str) -> list[tuple[_Rule, dict[int, LexborNode]]]:
        """The rules with a name at the end of their selectors, and the elements they mean."""
        if name not in self._applied:
            pairs = ((rule, self.meant_by(rule)) for rule in self._by_last_name.get(name, ()))
            self._applied[name] = [(rule, nodes) for rule, nodes in pairs if nodes]
        return self._applied[name]

    def lifted(self, node: LexborNode) -> set[str]:
        """The properties that a state, a script or a rule not read may give other values."""
        return set().union(*map(self._lifted_by, _names_of(node)))

    def _lifted_by(self, name: str) -> set[str]:
        if name not in self._lifted:
            rules = filter(self._may_come, self._ending[name])
            effects = set().union(*(_effects(rule.block)[1] for rule in rules))
            self._lifted[name] = effects & {*_COLLAPSED, *_LEAST}
        return self._lifted[name]

    def _may_come(self, rule: _Rule) -> bool:
        is_to_come = self.have_scripts and not self._is_worn(rule)
        return is_to_come or not rule.is_read or _STATE.search(rule.selector) is not None

    @cached_property
    def _ending(self) -> Mapping[str, list[_Rule]]:
        """All rules by each of the names at the end of their selectors."""
        found: defaultdict[str, list[_Rule]] = defaultdict(list)
        for rule in self._rules:
            for name in _last_names(rule.selector):
                found[name].append(rule)
        return found


@lru_cache(maxsize=20_000)  # selectors of one rule, and a site's pages, share their blocks
def _effects(block: str) -> tuple[set[str], set[str]]:
    """The properties that a block gives values that may hide an element, and that show it."""
    said = {name: value for name, value, _ in _declarations(block)}
    others = {"overflow": "hidden", "position": "absolute"}
    hiding = {name for name in _HIDING.intersection(said) if _hiding({**others, name: said[name]})}
    ink = _color_of(said.get("color", "")) or _WHITE
    hiding.update(["color"] * (ink[3] < _LEAST["opacity"][0]))
    return hiding, {*said, *(_BOX if said.get("overflow") == "visible" else ())} - hiding


@lru_cache(maxsize=10_000)
def _last_names(selector: str) -> list[str]:
    """The classes and identifiers in the last part of a selector, else its type, else `*`."""
    last = _COMBINATOR.split(_plain(selector))[-1]
    return _NAME.findall(last) or _TYPE.findall(last.partition(":")[0].lower()) or ["*"]


def _plain(selector: str) -> str:
    """A selector without attributes and functions."""
    return _FUNCTION.sub("", selector).strip() if "[" in selector or "(" in selector else selector


def _names_of(node: LexborNode) -> list[str]:
    """The names that the last part of a selector may call an element by."""
    said = node.attributes
    classes = (f".{name}" for name in (said.get("class") or "").split())
    return [node.tag or "", f"#{said.get('id')}", "*", *classes]


def _without_strings(styles: str) -> str:
    """Styles without comments and addresses, and without braces and semicolons in strings."""
    return _ASIDE.sub(_without_string, styles)


def _without_string(found: re.Match[str]) -> str:
    text = found[0]
    return "url(" if text[0] == "u" else re.sub(r"[{};]", " ", text) if text[0] in "\"'" else ""


def _is_for_screen(queries: str) -> bool:
    """Tell whether one of some media queries, or what begins a block, plainly holds."""
    return any(
        all(_HOLDING.fullmatch(re.sub(r"[\s()]", "", part)) for part in re.split(r"\band\b", query))
        for query in queries.lower().split(",")
    )


@lru_cache(maxsize=8)  # a site's pages share their sheets
def _read(sheet: str) -> list[tuple[str, str, bool]]:
    """Each selector of a sheet with its block, and whether it stands where all blocks count."""
    found: list[tuple[str, str, bool]] = []
    around: list[bool | None] = [True]  # None for rules that are not read, False for those left out
    for piece in _PIECE.finditer(sheet):
        prelude, block, sign = piece.groups()
        if sign == "{":
            inner = _is_for_screen(prelude) or (None if _UNREAD.match(prelude) else False)
            around.append(inner is not False and around[-1] and inner)
        elif sign == "}" and len(around) > 1:
            around.pop()
        elif block and ":" in block and "@" not in prelude and around[-1] is not False:
            found += [
                (each, block, bool(around[-1]))
                for part in _COMMA.split(prelude)
                if len(each := part.strip()) <= _MOST_SELECTOR_CHARS
                and each.count("(") == each.count(")")
            ]
    return found


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
    weighed.sort(key=lambda each: each[0])  # of equals the last counts
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
    elif name == "flex" and words:
        yield "flex-grow", words[0]
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
        return float("nan")
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
    drop(node for _, nodes in hidden for node in nodes)


class _Page:
    """The elements of a page, with what is known of their styles."""

    def __init__(self, body: LexborNode, sheets: _Sheets) -> None:
        self._body, self._sheets = body, sheets
        self._grounds: dict[int, list[_Color | None]] = {}

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
            if _effects(rule.block)[0] or any(paint in rule.block for paint in paints):
                found |= self._sheets.meant_by(rule)
        for node in self._body.css("[style], font[color]"):
            style = attribute(node, "style")
            if not style or "color" in style or _effects(style)[0]:
                found[node.mem_id] = node
        return found.values()

    def _texts(self, node: LexborNode, form: str) -> Iterator[LexborNode]:
        """The texts that a value of an inherited property reaches."""
        ends = ("color", "background-color", "background-image") if form == "color" else (form,)
        ink = _color_of(self._sheets.style(node).values.get("color", "")) or _WHITE
        # Sheets from elsewhere may give elements inside a size or colour.
        is_known = self._sheets.are_complete or form in ("visibility", "text-indent")
        waiting = [node]
        while waiting:
            for child in waiting.pop().iter(include_text=True):
                if child.is_text_node:
                    yield child
                elif child.is_element_node and (is_known or ink[3] < _LEAST["opacity"][0]):
                    values = self._sheets.style(child).values
                    is_ended = not _HANDED_ON.issuperset(values.get(e, "inherit") for e in ends)
                    waiting += [] if is_ended else [child]

    def _comes(self, node: LexborNode, style: _Style, form: str) -> bool:
        """Tell an element that a click or a script of the page brings in."""
        if form not in _COLLAPSED:
            return False
        if form == "opacity":
            marks = f"{attribute(node, 'class')} {' '.join(node.attributes)}"
            moved = {style.values.get(each, "none") for each in _FADING}
            is_fading = _FADING_MARK.search(marks) or moved != {"none"}
            is_animated = style.values.get("animation", "none") != "none"
            if is_animated or (self._sheets.have_scripts and is_fading):
                return True
        is_named = attribute(node, "role") == "tabpanel" or attribute(node, "id") in self._opened
        if style.rules[form] is None:
            return self._sheets.have_scripts and is_named
        is_lifted = self._sheets.lifted(node).issuperset(style.hiding)
        return is_named or is_lifted or follows_control(node)

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
        return ground is not None and max(ink[3] * abs(a - b) for a, b in pairs) <= _LEAST_CONTRAST

    def _ground(self, node: LexborNode) -> _Color | None:
        """The colour behind an element; None when it is a picture, or not known."""
        passed: list[int] = []
        for each in chain((node,), ancestors(node)):
            passed.append(each.mem_id)
            found = self._grounds.get(each.mem_id) or self._painted(each)
            if found:
                break
        self._grounds |= dict.fromkeys(passed, found or [_WHITE])
        return self._grounds[node.mem_id][0]

    def _painted(self, node: LexborNode) -> list[_Color | None]:
        """The colour that an element puts behind its text, if any; None for one not known."""
        values = self._sheets.style(node).values
        image = values.get("background-image", "none")
        value = values.get("background-color", "transparent")
        is_static = values.get("position", "static") == "static"
        if image == "none" and value == "transparent" and is_static and self._sheets.are_complete:
            return []
        # Pictures, what stands over one or another box, and what a sheet from elsewhere paints.
        color = _color_of(value) if image == "none" else None
        return [color if color and color[3] >= 1 else None]


def _hiding(values: Mapping[str, str]) -> list[str]:
    """Name the properties that hide an element, those first that hide it with all it holds."""
    forms = [form for form in values if _UNSEEN.fullmatch(f"{form}:{values[form]}")]
    forms += [form for form in _LEAST if form in values and _is_too_little(form, values)]
    return sorted(forms, key=_INHERITED.__contains__)


def _is_too_little(form: str, values: Mapping[str, str]) -> bool:
    """Tell a length or number that hides an element, if its other values let it."""
    least, percent = _LEAST[form]
    size = _pixels(values[form], percent)
    if form in _SIDES:
        is_before = form != "bottom" and size < least
        is_beyond = form != "top" and size > -2 * least
        return (is_before or is_beyond) and values.get("position", "static") != "static"
    if form in _BOX:
        # Cells, and what grows in a row, are as large as what they hold.
        is_grown = values.get("display") == "table-cell" or _pixels(values.get("flex-grow", "")) > 0
        cuts = " ".join(values.get(each, "") for each in ("overflow", "overflow-x", "overflow-y"))
        axis = form.removeprefix("max-")
        giving = (f"min-{axis}", *(f"padding-{side}" for side in _ROOMS[axis]))
        rooms = (_pixels(values.get(each, "")) for each in giving)
        is_open = is_grown or {"hidden", "clip", "scroll", "auto"}.isdisjoint(cuts.split())
        return size < least and not is_open and not any(room >= least for room in rooms)
    # A strip as wide as the window has as much padding.
    padding = _pixels(values.get(form.replace("margin", "padding"), ""))
    return size < least and not (form.startswith("margin") and padding >= -least)

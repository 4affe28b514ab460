"""Reads a page's style sheets and judges what they declare: what hides an element, and how."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError
from tinycss2.color5 import parse_color

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


Declared = Mapping[str, str]
"""Longhand properties with their values, in lower case."""

Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, each [0, 1]."""

# Below these nobody reads a text; what is above stays, however hard it is to read.
LEAST_OPACITY: Final = 0.1
_LEAST_FONT_PX: Final = 2.0
_LEAST_SCALE: Final = 0.1
_LEAST_BOX_PX: Final = 5.0
_MOST_BLUR_PX: Final = 5.0
_NEAR: Final = 0.06  # white on almost white
_FAR_PX: Final = 999.0
_FAR_INDENT_PX: Final = 100.0
_FAR_BEYOND_PX: Final = 2_000.0
_SCREEN_PX: Final = 800.0
# What a block holds that may hide something, so that most blocks need not be read.
SUSPECT: Final = re.compile(
    r"(?<![-\w])(?:display\s{0,5}:\s{0,5}none|(?:opacity|zoom)\s{0,5}:\s{0,5}(?:[0.]|\d%)"
    r"|color\s{0,5}:\s{0,5}(?:transparent|rgb|hsl|#[\da-f]{3,7}0\b)|(?:top|bottom)\s{0,5}:\s{0,5}[1-9]\d\d"
    r"|(?:max-|line-)?(?:height|width|block-size)\s{0,5}:\s{0,5}[0-4]?(?:\.\d{1,9})?(?:px|r?em|pt)?\s{0,5}(?:[;!]|$)"
    r"|font(?:-size)?\s{0,5}:[^;]{0,80}?(?<![\d.])(?:[012](?:\.\d{1,9})?|\.\d{1,9})(?:px|pt|r?em|%|v|[\s/;!]|$)"
    r"|(?:display|visibility|opacity|font-size)\s{0,5}:\s{0,5}var\()|visibility\s{0,5}:\s{0,5}[hc]|fill-color"
    r"|filter\s{0,5}:[^;]{0,80}(?:opac|blur)|scale[\w-]{0,4}\s{0,5}[:(][^;]{0,80}?(?<![\d.])(?:0|\.0)|matrix|rotate[xy]"
    r"|-\s{0,5}(?:\d{3}|\d{2}r?em)|indent\s{0,5}:\s{0,5}-|\bclip|(?:[2-9]\d\d|\d{4})\s{0,5}(?:%|v|r?em|px)|\\|/\*",
    re.IGNORECASE,
)
_PIXELS: Final = {"px": 1.0, "pt": 1.33, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78} | {
    **{"em": 16.0, "rem": 16.0, "ex": 8.0, "ch": 8.0, "vw": 12.8, "vh": 8.0, "dvh": 8.0}
}
_LENGTH: Final = re.compile(
    r"([-+]?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})(?:e[-+]?\d{1,3})?)([a-z]{0,5}|%)"
)
_SIZE: Final = re.compile(
    r"(?:^|\s)((?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})(?:[a-z]{1,5}|%)|0)(?=[\s/]|$)"
)
_CALL: Final = re.compile(r"(?<![\w-])([a-z][\w-]{0,30}+)\(([^()]*+)\)")
_ESCAPE: Final = re.compile(r"\\([\da-f]{1,6})\s?|\\", re.IGNORECASE)
_VARIABLE: Final = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,([^()]*))?\)")
_SIDES: Final = ("top", "right", "bottom", "left")
_LOGICAL: Final = {"inline-start": "left", "block-start": "top", "block-size": "height"}


@lru_cache(maxsize=4_096)
def color_of(value: str) -> Color | None:
    """The colour a value names; None when it names none, or one that depends on the reader."""
    try:
        parsed = parse_color(value)
        channels = None if parsed is None or isinstance(parsed, str) else tuple(parsed.to("srgb"))
    except (ValueError, TypeError, NotImplementedError):
        return None
    if channels is None:
        return None
    red, green, blue, alpha = (min(1.0, max(0.0, float(each or 0))) for each in channels)
    return red, green, blue, alpha


def is_lost(ink: Color, ground: Color) -> bool:
    """Tell a colour that nobody sees on an opaque one."""
    pairs = zip(ink[:3], ground[:3], strict=True)
    return all(ink[3] * abs(mine - theirs) <= _NEAR for mine, theirs in pairs)


@lru_cache(maxsize=4_096)
def declarations(block: str) -> tuple[tuple[str, str, bool], ...]:
    """The longhand properties of a block, their values, and which are important.

    Args:
        block: Without comments, and without semicolons inside of strings.
    """
    block = _ESCAPE.sub(lambda each: chr(int(each[1] or "20", 16) % 0x110000), block[:20_000])
    found: list[tuple[str, str, bool]] = []
    for part in block.lower().split(";"):
        name, _, said = (each.strip() for each in part.partition(":"))
        value, important, _ = said.partition("!")
        short = name.removeprefix("-webkit-") if "fill" not in name else name
        found += [(each, one, bool(important)) for each, one in _longhands(short, value.strip())]
    return tuple(found)


def _longhands(name: str, value: str) -> Iterator[tuple[str, str]]:
    base, _, side = name.partition("-")
    words = value.split()
    if base in ("inset", "margin", "padding"):
        prefix = "" if base == "inset" else f"{base}-"
        if side:
            yield prefix + _LOGICAL.get(side, side), value
        elif words:
            chosen = {1: (0, 0, 0, 0), 2: (0, 1, 0, 1), 3: (0, 1, 2, 1)}.get(len(words), range(4))
            yield from ((prefix + each, words[at]) for each, at in zip(_SIDES, chosen, strict=True))
    elif name == "font":
        yield from (("font-size", size) for size in _SIZE.findall(value)[:1])
    elif name == "background":
        named = next((word for word in (*words, value) if color_of(word)), "")
        yield "background-color", named or ("" if "var(" in value else "transparent")
        yield "background-image", "url" if "url(" in value or "gradient" in value else "none"
        yield from [("background-clip", "text")] * ("text" in words)
    else:
        yield _LOGICAL.get(name, name), value


def with_variables(declared: dict[str, str], variables: Declared) -> Declared:
    """Put the variables that are set into values, and what is said for the others."""
    known = {**variables, **declared}
    for name, value in declared.items():
        for _ in range(3 if "var(" in value else 0):
            value = _VARIABLE.sub(lambda each: known.get(each[1]) or each[2] or "", value[:500])
        declared[name] = value.strip()
    return declared


def _length(value: str | None, percent: float = 10.0) -> float | None:
    """A length in pixels, None when it is none; one per cent counts as so many pixels."""
    match = _LENGTH.fullmatch(value) if value else None
    if match is None or (not match[2] and float(match[1])):
        return None
    unit = percent if match[2] == "%" else _PIXELS.get(match[2] or "px")
    return None if unit is None else float(match[1]) * unit


def _number(value: str, default: float = 1.0) -> float:
    match = _LENGTH.fullmatch(value)
    if match is None or match[2] not in ("", "%"):
        return default
    return float(match[1]) / (100 if match[2] else 1)


def is_mute(name: str, value: str) -> bool:
    """Tell a value of an inherited property that leaves no text to be seen."""
    if name == "visibility":
        return value in ("hidden", "collapse")
    length = _length(value, 0.16 if name == "font-size" else 1.0)
    if length is None:
        return False
    return length <= _LEAST_FONT_PX if name == "font-size" else length <= -_FAR_INDENT_PX


# What the declarations begin with that may bring a reason about.
FAMILIES: Final = {
    "display": ("display", "content-visibility"),
    "opacity": ("opacity", "filter"),
    "scale": ("zoom", "scale", "transform"),
    "place": (*("position", "margin", "padding", "translate", "transform"), *_SIDES),
    "clip": ("clip",),
    "box": ("height", "width", "max", "min", "line-height", "overflow"),
}


def reason_of(declared: Declared) -> str:
    """Name the reason why an element is unseen with all it holds; "" when it is seen."""
    if declared.get("display") == "none" or declared.get("content-visibility") == "hidden":
        return "display"
    calls = _CALL.findall(" ".join(declared.get(name, "") for name in ("filter", "transform")))
    if _opacity(declared, calls) < LEAST_OPACITY:
        return "opacity"
    if _scale(declared, calls) < _LEAST_SCALE:
        return "scale"
    if _is_outside(declared, calls):
        return "place"
    shapes = _CALL.findall(f"{declared.get('clip')} {declared.get('clip-path')}")
    if any(_is_empty(name, arguments) for name, arguments in shapes):
        return "clip"
    return "box" if _is_tiny(declared) else ""


def _opacity(declared: Declared, calls: list[tuple[str, str]]) -> float:
    opacity = _number(declared.get("opacity", ""))
    for name, argument in calls:
        if name == "opacity":
            opacity *= _number(argument.strip())
        elif name == "blur" and (_length(argument.strip()) or 0.0) >= _MOST_BLUR_PX:
            opacity = 0.0
    return opacity


def _scale(declared: Declared, calls: list[tuple[str, str]]) -> float:
    scale = abs(_number(declared.get("zoom", "")) * _number(declared.get("scale", "")))
    for name, arguments in calls:
        numbers = [abs(_number(each)) for each in arguments.replace(",", " ").split()]
        if name.startswith("scale") and numbers:
            scale *= min(numbers)
        elif name.startswith("matrix") and numbers:
            scale *= max(numbers[:2])
        elif name in ("rotatex", "rotatey") and arguments.strip() in ("90deg", "-90deg", "270deg"):
            scale = 0.0
    return scale


def _is_outside(declared: Declared, calls: list[tuple[str, str]]) -> bool:
    place = {side: _length(declared.get(side)) or 0.0 for side in _SIDES}
    if declared.get("position") != "static":
        # A long page is scrolled down to what stands far below, unless it is fixed to the window.
        is_below = max(place["top"], place["bottom"]) >= _SCREEN_PX
        if min(place.values()) <= -_FAR_PX or (is_below and declared.get("position") == "fixed"):
            return True
        if max(place["left"], place["right"]) >= _FAR_BEYOND_PX:
            return True
    for side in ("left", "top"):
        lengths = (_length(declared.get(f"{each}-{side}"), 5.0) for each in ("margin", "padding"))
        if sum(length or 0.0 for length in lengths) <= -_FAR_PX:
            return True
    moves = declared.get("translate", "").split()
    for name, arguments in calls:
        moves += arguments.replace(",", " ").split() if name.startswith("translate") else []
    # A box moved by its own size slides beside its place, as those of carousels do.
    moved = [_length(move, 5.0) or 0.0 for move in moves]
    return any(length <= -_FAR_PX or length >= _FAR_BEYOND_PX for length in moved)


def _is_empty(shape: str, arguments: str) -> bool:
    parts = arguments.replace(",", " ").split()
    known = [side for part in parts if (side := _length(part, 1.0)) is not None]
    if shape == "rect" and len(known) == 4:
        return known[2] - known[0] <= 2 or known[1] - known[3] <= 2
    if shape == "inset" and known:
        top, right, bottom, left = (known[at % len(known)] for at in (0, 1, 2, -1))
        return max(top + bottom, right + left) >= (98 if "%" in arguments else _FAR_PX)
    if shape == "polygon":
        return len(set(parts)) <= 1
    return shape in ("circle", "ellipse") and bool(known) and known[0] <= 2


def _is_tiny(declared: Declared) -> bool:
    """Tell a box without room for text that shows nothing beyond itself."""
    cuts = " ".join(declared.get(name, "") for name in ("overflow", "overflow-x", "overflow-y"))
    if {"hidden", "clip", "scroll", "auto"}.isdisjoint(cuts.split()):
        return False
    sides = (
        ("height", ("min-height", "padding-top", "padding-bottom"), ("line-height",)),
        ("width", ("min-width", "padding-left", "padding-right"), ()),
    )
    for side, rooms, more in sides:
        room = max(_length(declared.get(name)) or 0.0 for name in rooms)
        lengths = (_length(declared.get(name)) for name in (side, f"max-{side}", *more))
        if room < _LEAST_BOX_PX and any(
            each is not None and each < _LEAST_BOX_PX for each in lengths
        ):
            return True
    return False

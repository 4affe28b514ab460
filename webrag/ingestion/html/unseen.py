"""Judges the declarations of one element: whether they hide it or its text, and how."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from tinycss2.color5 import parse_color

Declared = Mapping[str, str]
"""Longhand properties with their values, in lower case."""

Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, each [0, 1]."""

# Below these nobody reads a text; what is above stays, however hard it is to read.
_LEAST_OPACITY: Final = 0.1
_LEAST_FONT_PX: Final = 2.0
_LEAST_SCALE: Final = 0.1
_LEAST_BOX_PX: Final = 5.0
_NEAR: Final = 0.06  # white on almost white
_FAR_PX: Final = 999.0
_FAR_INDENT_PX: Final = 100.0
_FAR_BEYOND_PX: Final = 2_000.0
_SCREEN_PX: Final = 800.0

# Properties that hide an element's own text, though an element inside may be seen.
INHERITED: Final = ("visibility", "font-size", "text-indent")
_SIDES: Final = ("top", "right", "bottom", "left")
_PLACING: Final = frozenset({"transform", "translate", "margin-left", "margin-top", *_SIDES})
# What the properties are called that bring a reason about, or undo it.
PROPERTIES: Final = {name: name.partition("-")[0] for name in INHERITED} | {
    "display": "display|content-vis",
    "opacity": "opacity|filter",
    "scale": "zoom|scale|transform",
    "place": "top|right|bottom|left|inset|position|margin|padding|translate|transform",
    "clip": "clip",
    "box": "height|width|block-size|overflow|padding",
    "color": "color|background|shadow|stroke",
}
# What a block holds that may hide something, so that most blocks need not be read.
_SUSPECT: Final = re.compile(
    r"(?:display|visibility|opacity|font-size)\s{0,5}:\s{0,5}(?:none|hid|coll|0|\.|\d%)|content-vis"
    r"|transparent|zoom|scale|clip|opacity\(|\([^()]{0,40}[\s,/](?:0?\.0|[01]%?\))|\\|/\*"
    r"|#(?:[\da-f]{3}|[\da-f]{6}0)[0-1]\b|-\s{0,5}(?:\d{3}|\d\dr?em)"
    r"|(?:height|width|size)\s{0,5}:\s{0,5}(?:[0-4](?![\d.])|0?\.)"
    r"|font[^;]{0,80}?[\s:](?:[012]|0?\.\d)(?:[a-z%/]|\s)|(?:[2-9]\d\d(?:%|v|r?em)|\d{4}px)",
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
_LOGICAL: Final = {"inline-start": "left", "block-start": "top", "block-size": "height"}


@lru_cache(maxsize=4_096)
def color_of(value: str) -> Color | None:
    """The colour a value names; None when it names none, or one that depends on the reader."""
    try:
        parsed = parse_color(value)
        channels = None if parsed is None or isinstance(parsed, str) else parsed.to("srgb")
    except (ValueError, TypeError, NotImplementedError):
        return None
    if channels is None:
        return None
    red, green, blue, alpha = (min(1.0, max(0.0, float(each or 0))) for each in channels)
    return red, green, blue, alpha


def ink_of(declared: Declared) -> Color | None:
    """The colour of an element's text; None when it is not known."""
    names = ("-webkit-text-fill-color", "color")
    return next((color_of(declared[name]) for name in names if name in declared), None)


def is_lost(ink: Color, ground: Color | None) -> bool:
    """Whether a colour is none, or nobody tells it from an opaque one below it."""
    pairs = zip(ink[:3], ground[:3] if ground else (), strict=False)
    apart = [ink[3] * abs(mine - theirs) for mine, theirs in pairs]
    return ink[3] < _LEAST_OPACITY or max(apart, default=1.0) <= _NEAR


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
        at = {1: (0, 0, 0, 0), 2: (0, 1, 0, 1), 3: (0, 1, 2, 1)}.get(len(words), (0, 1, 2, 3))
        if side:
            yield prefix + _LOGICAL.get(side, side), value
        elif words:
            yield from ((prefix + each, words[of]) for each, of in zip(_SIDES, at, strict=True))
    elif name == "font":
        yield from (("font-size", size) for size in _SIZE.findall(value)[:1])
    elif name == "background":
        named = next((word for word in (*words, value) if color_of(word)), "")
        yield "background-color", named or ("" if "var(" in value else "transparent")
        yield "background-image", "url" if "url(" in value or "gradient" in value else "none"
        yield from [("background-clip", "text")] * ("text" in words)
    else:
        yield _LOGICAL.get(name, name), value


@lru_cache(maxsize=20_000)  # a site's pages share their rules
def reasons_of(block: str) -> frozenset[str]:
    """Why a block by itself hides an element or its text; empty when it does not."""
    if not _SUSPECT.search(block):
        return frozenset()
    declared = {name: value for name, value, _ in declarations(block)}
    ink = ink_of(declared)
    found = {reason_of(declared), "color" if ink and is_lost(ink, None) else ""}
    return frozenset(found.union(muting(declared)) - {""})


def muting(declared: Declared) -> list[str]:
    """The inherited properties that leave nothing of an element's own text to be seen."""
    size = _length(declared.get("font-size"), 0.16)
    indent = _length(declared.get("text-indent"), 1.0)
    is_mute = (
        declared.get("visibility") in ("hidden", "collapse"),
        size is not None and size <= _LEAST_FONT_PX,
        indent is not None and indent <= -_FAR_INDENT_PX,
    )
    return [name for name, is_so in zip(INHERITED, is_mute, strict=True) if is_so]


def reason_of(declared: Declared) -> str:
    """Why an element is unseen with all it holds; "" when it is seen."""
    if declared.get("display") == "none" or declared.get("content-visibility") == "hidden":
        return "display"
    calls = _calls(declared, "filter", "transform")
    opacity, scale = _number(declared.get("opacity")), _number(declared.get("zoom"))
    scale *= _number(declared.get("scale"))
    for name, arguments in calls:
        least = min((abs(_number(each)) for each in arguments), default=1.0)
        opacity *= least if name == "opacity" else 1.0
        scale *= least if name.startswith("scale") else 1.0
    if opacity < _LEAST_OPACITY:
        return "opacity"
    if abs(scale) < _LEAST_SCALE:
        return "scale"
    if not _PLACING.isdisjoint(declared) and _is_outside(declared, calls):
        return "place"
    if any(_is_empty(*shape) for shape in _calls(declared, "clip", "clip-path")):
        return "clip"
    return "box" if _is_tiny(declared) else ""


def _calls(declared: Declared, *names: str) -> list[tuple[str, list[str]]]:
    """The functions in some values, with their arguments."""
    said = " ".join(declared[name] for name in names if name in declared)
    return [(name, each.replace(",", " ").split()) for name, each in _CALL.findall(said)]


def _length(value: str | None, percent: float = 10.0) -> float | None:
    """A length in pixels, None when it is none; one per cent counts as so many pixels."""
    match = _LENGTH.fullmatch(value) if value else None
    if match is None or (not match[2] and float(match[1])):
        return None
    unit = percent if match[2] == "%" else _PIXELS.get(match[2] or "px")
    return None if unit is None else float(match[1]) * unit


def _number(value: str | None) -> float:
    match = _LENGTH.fullmatch(value or "")
    return float(match[1]) / (100 if match[2] else 1) if match and match[2] in ("", "%") else 1.0


def _is_outside(declared: Declared, calls: list[tuple[str, list[str]]]) -> bool:
    position = declared.get("position")
    top, right, bottom, left = (
        0.0 if position == "static" else _length(declared.get(side)) or 0.0 for side in _SIDES
    )
    # A long page is scrolled down to what stands far below, unless it is fixed to the window.
    if position == "fixed" and max(top, bottom) >= _SCREEN_PX:
        return True
    moves = declared.get("translate", "").split()
    for name, arguments in calls:
        moves += arguments if name.startswith("translate") else []
    # A box moved by its own size slides beside its place, as those of carousels do.
    moved = [_length(move, 5.0) or 0.0 for move in moves]
    for side in ("left", "top"):
        names = (f"margin-{side}", f"padding-{side}")
        moved.append(sum(_length(declared.get(name), 5.0) or 0.0 for name in names))
    is_beyond = max(right, left, *moved) >= _FAR_BEYOND_PX
    return is_beyond or min(top, right, bottom, left, *moved) <= -_FAR_PX


def _is_empty(shape: str, parts: list[str]) -> bool:
    """Whether a shape to clip an element by has no inside."""
    known = [side for part in parts if (side := _length(part, 1.0)) is not None]
    if shape in ("rect", "polygon"):
        return len(set(known)) == 1 and len(known) == len(parts)
    if shape == "inset" and known:
        top, right, bottom, left = (known[at % len(known)] for at in (0, 1, 2, -1))
        return max(top + bottom, right + left) >= (98 if "%" in "".join(parts) else _FAR_PX)
    return shape in ("circle", "ellipse") and bool(known) and known[0] <= 2


def _is_tiny(declared: Declared) -> bool:
    """Whether a box that shows nothing beyond itself has no room for text."""
    cuts = {declared.get(name, "visible") for name in ("overflow", "overflow-x", "overflow-y")}
    if cuts <= {"visible"}:
        return False
    for sides, rooms in (
        (("height", "max-height", "line-height"), ("min-height", "padding-top", "padding-bottom")),
        (("width", "max-width"), ("min-width", "padding-left", "padding-right")),
    ):
        room = max(_length(declared.get(name)) or 0.0 for name in rooms)
        lengths = [length for name in sides if (length := _length(declared.get(name))) is not None]
        if room < _LEAST_BOX_PX and min(lengths, default=_LEAST_BOX_PX) < _LEAST_BOX_PX:
            return True
    return False

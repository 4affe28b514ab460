"""Works out which declared values count for an element; it does not judge what they show."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from webrag.ingestion.html.css.sheets import Declaration
from webrag.ingestion.html.css.values import Length, Units, length_of, parts, substituted

Tokens = Sequence[Any]

Declared = dict[str, list[Any]]
"""Longhand properties with their values, variables put in."""

_SIDES: Final = ("top", "right", "bottom", "left")
_LOGICAL: Final = {
    "block-start": "top",
    "block-end": "bottom",
    "inline-start": "left",
    "inline-end": "right",
}
_SYNONYMS: Final = {
    "inline-size": "width",
    "block-size": "height",
    "max-inline-size": "max-width",
    "max-block-size": "max-height",
    "overflow-inline": "overflow-x",
    "overflow-block": "overflow-y",
}
_SIZES: Final = {
    "xx-small": 9.0,
    "x-small": 10.0,
    "small": 13.0,
    "medium": 16.0,
    "large": 18.0,
    "x-large": 24.0,
    "xx-large": 32.0,
    "xxx-large": 48.0,
}
_PAINTING: Final = frozenset({"background", "background-color"})
_DEFAULTS: Final = frozenset({"inherit", "initial", "unset", "revert", "revert-layer"})


def resolved(
    declarations: Iterable[Declaration], inherited: Mapping[str, Tokens]
) -> tuple[Declared, Mapping[str, Tokens]]:
    """The longhand values that declarations leave, the weakest first, and the variables set.

    Args:
        declarations: Of one element.
        inherited: Variables of the element around it.
    """
    ordered = list(declarations)
    own = {each.name: each.value for each in ordered if each.name.startswith("--")}
    variables = {**inherited, **own} if own else inherited
    made: Declared = {}
    for each in ordered:
        if each.name.startswith("--"):
            continue
        value = substituted(each.value, variables)
        if value is None and each.name in _PAINTING:
            value = list(each.value)  # another sheet may set the variable: some colour
        for name, tokens in _longhands(each.name, parts(value or ())):
            if not tokens or getattr(tokens[0], "lower_value", "") in _DEFAULTS:
                made.pop(name, None)
            else:
                made[name] = tokens
    return made, variables


def font_size(tokens: Tokens, units: Units) -> float | None:
    """A font's size in pixels; None when the value is none."""
    keyword = getattr(tokens[0], "lower_value", "")
    if keyword in _SIZES:
        return _SIZES[keyword]
    if keyword in ("smaller", "larger"):
        return units.em * (1.2 if keyword == "larger" else 1 / 1.2)
    length = length_of(tokens[0], units)
    return None if length is None else _pixels_of_font(length, units)


def _pixels_of_font(length: Length, units: Units) -> float:
    return max(0.0, length.px + length.percent / 100 * units.em)


def _longhands(name: str, tokens: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    name = _SYNONYMS.get(name, name.removeprefix("-webkit-") if "fill" not in name else name)
    base, _, logical = name.partition("-")
    if base in ("inset", "margin", "padding"):
        yield from _sides(base, logical, tokens)
    elif name == "font":
        yield "font-size", _size_in_font(tokens)
    elif name == "overflow":
        yield "overflow-x", tokens[:1]
        yield "overflow-y", tokens[-1:]
    elif name in ("background", "mask"):
        yield from _painted(name, tokens)
    elif name == "animation":
        yield from _animation(tokens)
    else:
        yield name, tokens


def _sides(base: str, logical: str, tokens: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    prefix = "" if base == "inset" else f"{base}-"
    if logical in ("block", "inline"):
        first, second = f"{logical}-start", f"{logical}-end"
        yield prefix + _LOGICAL[first], tokens[:1]
        yield prefix + _LOGICAL[second], tokens[-1:]
    elif logical:
        yield prefix + _LOGICAL.get(logical, logical), tokens
    else:
        # One value is for all sides, two are for pairs, of three the second is for both flanks.
        chosen = [tokens[min(at, len(tokens) - 1)] if tokens else None for at in range(4)]
        if len(tokens) in (2, 3):
            chosen[3] = tokens[1]
        if len(tokens) == 2:
            chosen[2] = tokens[0]
        for side, token in zip(_SIDES, chosen, strict=True):
            yield prefix + side, [] if token is None else [token]


def _size_in_font(tokens: list[Any]) -> list[Any]:
    for token in tokens:
        is_keyword = getattr(token, "lower_value", "") in (*_SIZES, "smaller", "larger")
        is_angle = token.type == "dimension" and token.lower_unit in ("deg", "grad", "rad", "turn")
        if is_keyword or (not is_angle and length_of(token, Units()) is not None):
            return [token]
    return []


def _painted(name: str, tokens: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    pictures = [token for token in tokens if token.type in ("url", "function")]
    pictures = [
        token
        for token in pictures
        if token.type == "url" or "gradient" in token.lower_name or token.lower_name == "url"
    ]
    yield f"{name}-image", pictures
    if name == "background":
        yield "background-color", [token for token in tokens if token not in pictures]
        if any(getattr(token, "lower_value", "") == "text" for token in tokens):
            yield "background-clip", [t for t in tokens if getattr(t, "lower_value", "") == "text"]


def _animation(tokens: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    words = [token for token in tokens if token.type in ("ident", "string")]
    fill = [token for token in words if token.value.lower() in ("forwards", "both")]
    count = [token for token in words if token.value.lower() == "infinite"]
    yield "animation-name", words
    yield "animation-fill-mode", fill
    yield "animation-iteration-count", count

"""Reads values of CSS properties: lengths, colours, variables. It knows no elements or rules."""

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tinycss2.color5 import parse_color

Tokens = Sequence[Any]

VIEWPORT: Final = (1280.0, 800.0)
_MOST_TOKENS: Final = 500  # of a value after its variables are put in: they may double each other
_MOST_VARIABLES: Final = 8  # inside each other
_ABSOLUTE: Final = {
    "px": 1.0,
    "pt": 4 / 3,
    "pc": 16.0,
    "in": 96.0,
    "cm": 96 / 2.54,
    "mm": 9.6 / 2.54,
    "q": 2.4 / 2.54,
}
# By the viewport's width, its height, or the shorter or longer of both.
_VIEWPORT_UNITS: Final = {
    **dict.fromkeys(("vw", "svw", "lvw", "dvw", "vi", "cqw", "cqi", "vmax"), VIEWPORT[0] / 100),
    **dict.fromkeys(("vh", "svh", "lvh", "dvh", "vb", "cqh", "cqb", "vmin"), VIEWPORT[1] / 100),
}


@dataclass(frozen=True, slots=True)
class Length:
    """A length as far as it is known: pixels, and per cent of something of the page's layout."""

    px: float = 0.0
    percent: float = 0.0


@dataclass(frozen=True, slots=True)
class Units:
    """What relative lengths refer to, in pixels."""

    em: float = 16.0
    rem: float = 16.0


@dataclass(frozen=True, slots=True)
class Color:
    """Red, green, blue and opacity, each [0, 1]."""

    red: float
    green: float
    blue: float
    alpha: float = 1.0

    def over(self, below: "Color") -> "Color":
        """What is seen where this one lies over an opaque one."""
        share = self.alpha
        pairs = zip(self.channels, below.channels, strict=True)
        return Color(*(share * mine + (1 - share) * theirs for mine, theirs in pairs))

    @property
    def channels(self) -> tuple[float, float, float]:
        """Without the opacity."""
        return self.red, self.green, self.blue

    def is_near(self, other: "Color", distance: float) -> bool:
        """Whether every channel differs by `distance` at most."""
        pairs = zip(self.channels, other.channels, strict=True)
        return all(abs(mine - theirs) <= distance for mine, theirs in pairs)


def parts(tokens: Tokens) -> list[Any]:
    """The tokens of a value without blanks and comments."""
    return [token for token in tokens if token.type not in ("whitespace", "comment")]


def substituted(tokens: Tokens, variables: Mapping[str, Tokens]) -> list[Any] | None:
    """A value with its variables put in; None when one of them is not set, or too much comes out.

    Functions are opened, so that a variable inside one is replaced as well.
    """
    budget = [_MOST_TOKENS]
    try:
        return _put_in(tokens, variables, budget, 0)
    except _UnknownValue:
        return None


class _UnknownValue(ValueError):
    pass


def _put_in(
    tokens: Tokens, variables: Mapping[str, Tokens], budget: list[int], depth: int
) -> list[Any]:
    made: list[Any] = []
    for token in tokens:
        budget[0] -= 1
        if budget[0] < 0 or depth > _MOST_VARIABLES:
            raise _UnknownValue
        if token.type != "function":
            made.append(token)
        elif token.lower_name == "var":
            made += _put_in(_variable(token.arguments, variables), variables, budget, depth + 1)
        else:
            opened = copy.copy(token)  # the rule holds it for other elements and pages
            opened.arguments = _put_in(token.arguments, variables, budget, depth + 1)
            made.append(opened)
    return made


def _variable(arguments: Tokens, variables: Mapping[str, Tokens]) -> Tokens:
    names = parts(arguments)
    name = names[0].value if names and names[0].type == "ident" else ""
    if name in variables:
        return variables[name]
    commas = [at for at, token in enumerate(arguments) if _is_comma(token)]
    if not commas:
        raise _UnknownValue
    return arguments[commas[0] + 1 :]


def numbers_of(tokens: Tokens) -> list[float]:
    """The numbers and percentages (as shares) among the tokens, calculated ones too, in order."""
    found: list[float] = []
    for token in tokens:
        try:
            value = _operand(token, Units(), 0)
        except (_UnknownValue, ZeroDivisionError, OverflowError):
            continue
        if isinstance(value, Length):
            found += [value.percent / 100] if not value.px else []
        else:
            found.append(value)
    return found


def color_of(token: Any) -> Color | None:
    """The colour a token names; None when it names none, or one that depends on the reader."""
    try:
        parsed = parse_color(token)
        if parsed is None or parsed == "currentcolor" or isinstance(parsed, str):
            return None
        red, green, blue, alpha = parsed.to("srgb")
    except (ValueError, TypeError, NotImplementedError):
        return None
    return Color(*(min(1.0, max(0.0, float(value or 0))) for value in (red, green, blue, alpha)))


def length_of(token: Any, units: Units) -> Length | None:
    """The length a token says, `calc()` and the like included; None when it says none."""
    try:
        found = _operand(token, units, 0)
    except (_UnknownValue, ZeroDivisionError, OverflowError):
        return None
    if isinstance(found, Length):
        return found if math.isfinite(found.px) and math.isfinite(found.percent) else None
    return Length() if found == 0 else None


def _operand(token: Any, units: Units, depth: int) -> "Length | float":
    if depth > _MOST_VARIABLES:
        raise _UnknownValue
    if token.type == "number":
        return float(token.value)
    if token.type == "percentage":
        return Length(percent=token.value)
    if token.type == "dimension":
        return Length(px=token.value * _pixels(token.lower_unit, units))
    if token.type == "() block":
        return _sum(token.content, units, depth + 1)
    if token.type == "function" and token.lower_name in _FUNCTIONS:
        arguments = [_sum(part, units, depth + 1) for part in _split(token.arguments)]
        return _FUNCTIONS[token.lower_name](arguments)
    raise _UnknownValue


def _pixels(unit: str, units: Units) -> float:
    if unit in ("em", "lh", "ic", "cap"):
        return units.em
    if unit in ("ex", "ch"):
        return units.em / 2
    if unit in ("rem", "rlh", "rex", "rch", "ric", "rcap"):
        return units.rem
    pixels = _ABSOLUTE.get(unit) or _VIEWPORT_UNITS.get(unit)
    if pixels is None:
        raise _UnknownValue
    return pixels


def _is_comma(token: Any) -> bool:
    return bool(token.type == "literal" and token.value == ",")


def _split(tokens: Tokens) -> Iterator[Tokens]:
    part: list[Any] = []
    for token in tokens:
        if _is_comma(token):
            yield part
            part = []
        else:
            part.append(token)
    yield part


def _sum(tokens: Tokens, units: Units, depth: int) -> "Length | float":
    """Operands with operators between them; products bind first."""
    found = parts(tokens)
    if len(found) % 2 == 0:
        raise _UnknownValue
    total: Length | float | None = None
    product = _operand(found[0], units, depth)
    sign = 1.0
    for operator, token in zip(found[1::2], found[2::2], strict=True):
        operand = _operand(token, units, depth)
        if operator == "*":
            product = _times(product, operand)
        elif operator == "/" and isinstance(operand, float):
            product = _times(product, 1 / operand)
        elif operator in ("+", "-"):
            total = _plus(total, _times(product, sign))
            product, sign = operand, 1.0 if operator == "+" else -1.0
        else:
            raise _UnknownValue
    return _plus(total, _times(product, sign))


def _times(left: "Length | float", right: "Length | float") -> "Length | float":
    if isinstance(left, Length) and isinstance(right, Length):
        raise _UnknownValue
    if isinstance(left, Length):
        return Length(left.px * float(right), left.percent * float(right))  # type: ignore[arg-type]
    if isinstance(right, Length):
        return _times(right, left)
    return left * right


def _plus(left: "Length | float | None", right: "Length | float") -> "Length | float":
    if left is None:
        return right
    if isinstance(left, Length) and isinstance(right, Length):
        return Length(left.px + right.px, left.percent + right.percent)
    if isinstance(left, Length) or isinstance(right, Length):
        raise _UnknownValue
    return left + right


def _rank(value: "Length | float") -> float:
    """By what `min()` and `max()` compare: per cent as of the viewport's width."""
    if isinstance(value, Length):
        return value.px + value.percent * VIEWPORT[0] / 100
    return value


def _least(values: "list[Length | float]") -> "Length | float":
    return min(values, key=_rank)


def _greatest(values: "list[Length | float]") -> "Length | float":
    return max(values, key=_rank)


def _clamped(values: "list[Length | float]") -> "Length | float":
    if len(values) != 3:
        raise _UnknownValue
    return _greatest([values[0], _least(values[1:])])


def _only(values: "list[Length | float]") -> "Length | float":
    if len(values) != 1:
        raise _UnknownValue
    return values[0]


_FUNCTIONS: Final[dict[str, "Callable[[list[Length | float]], Length | float]"]] = {
    "calc": _only,
    "-webkit-calc": _only,
    "min": _least,
    "max": _greatest,
    "clamp": _clamped,
}

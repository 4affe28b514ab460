"""Removes text that a browser does not show, as far as the page's own styles say.

What they leave open counts as shown, and so do text one click away and text that the page holds
back only until its scripts have run: losing what a page says is worse than keeping what it hides.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import tinycss2
from selectolax.lexbor import LexborHTMLParser, LexborNode

from webrag.ingestion.html.css.cascade import Declared, font_size, resolved
from webrag.ingestion.html.css.selectors import Elements, Selector
from webrag.ingestion.html.css.sheets import (
    Declaration,
    Sheets,
    declarations_of,
    read_sheets,
)
from webrag.ingestion.html.css.values import (
    VIEWPORT,
    Color,
    Length,
    Units,
    color_of,
    length_of,
    numbers_of,
    parts,
)
from webrag.ingestion.html.tree import attribute, drop, inline_text, select

Tokens = Sequence[Any]

# Below these nobody reads a text; what is above stays, however hard it is to read.
_LEAST_OPACITY: Final = 0.1
_LEAST_FONT: Final = 2.0
_LEAST_SCALE: Final = 0.1
_LEAST_BOX: Final = 5.0
_MOST_BLUR: Final = 5.0
# White on almost white.
_NEAR: Final = 0.06
_FAR_PX: Final = 999.0
_FAR_PERCENT: Final = 100.0
_FAR_INDENT: Final = 100.0
_WHITE: Final = Color(1.0, 1.0, 1.0)
_BLACK: Final = Color(0.0, 0.0, 0.0)
# Reasons that a control of the page may lift.
_COLLAPSED: Final = frozenset({"display", "visibility", "opacity", "box"})
_CONTROL: Final = (
    "button, summary, label, [role=button], [role=tab], [onclick], a[data-toggle],"
    " a[data-bs-toggle], [aria-controls], [aria-expanded]"
)
_NAMING: Final = ("aria-controls", "href", "data-target", "data-bs-target", "data-tab", "onclick")
# Reasons that the beginning of an animation may give, with what scripts animate elements by.
_FADING: Final = frozenset(
    "transition transition-property will-change transform translate animation-name".split()  # noqa: SIM905
)
_FADING_ATTRIBUTE: Final = re.compile(r"data-(?:aos|sal|sr|wow|scroll|animat|reveal|framer|w-id)")
_FADING_CLASS: Final = re.compile(
    r"(?:^|[\s_-])(?:aos|wow|fade|reveal|appear|animate|scroll)", re.IGNORECASE
)
# A guard hides the page until it is complete: what hides more than this share of its text.
_GUARDED_SHARE: Final = 0.5
_MOST_GUARDS: Final = 4
_TEXT: Final = ("visibility", "font", "text-indent", "color", "text-fill-color", "background")
_PLACES: Final = ("position", "left", "right", "top", "bottom", "inset", "margin", "padding")
# What the declarations begin with that may bring a reason about.
_FAMILIES: Final = {
    "display": ("display", "content-visibility"),
    "opacity": ("opacity", "filter"),
    "scale": ("zoom", "scale", "transform"),
    "place": (*_PLACES, "translate", "transform"),
    "clip": ("clip",),
    "box": ("height", "width", "max", "min", "line-height", "overflow", "block", "inline"),
    "text": _TEXT,
}
# Elements that a style sheet from elsewhere seldom colours.
_PLAIN: Final = frozenset("b big em font i s small span strike strong sub sup u".split())  # noqa: SIM905
_SPEECHLESS: Final = frozenset({"script", "style", "template", "noscript"})
# Styles that leave any text where it is and visible are not worth following.
_MAY_HIDE: Final = re.compile(
    r"none|hid|coll|opac|filter|font|zoom|scale|trans|rotate|position|inset|-\s*[\d.]|indent|clip"
    r"|overflow|color|background|fill|anim|height\s*:\s*0|[\\(]|/\*",
    re.IGNORECASE,
)
_MOST_NAMED: Final = 20_000
_WORD: Final = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class _Around:
    """What an element takes over from those around it.

    Attributes:
        background: None when it is a picture, or not known.
        color: None when it is not known.
        ink: Opacity of the text's colour.
    """

    units: Units = field(default_factory=Units)
    variables: Mapping[str, Tokens] = field(default_factory=dict)
    opacity: float = 1.0
    scale: float = 1.0
    background: Color | None = _WHITE
    color: Color | None = _BLACK
    fill: Color | None = None
    is_visible: bool = True
    is_indented: bool = False
    is_shadowed: bool = False


_Weighed = tuple[tuple[Any, ...], Declaration]


@dataclass(slots=True)
class _Style:
    """Declarations for one element: of sheets by strength, of its own attribute."""

    weighed: list[_Weighed] = field(default_factory=list)
    own: list[Declaration] = field(default_factory=list)

    @property
    def key(self) -> tuple[int, ...]:
        """The same for elements with the same declarations."""
        return (*(id(each) for _, each in self.weighed), 0, *map(id, self.own))

    def ordered(self, state: Sequence[_Weighed] = ()) -> list[Declaration]:
        """Every declaration that counts, in a state as well, the weakest first."""
        weighed = [*self.weighed, *state]
        weighed += [((each.important, 2, (0, 0, 0), 0), each) for each in self.own]
        return [each for _, each in sorted(weighed, key=lambda pair: pair[0])]


def remove_unseen(tree: LexborHTMLParser) -> None:
    """Remove elements and loose text that styles hide; call it before anything else is removed."""
    root, body = tree.root, tree.body
    sheets = read_sheets(tree)
    if root is None or body is None:
        return
    if not sheets.rules and not _has_telling_styles(body):
        return
    elements = Elements(root)
    styles = _styles(elements, sheets)
    sheets.is_complete = sheets.is_complete and not elements.is_exhausted
    if styles:
        _Page(elements, styles, sheets, _canvas(tree, sheets)).remove()


def text_length(node: LexborNode) -> int:
    """How many letters and signs an element shows when nothing in it is hidden."""
    shown = (
        each.text_content or ""
        for each in node.traverse(include_text=True)
        if each.is_text_node and getattr(each.parent, "tag", None) not in _SPEECHLESS
    )
    return sum(len(word) for text in shown for word in text.split())


def _has_telling_styles(body: LexborNode) -> bool:
    if body.css_first("[bgcolor], font") is not None:
        return True
    return any(_MAY_HIDE.search(attribute(node, "style")) for node in body.css("[style]"))


def _canvas(tree: LexborHTMLParser, sheets: Sheets) -> _Around:
    """What the page begins with: black on white, unless something else may say otherwise."""
    schemes = [attribute(node, "content") for node in tree.css("meta[name=color-scheme]")]
    schemes += [
        tinycss2.serialize(each.value)
        for rule in sheets.rules
        for each in rule.declarations
        if each.name == "color-scheme"
    ]
    if sheets.is_complete and not any("dark" in scheme for scheme in schemes):
        return _Around()
    return _Around(background=None, color=None)


def _styles(elements: Elements, sheets: Sheets) -> dict[int, _Style]:
    styles: defaultdict[int, _Style] = defaultdict(_Style)
    own: dict[str, list[Declaration]] = {}
    for selector, weighed in _weighed(sheets, is_state=False):
        for at in elements.matching(selector, weight=len(weighed)):
            styles[at].weighed.extend(weighed)
    for at, node in enumerate(elements.nodes):
        attributes = node.attributes
        text = (attributes.get("style") or "")[:5_000]
        if text:
            if text not in own:
                own[text] = declarations_of(text)
            styles[at].own = own[text]
        legacy = [
            (name, attributes.get(key))
            for name, key in (
                ("background-color", "bgcolor"),
                ("background-image", "background"),
                ("color", "text"),
                ("color", "color"),
            )
            if key != "color" or node.tag == "font"
        ]
        for name, value in legacy:
            if value and value.strip():
                tokens = tinycss2.parse_component_value_list(value[:100])
                styles[at].weighed.append(
                    ((False, 0, (0, 0, 0), -1), Declaration(name, tokens, important=False))
                )
    return {at: style for at, style in styles.items() if style.weighed or style.own}


def _weighed(sheets: Sheets, *, is_state: bool) -> Iterator[tuple[Selector, list[_Weighed]]]:
    """The selectors of all rules, each with its declarations and how much these count."""
    for rule in sheets.rules:
        for selector in rule.selectors:
            if selector.is_state == is_state:
                strength = selector.specificity, rule.order
                yield (
                    selector,
                    [
                        ((each.important, int(rule.layered == each.important), *strength), each)
                        for each in rule.declarations
                    ],
                )


class _Page:
    """Walks a page from the outside in and notes what nobody sees."""

    def __init__(
        self,
        elements: Elements,
        styles: Mapping[int, _Style],
        sheets: Sheets,
        canvas: _Around,
    ) -> None:
        self._elements = elements
        self._styles = styles
        self._sheets = sheets
        self._keyframes = sheets.keyframes
        self._has_scripts = sheets.has_scripts
        self._is_complete = sheets.is_complete
        self._canvas = canvas
        self._named: set[str] | None = None
        self._guards: set[int] = set()
        # Most elements with the same declarations lie in the same surroundings.
        self._known: dict[tuple[tuple[int, ...], int], tuple[_Around, _Around, str]] = {}

    def remove(self) -> None:
        """Remove what is hidden."""
        gone, mute = self._hidden()
        for _ in range(_MOST_GUARDS if self._has_scripts or not self._is_complete else 0):
            guards = self._newly_guarded(gone, mute) if gone or mute else set()
            if not guards:
                break
            self._guards |= guards
            self._known.clear()
            gone, mute = self._hidden()
        silent = self._silent(set(mute), list(gone))
        drop([self._elements.nodes[at] for at in sorted({*gone, *silent})])

    def _hidden(self) -> tuple[dict[int, str], dict[int, int]]:
        """Elements unseen with all they hold, each with why, and those whose own text is unseen.

        The latter come with the element that makes it so.
        """
        elements = self._elements
        around: list[_Around] = []
        gone: dict[int, str] = {}
        mute: dict[int, int] = {}
        end = 0
        for at, node in enumerate(elements.nodes):
            outer = around[elements.parent[at]] if at else self._canvas
            if at < end:  # inside of what is gone
                around.append(outer)
                continue
            known = outer if self._is_complete else _forgetting(node, outer)
            inner, reason = self._entered(at, node, known)
            around.append(inner)
            if reason:
                gone[at] = reason
                end = elements.end[at]
            elif elements.parent[at] in mute if inner is outer else _hides_text(inner):
                mute[at] = mute.get(elements.parent[at], at)
        return gone, mute

    def _newly_guarded(self, gone: Mapping[int, str], mute: Mapping[int, int]) -> set[int]:
        """Declarations that hide so much of the page that they cannot be meant to last."""
        nodes = self._elements.nodes
        hidden: Counter[frozenset[int]] = Counter()
        for at, reason in gone.items():
            hidden[self._blamed(at, reason)] += text_length(nodes[at])
        for at, cause in mute.items():
            hidden[self._blamed(cause, "text")] += _own_text_length(nodes[at])
        hidden.pop(frozenset(), None)
        least = text_length(nodes[0]) * _GUARDED_SHARE
        return {each for blamed, length in hidden.items() if length > least for each in blamed}

    def _blamed(self, at: int, reason: str) -> frozenset[int]:
        style = self._styles.get(at)
        declarations = style.ordered() if style is not None else []
        family = (*_FAMILIES[reason], "animation")
        blamed = (each for each in declarations if id(each) not in self._guards)
        return frozenset(
            id(each) for each in blamed if each.name.removeprefix("-webkit-").startswith(family)
        )

    def _entered(self, at: int, node: LexborNode, outer: _Around) -> tuple[_Around, str]:
        """What holds inside an element, and why it is unseen with all it holds."""
        style = self._styles.get(at)
        if style is None:
            return outer, ""
        if node.tag in _KEPT:
            inner, _ = self._judged(self._counting(style), node, outer)
            return _as_seen(inner), ""
        key = (style.key, id(outer))
        if key not in self._known:
            found, reason = self._judged(self._counting(style), node, outer)
            self._known[key] = (outer, outer if found == outer else found, reason)
        _, inner, reason = self._known[key]
        if reason == "opacity" and self._has_scripts:  # depends on the element's attributes as well
            inner, reason = self._judged(self._counting(style), node, outer)
        if _collapse(inner, reason, outer) in _COLLAPSED and self._is_one_click_away(
            at, style, outer
        ):
            return outer, ""
        return (outer if reason else inner), reason

    def _counting(self, style: _Style) -> list[Declaration]:
        return [each for each in style.ordered() if id(each) not in self._guards]

    def _judged(
        self, ordered: list[Declaration], node: LexborNode, outer: _Around
    ) -> tuple[_Around, str]:
        declared, variables = resolved(ordered, outer.variables)
        declared = self._after_animation(declared, variables)
        inner = _inside(declared, variables, node, outer)
        reason = _reason(declared, inner)
        if reason == "opacity" and self._has_scripts and _fades_in(declared, node):
            inner = replace(inner, opacity=outer.opacity)
            reason = _reason(declared, inner)
        return inner, reason

    def _after_animation(self, declared: Declared, variables: Mapping[str, Tokens]) -> Declared:
        """What an animation leaves, or shows again and again, takes the place of the beginning."""
        lasts = "animation-fill-mode" in declared or "animation-iteration-count" in declared
        if "animation-name" not in declared or not lasts:
            return declared
        stays = _word(declared, "animation-fill-mode") in ("forwards", "both")
        for token in declared["animation-name"]:
            frames = self._keyframes.get(getattr(token, "value", ""), [])
            left, _ = resolved(frames, variables)
            if stays or _opacity(left, Units()) >= _LEAST_OPACITY:
                declared = {**declared, **left}
        return declared

    @cached_property
    def _states(self) -> list[tuple[set[int], list[_Weighed]]]:
        """The elements that a click may bring into each state, with what it declares."""
        states = _weighed(self._sheets, is_state=True)
        found = ((self._elements.matching(each), weighed) for each, weighed in states)
        return [(meant, weighed) for meant, weighed in found if meant]

    def _is_one_click_away(self, at: int, style: _Style, outer: _Around) -> bool:
        node = self._elements.nodes[at]
        own = _collapse(*self._judged(style.own, node, outer), outer)
        if own and not self._has_scripts:
            return False  # nothing but a script shows it
        if attribute(node, "role") == "tabpanel":
            return True
        if own:
            return attribute(node, "id") in self._names()
        state = [each for meant, weighed in self._states if at in meant for each in weighed]
        if state and not _collapse(*self._judged(style.ordered(state), node, outer), outer):
            return True
        if self._has_scripts and self._elements.is_exhausted:
            return True  # a rule that was left aside may show it
        return attribute(node, "id") in self._names() or _follows_control(node)

    def _names(self) -> set[str]:
        """The elements that a control with a label names."""
        if self._named is None:
            self._named = set()
            controls = ", ".join(f"[{name}]" for name in _NAMING)
            for control in select(self._elements.nodes[0], controls)[:_MOST_NAMED]:
                if inline_text(control):
                    self._named.update(_named_by(control))
            self._named.discard("")
        return self._named

    def _silent(self, mute: set[int], gone: Sequence[int]) -> list[int]:
        """Elements all of whose text is hidden; loose hidden text beside visible is removed."""
        elements = self._elements
        if not mute:
            return []
        removed = set(gone)
        speaks = [False] * len(elements.nodes)
        for at in range(len(elements.nodes) - 1, 0, -1):
            if at in removed:
                continue
            if at not in mute and not speaks[at]:
                speaks[at] = _has_own_text(elements.nodes[at])
            parent = elements.parent[at]
            speaks[parent] = speaks[parent] or speaks[at]
        silent = [at for at in mute if not speaks[at] and elements.nodes[at].tag not in _KEPT]
        for at in mute.difference(silent):
            _remove_own_text(elements.nodes[at])
        return silent


_KEPT: Final = frozenset({"html", "body", "head"})


def _has_own_text(node: LexborNode) -> bool:
    if node.tag in ("img", "math", "svg", "input"):
        return True
    children = node.iter(include_text=True)
    return any(child.is_text_node and (child.text_content or "").strip() for child in children)


def _own_text_length(node: LexborNode) -> int:
    texts = (each.text_content or "" for each in node.iter(include_text=True) if each.is_text_node)
    return sum(len(word) for text in texts for word in text.split())


def _remove_own_text(node: LexborNode) -> None:
    for child in list(node.iter(include_text=True)):
        if child.is_text_node:
            child.remove()


def _follows_control(node: LexborNode) -> bool:
    before = node.prev
    while before is not None and not before.is_element_node:
        before = before.prev
    if before is None or not inline_text(before):
        return False
    return _is_control(before) or before.css_first(_CONTROL) is not None


def _is_control(node: LexborNode) -> bool:
    attributes = node.attributes
    if node.tag in ("button", "summary"):
        return True
    return attributes.get("role") in ("button", "tab") or any(
        name in attributes for name in ("onclick", "aria-controls", "aria-expanded")
    )


def _named_by(control: LexborNode) -> Iterable[str]:
    for name in _NAMING:
        value = attribute(control, name)[:500]
        if name == "onclick":
            yield from _WORD.findall(value)
        elif name != "href" or value.startswith("#"):
            yield from (word.lstrip("#.") for word in value.split())


def _word(declared: Declared, name: str) -> str:
    tokens = declared.get(name, ())
    return str(getattr(tokens[0], "lower_value", "")) if tokens else ""


def _collapse(inner: _Around, reason: str, outer: _Around) -> str:
    """Why an element is unseen, though one inside may be seen; "" when it is seen."""
    return reason or ("visibility" if outer.is_visible and not inner.is_visible else "")


def _as_seen(inner: _Around) -> _Around:
    """What a guard on the whole page leaves when it is lifted."""
    is_readable = inner.units.em > _LEAST_FONT
    seen = replace(
        inner,
        units=Units(16.0 if not is_readable else inner.units.em, inner.units.rem or 16.0),
        opacity=1.0,
        scale=1.0,
        is_visible=True,
        is_indented=False,
    )
    return replace(seen, color=None, fill=None) if _hides_text(seen) else seen


def _forgetting(node: LexborNode, outer: _Around) -> _Around:
    """What is still known inside an element that sheets from elsewhere may paint."""
    is_tiny = outer.units.em <= _LEAST_FONT
    ink = outer.fill or outer.color
    is_known = outer.background is not None or (ink is not None and ink.alpha >= _LEAST_OPACITY)
    if not is_known and not is_tiny:
        return outer
    if node.tag in _PLAIN and not node.attributes.get("class") and not node.attributes.get("id"):
        return outer
    return replace(
        outer,
        units=Units(rem=outer.units.rem) if is_tiny else outer.units,
        background=None,
        color=outer.color if outer.color and outer.color.alpha < _LEAST_OPACITY else None,
        fill=outer.fill if outer.fill and outer.fill.alpha < _LEAST_OPACITY else None,
    )


def _fades_in(declared: Declared, node: LexborNode) -> bool:
    """Whether the element looks as if a script were to bring it in."""
    if not _FADING.isdisjoint(declared) or _FADING_CLASS.search(attribute(node, "class")):
        return True
    return any(_FADING_ATTRIBUTE.match(name) for name in node.attributes)


def _inside(
    declared: Declared, variables: Mapping[str, Tokens], node: LexborNode, outer: _Around
) -> _Around:
    units = _units(declared, node, outer)
    seen = _word(declared, "visibility")
    indent = _length(declared, "text-indent", units)
    return replace(
        outer,
        units=units,
        variables=variables,
        opacity=outer.opacity * _opacity(declared, units),
        scale=outer.scale * _scale(declared),
        background=_background(declared, outer),
        color=_ink(declared, "color", node, outer.color),
        fill=_ink(declared, "-webkit-text-fill-color", node, outer.fill),
        is_visible=seen not in ("hidden", "collapse") if seen else outer.is_visible,
        is_indented=_is_far(indent, _FAR_INDENT) if indent else outer.is_indented,
        is_shadowed=_is_drawn_otherwise(declared, outer),
    )


def _units(declared: Declared, node: LexborNode, outer: _Around) -> Units:
    if "font-size" not in declared:
        return outer.units
    size = font_size(declared["font-size"], outer.units)
    if size is None:
        return outer.units
    return Units(em=size, rem=size if node.tag == "html" else outer.units.rem)


def _length(declared: Declared, name: str, units: Units) -> Length | None:
    tokens = declared.get(name)
    return length_of(tokens[0], units) if tokens else None


def _is_far(length: Length | None, pixels: float = _FAR_PX) -> bool:
    """Whether it leads out at the left or at the top."""
    return length is not None and (length.px <= -pixels or length.percent <= -_FAR_PERCENT)


def _is_far_beyond(length: Length | None) -> bool:
    return length is not None and (length.px >= 2 * VIEWPORT[0] or length.percent >= 200)


def _opacity(declared: Declared, units: Units) -> float:
    found = numbers_of(declared.get("opacity", ()))
    opacity = min(1.0, max(0.0, found[0])) if found else 1.0
    for token in declared.get("filter", ()):
        if token.type == "function":
            numbers = numbers_of(token.arguments)
            lengths = [length_of(part, units) for part in parts(token.arguments)]
            if token.lower_name == "opacity" and numbers:
                opacity *= max(0.0, numbers[0])
            if token.lower_name == "blur" and lengths and lengths[0]:
                opacity *= float(lengths[0].px < _MOST_BLUR)
    return opacity


def _scale(declared: Declared) -> float:
    scale = 1.0
    for name in ("zoom", "scale"):
        found = numbers_of(declared.get(name, ()))
        # `zoom: 0` is its default; browsers differ, and nobody means it kindly.
        scale *= min((abs(number) for number in found), default=1.0)
    for token in declared.get("transform", ()):
        if token.type == "function":
            scale *= _scale_of(token.lower_name, token.arguments)
    return scale


def _scale_of(name: str, arguments: Tokens) -> float:
    numbers = numbers_of(arguments)
    if name.startswith("scale") and numbers:
        return min(abs(number) for number in numbers)
    if name == "matrix" and len(numbers) == 6:
        a, b, c, d = numbers[:4]
        return math.sqrt(abs(a * d - b * c))
    if name == "matrix3d" and len(numbers) == 16:
        return math.sqrt(abs(numbers[0] * numbers[5] - numbers[1] * numbers[4]))
    if name in ("rotatex", "rotatey") and arguments:
        return _edge_on(parts(arguments)[0])
    return 1.0


def _edge_on(angle: Any) -> float:
    turns = {"deg": 360.0, "turn": 1.0, "grad": 400.0}
    if angle.type != "dimension" or angle.lower_unit not in turns:
        return 1.0
    turned = abs(angle.value / turns[angle.lower_unit]) % 0.5
    return float(abs(turned - 0.25) > 0.005)


def _background(declared: Declared, outer: _Around) -> Color | None:
    background = outer.background
    if "background-color" in declared:
        colors = [color_of(token) for token in declared["background-color"]]
        known = [color for color in colors if color is not None]
        if known and known[0].alpha >= 1:
            background = known[0]
        elif known and background is not None:
            background = known[0].over(background)
        elif not known and _word(declared, "background-color") not in ("none", "transparent"):
            background = None
    elif _word(declared, "position") not in ("", "static"):
        background = None  # it may lie on a picture or on another box
    return None if "background-image" in declared and _paints(declared) else background


def _paints(declared: Declared) -> bool:
    return _word(declared, "background-image") != "none"


def _ink(declared: Declared, name: str, node: LexborNode, outer: Color | None) -> Color | None:
    if name not in declared:
        return outer
    # The colours of the whole page are made for its background, wherever that is set.
    if node.tag in ("html", "body") and "background-color" not in declared:
        return None
    if _word(declared, name) == "currentcolor":
        return outer
    return color_of(declared[name][0])


def _is_drawn_otherwise(declared: Declared, outer: _Around) -> bool:
    """Whether a shadow, an outline or a background cut to the letters shows the text."""
    if _word(declared, "background-clip") == "text":
        return True
    for name in ("text-shadow", "text-stroke"):
        if name in declared:
            return _word(declared, name) != "none"
    return outer.is_shadowed


def _hides_text(inner: _Around) -> bool:
    """Whether text right inside the element is unseen, though an inner element's may be seen."""
    if not inner.is_visible or inner.is_indented or inner.units.em <= _LEAST_FONT:
        return True
    ink = inner.fill or inner.color
    if ink is None or inner.is_shadowed:
        return False
    if ink.alpha < _LEAST_OPACITY:
        return True
    background = inner.background
    return background is not None and ink.over(background).is_near(background, _NEAR)


def _reason(declared: Declared, inner: _Around) -> str:
    """Why an element is unseen with all it holds; "" when it is seen."""
    if _word(declared, "display") == "none" or _word(declared, "content-visibility") == "hidden":
        return "display"
    if inner.opacity < _LEAST_OPACITY:
        return "opacity"
    if inner.scale < _LEAST_SCALE:
        return "scale"
    if _is_outside(declared, inner.units):
        return "place"
    if _is_clipped(declared, inner.units):
        return "clip"
    return "box" if _is_tiny(declared, inner.units) else ""


def _is_outside(declared: Declared, units: Units) -> bool:
    position = _word(declared, "position")
    if position != "static" and _is_placed_outside(declared, units, position):
        return True
    for side in ("left", "top"):
        margin = _length(declared, f"margin-{side}", units)
        padding = _length(declared, f"padding-{side}", units) or Length()
        if margin is not None and margin.px + padding.px <= -_FAR_PX:
            return True
        if margin is not None and margin.percent + padding.percent <= -2 * _FAR_PERCENT:
            return True
    return any(_is_far(moved) or _is_far_beyond(moved) for moved in _moves(declared, units))


def _is_placed_outside(declared: Declared, units: Units, position: str) -> bool:
    places = {side: _length(declared, side, units) for side in ("left", "top", "right", "bottom")}
    if any(_is_far(place) for place in places.values()):
        return True
    if _is_far_beyond(places["left"]) or _is_far_beyond(places["right"]):
        return True
    # A long page is scrolled down to what stands far below, unless it is fixed to the window.
    below = places["top"] or places["bottom"] or Length()
    is_below = below.px >= VIEWPORT[1] or below.percent >= _FAR_PERCENT
    return position == "fixed" and is_below


def _moves(declared: Declared, units: Units) -> list[Length]:
    found = [length_of(token, units) for token in declared.get("translate", ())]
    for token in declared.get("transform", ()):
        if token.type == "function" and token.lower_name.startswith("translate"):
            found += [length_of(part, units) for part in parts(token.arguments)]
    # A box moved by its own size slides beside its place, as those of carousels do.
    return [replace(move, percent=move.percent / 2) for move in found if move is not None]


def _is_clipped(declared: Declared, units: Units) -> bool:
    for token in declared.get("clip", ()):
        if token.type == "function" and token.lower_name == "rect":
            sides = [length_of(part, units) for part in parts(token.arguments) if part != ","]
            return _is_empty_rect(sides)
    path = declared.get("clip-path", ())
    return any(token.type == "function" and _is_empty_shape(token, units) for token in path)


def _is_empty_rect(sides: Sequence[Length | None]) -> bool:
    if len(sides) != 4:
        return False
    top, right, bottom, left = sides
    flat = top is not None and bottom is not None and bottom.px - top.px <= 2
    narrow = left is not None and right is not None and right.px - left.px <= 2
    return flat or narrow


def _is_empty_shape(shape: Any, units: Units) -> bool:
    arguments = parts(shape.arguments)
    lengths = [length for part in arguments if (length := length_of(part, units)) is not None]
    name = shape.lower_name
    if name == "inset":
        return _is_cut_away(lengths[:4])
    if name in ("circle", "ellipse"):
        return bool(lengths) and min(lengths[0].px, 9) + lengths[0].percent <= 2
    if name == "rect":
        return _is_empty_rect([*lengths, *([None] * 4)][:4])
    if name == "xywh":
        return any(side.px <= 2 and side.percent <= 0 for side in lengths[2:4])
    return name == "polygon" and _area(lengths) < 1


def _is_cut_away(insets: Sequence[Length]) -> bool:
    """Whether opposite sides meet, or lie so far inside that no text is as large."""
    if not insets:
        return False
    top, right = insets[0], insets[min(1, len(insets) - 1)]
    bottom = insets[2] if len(insets) > 2 else top
    left = insets[3] if len(insets) > 3 else right
    pairs = ((top, bottom), (left, right))
    return any(one.percent + two.percent >= 98 or one.px + two.px >= _FAR_PX for one, two in pairs)


def _area(points: Sequence[Length]) -> float:
    """Of a polygon, whatever its units are; that they are mixed seldom makes an area of nothing."""
    flat = [point.px + point.percent for point in points]
    corners = list(zip(flat[::2], flat[1::2], strict=False))
    following = [*corners[1:], *corners[:1]]
    crossed = (x * v - u * y for (x, y), (u, v) in zip(corners, following, strict=True))
    return abs(sum(crossed)) / 2


def _is_tiny(declared: Declared, units: Units) -> bool:
    """Whether a box that shows nothing beyond itself has no room for text."""
    tall = _word(declared, "overflow-y") in ("hidden", "clip", "scroll", "auto")
    wide = _word(declared, "overflow-x") in ("hidden", "clip", "scroll", "auto")
    if not (tall or wide):
        return False
    return _is_small(declared, units, "height", ("padding-top", "padding-bottom")) or _is_small(
        declared, units, "width", ("padding-left",)
    )


def _is_small(declared: Declared, units: Units, side: str, paddings: Sequence[str]) -> bool:
    room = [_length(declared, name, units) for name in (f"min-{side}", *paddings)]
    if any(length and (length.px >= _LEAST_BOX or length.percent > 0) for length in room):
        return False
    names = [side, f"max-{side}", *(["line-height"] if side == "height" else [])]
    found = [_length(declared, name, units) for name in names]
    return any(
        length is not None and length.px < _LEAST_BOX and length.percent <= 0 for length in found
    )

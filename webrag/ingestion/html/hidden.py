"""Removes text that a browser does not show, as far as the page's own styles say simply.

What they leave open counts as shown, and so do text one click away and text that the page holds
back only until its scripts have run: losing what a page says is worse than keeping what it hides.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from operator import itemgetter
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webrag.ingestion.html import unseen
from webrag.ingestion.html.sheets import Rule, Sheets, without_strings
from webrag.ingestion.html.tree import (
    ancestors,
    attribute,
    drop,
    inline_text,
    select,
    text_length,
)

# Reasons that a control of the page may lift, and what a rule says that lifts them.
_COLLAPSED: Final = frozenset({"display", "visibility", "opacity", "box"})
_PAINTING: Final = re.compile(r"color|background")
_LIFTING: Final = re.compile(r"display|visibility|opacity|height|overflow")
_CONTROL: Final = (
    "button, summary, label, [role=button], [role=tab], [onclick], a[data-toggle],"
    " a[data-bs-toggle], [aria-controls], [aria-expanded]"
)
_NAMING: Final = ("aria-controls", "data-target", "data-bs-target", "data-tab", "onclick", "href")
_NAMED: Final = re.compile(r"[^\s#'\"(),;]+")
_SCRIPTS: Final = (
    "script[src], script:not([type]), script[type=''], script[type=module],"
    " script[type*=javascript], body[onload]"
)
_STYLED_ELSEWHERE: Final = "link[rel~=stylesheet], link[as=style], script[src]"
# What scripts animate elements by.
_FADING: Final = frozenset({"transition", "will-change", "transform", "translate"})
_FADING_MARK: Final = re.compile(
    r"(?:^|[\s_-])(?:aos|wow|fade|reveal|appear|animate|scroll)"
    r"|data-(?:aos|sal|sr|wow|scroll|anim|reveal|framer|w-id)",
    re.IGNORECASE,
)
# A guard hides the page until it is complete: what hides more than this share of its text.
_GUARDED_SHARE: Final = 0.4
# Elements that a style sheet from elsewhere seldom paints.
_PLAIN: Final = frozenset("b big em font i s small span strike strong sub sup u".split())  # noqa: SIM905
_PAINT: Final = ("-webkit-text-fill-color", "color", "background-color", "background-image")
_KEPT: Final = frozenset({"html", "body", "head"})
_WORD: Final = re.compile(r"[\w-]+|\*")
_WHITE: Final[unseen.Color] = (1.0, 1.0, 1.0, 1.0)


def remove_unseen(tree: LexborHTMLParser) -> None:
    """Remove elements and loose text that styles hide; call it before anything else is removed."""
    if tree.body is not None:
        _Page(tree, tree.body).remove()


class _Page:
    """The elements of a page that something may hide, with the values that count for each."""

    def __init__(self, tree: LexborHTMLParser, body: LexborNode) -> None:
        self._tree, self._body = tree, body
        self._has_scripts = tree.css_first(_SCRIPTS) is not None
        self._sheets = Sheets(tree, has_scripts=self._has_scripts)
        # Colours of rules are only known where nothing else has a say.
        self._is_complete = self._sheets.is_all and tree.css_first(_STYLED_ELSEWHERE) is None
        self._watched: dict[int, LexborNode] = {}
        self._near: list[Rule] = []
        self._said: list[tuple[tuple[int, ...], int, str, str]] = []
        self._declared: defaultdict[int, dict[str, str]] = defaultdict(dict)
        self._read()
        for _, node_id, name, value in sorted(self._said, key=itemgetter(0)):
            self._declared[node_id][name] = value

    def _read(self) -> None:
        """Find what may be hidden, and everything that is said of it."""
        told: set[Rule] = set()
        reasons = {"color"}
        for rule in self._sheets.rules:
            why = unseen.reasons_of(rule.block)
            if why or (self._is_complete and _PAINTING.search(rule.block)):
                told.add(rule)
                meant = list(self._sheets.meant(rule))
                if meant and not (why and self._is_guard(node for _, node in meant)):
                    reasons |= why
                    for weight, node in meant:
                        self._say(node, weight, rule.block)
                        self._watch(node, why)
        for node in self._tree.css("[style], font[color], [bgcolor], [background]"):
            style = without_strings(attribute(node, "style"))
            why = unseen.reasons_of(style)
            self._say(node, (-1,), _legacy(node))
            if not (why and self._is_guard([node])):
                reasons |= why
                self._say(node, (1,), style)
                if why or "color" in style or node.tag == "font":
                    self._watch(node, why)
        if self._watched:
            self._read_others(told, reasons)

    def _watch(self, node: LexborNode, reasons: frozenset[str]) -> None:
        self._watched[node.mem_id] = node
        if not reasons.isdisjoint(unseen.INHERITED):
            # What an inherited property hides may be shown further inside.
            self._watched |= {inner.mem_id: inner for inner in node.css("*")}

    def _say(self, node: LexborNode, weight: tuple[int, ...], block: str) -> None:
        for name, value, is_important in unseen.declarations(block) if block else ():
            self._said.append(((is_important, *weight), node.mem_id, name, value))

    def _read_others(self, told: set[Rule], reasons: set[str]) -> None:
        """Read the rules that may show what others hide."""
        names = {name.lstrip(".#") for node in self._watched.values() for name in _names_of(node)}
        undoing = re.compile("|".join(unseen.PROPERTIES[why] for why in reasons))
        for rule in self._sheets.rules:
            if not names.isdisjoint(_WORD.findall(rule.selectors)):
                self._near.append(rule)
                is_undoing = rule not in told and undoing.search(rule.block)
                for weight, node in self._sheets.meant(rule) if is_undoing else ():
                    if node.mem_id in self._watched:
                        self._say(node, weight, rule.block)

    def _is_guard(self, nodes: Iterable[LexborNode]) -> bool:
        """Whether elements hold so much of the page that hiding them cannot be meant to last."""
        can_change = self._has_scripts or not self._is_complete
        return can_change and sum(map(text_length, nodes)) > self._guarded

    @cached_property
    def _guarded(self) -> float:
        return text_length(self._body) * _GUARDED_SHARE

    def remove(self) -> None:
        """Remove elements unseen with all they hold, and of others their own text."""
        gone: list[LexborNode] = []
        texts: dict[int, LexborNode] = {}
        for node in self._watched.values():
            declared = self._declared[node.mem_id]
            if node.tag in _KEPT or not declared:
                continue
            reason = unseen.reason_of(declared)
            if reason and not self._comes(node, declared, reason):
                gone.append(node)
                continue
            mute = [
                each for each in unseen.muting(declared) if not self._comes(node, declared, each)
            ]
            mute += ["color"] * self._is_lost(node, declared)
            for name in mute:
                texts |= {text.mem_id: text for text in self._texts(node, name)}
        for text in texts.values():
            text.remove()
        drop(gone)

    def _texts(self, node: LexborNode, name: str) -> Iterator[LexborNode]:
        """The texts that a value of an inherited property reaches."""
        ends = _PAINT if name == "color" else (name,)
        ink = unseen.ink_of(self._declared[node.mem_id])
        is_clear = ink is not None and unseen.is_lost(ink, None)
        reaches_all = self._is_complete or name in ("visibility", "text-indent") or is_clear
        waiting = [node]
        while waiting:
            for child in waiting.pop().iter(include_text=True):
                if child.is_text_node:
                    yield child
                elif child.is_element_node and self._declared[child.mem_id].keys().isdisjoint(ends):
                    waiting += [child] if reaches_all or _is_plain(child) else []

    def _comes(self, node: LexborNode, declared: unseen.Declared, reason: str) -> bool:
        """Whether a click or a script of the page brings the element in."""
        if reason not in _COLLAPSED:
            return False
        own = unseen.declarations(without_strings(attribute(node, "style")))
        is_own = _is_hiding({name: value for name, value, _ in own})
        if reason == "opacity":
            marks = f"{attribute(node, 'class')} {' '.join(node.attributes)}"
            is_marked = not _FADING.isdisjoint(declared) or _FADING_MARK.search(marks)
            is_fading = not is_own or is_marked
            if "animation" in declared or (self._has_scripts and is_fading):
                return True
        is_named = attribute(node, "role") == "tabpanel" or attribute(node, "id") in self._named
        if is_own:
            return self._has_scripts and is_named
        return is_named or _follows_control(node) or self._is_shown_later(node, declared)

    def _is_shown_later(self, node: LexborNode, declared: unseen.Declared) -> bool:
        """Whether a rule shows it in a state, or with a class that a script is still to set."""
        blocks = (block for name in _names_of(node) for block in self._later.get(name, ()))
        said = ({name: value for name, value, _ in unseen.declarations(block)} for block in blocks)
        return any(not _is_hiding({**declared, **shown}) for shown in said)

    @cached_property
    def _later(self) -> Mapping[str, list[str]]:
        """Blocks of rules that mean no element as the page stands, by the last name in them."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for rule in self._near:
            for name in self._sheets.later(rule) if _LIFTING.search(rule.block) else ():
                found[name].append(rule.block)
        return found

    @cached_property
    def _named(self) -> set[str]:
        """The words by which controls with a label name what they open."""
        selector = ", ".join(f"[{name}]" for name in _NAMING[:-1])
        controls = filter(inline_text, select(self._body, f"{selector}, [href^='#']"))
        values = (attribute(each, name) for each in controls for name in _NAMING)
        return {word for value in values for word in _NAMED.findall(value[:500])}

    def _is_lost(self, node: LexborNode, declared: unseen.Declared) -> bool:
        """Whether the element gives its text no colour, or that of what is behind it."""
        ink = unseen.ink_of(declared)
        shadows = (declared.get(name, "none") for name in ("text-shadow", "text-stroke"))
        if ink is None or declared.get("background-clip") == "text" or set(shadows) != {"none"}:
            return False
        return unseen.is_lost(ink, self._ground(node))

    def _ground(self, node: LexborNode) -> unseen.Color | None:
        """The colour behind an element; None when it is a picture, or not known."""
        for each in (node, *ancestors(node)):
            declared = self._declared[each.mem_id]
            value = declared.get("background-color", "transparent")
            color = unseen.color_of(value)
            if declared.get("background-image", "none") != "none":
                return None
            if color is not None and color[3] >= 1:
                return color
            # Set by a sheet from elsewhere, or over a picture or another box.
            is_unknown = value not in ("transparent", "none", "inherit", "initial", "unset")
            if is_unknown or declared.get("position", "static") != "static":
                return None
            if not self._is_complete and not _is_plain(each):
                return None
        schemes = [attribute(node, "content") for node in self._tree.css("meta[name=color-scheme]")]
        schemes += [rule.block for rule in self._sheets.rules if "color-scheme" in rule.block]
        return None if any("dark" in scheme for scheme in schemes) else _WHITE


def _is_hiding(declared: unseen.Declared) -> bool:
    return bool(unseen.reason_of(declared)) or "visibility" in unseen.muting(declared)


def _legacy(node: LexborNode) -> str:
    """What attributes say that styles have replaced, as declarations."""
    said = {"background-color": "bgcolor", "background-image": "background"}
    said |= {"color": "color"} if node.tag == "font" else {}
    found = ((name, attribute(node, each)) for name, each in said.items())
    return ";".join(f"{name}:{value}" for name, value in found if value)


def _names_of(node: LexborNode) -> set[str]:
    """What the last part of a selector may name an element by."""
    names = {f".{name}" for name in attribute(node, "class").split()}
    return {node.tag or "", f"#{attribute(node, 'id')}", "*", *names}


def _is_plain(node: LexborNode) -> bool:
    has_name = attribute(node, "class") or attribute(node, "id")
    return node.tag in _PLAIN and not has_name


def _follows_control(node: LexborNode) -> bool:
    before = node.prev
    while before is not None and not before.is_element_node:
        before = before.prev
    if before is None or not inline_text(before):
        return False
    return before.css_matches(_CONTROL) or before.css_first(_CONTROL) is not None

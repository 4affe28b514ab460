"""Removes text that a browser does not show, as far as the page's own styles say simply.

What they leave open counts as shown, and so do text one click away and text that the page holds
back only until its scripts have run: losing what a page says is worse than keeping what it hides.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from webrag.ingestion.html.styles import (
    FAMILIES,
    LEAST_OPACITY,
    SUSPECT,
    Color,
    Declared,
    Matcher,
    Rule,
    color_of,
    declarations,
    is_lost,
    is_mute,
    last_name,
    read_rules,
    reason_of,
    specificity,
    with_variables,
    without_strings,
)
from webrag.ingestion.html.tree import ancestors, attribute, drop, inline_text, select, text_length

# Properties that hide an element's own text, though an element inside may be seen.
_INHERITED: Final = ("visibility", "font-size", "text-indent")
_INK: Final = ("-webkit-text-fill-color", "color")
_PAINT: Final = (*_INK, "background-color", "background-image")
# Reasons that a control of the page may lift, and what a rule says that lifts them.
_COLLAPSED: Final = frozenset({"display", "visibility", "opacity", "box"})
_LIFTING: Final = re.compile(r"display|visibility|opacity|height|overflow")
_CONTROL: Final = (
    "button, summary, label, [role=button], [role=tab], [onclick], a[data-toggle],"
    " a[data-bs-toggle], [aria-controls], [aria-expanded]"
)
_NAMING: Final = ("aria-controls", "href", "data-target", "data-bs-target", "data-tab", "onclick")
_SCRIPTS: Final = (
    "script[src], script:not([type]), script[type=''], script[type=module],"
    " script[type*=javascript], body[onload]"
)
_ELSEWHERE: Final = "link[rel~=stylesheet], link[as=style], script[src]"
# What a page bears until its scripts run.
_PASSING: Final = re.compile(
    r"[.\[](?:no-?_?js|js-disabled|(?:v-|ng-|x-|un-|data-)?cloak|async-hide|wf-loading|preload"
    r"|(?:no-)?fouc|unresolved)(?![\w-])"
)
# What scripts animate elements by.
_FADING: Final = frozenset({"transition", "will-change", "transform", "translate"})
_FADING_MARK: Final = re.compile(
    r"(?:^|[\s_-])(?:aos|wow|fade|reveal|appear|animate|scroll)"
    r"|data-(?:aos|sal|sr|wow|scroll|anim|reveal|framer|w-id)",
    re.IGNORECASE,
)
# A guard hides the page until it is complete: what hides more than this share of its text.
_GUARDED_SHARE: Final = 0.5
_MOST_GUARDS: Final = 4
# Elements that a style sheet from elsewhere seldom paints.
_PLAIN: Final = frozenset("b big em font i s small span strike strong sub sup u".split())  # noqa: SIM905
_KEPT: Final = frozenset({"html", "body", "head"})
_NAME: Final = re.compile(r"[^\s'\"(),;#.][^\s'\"(),;#]*")
_WORD: Final = re.compile(r"[\w-]+")
_WHITE: Final[Color] = (1.0, 1.0, 1.0, 1.0)
# Selectors of one rule, and a site's pages, share their blocks.
_is_suspect: Final = lru_cache(maxsize=20_000)(SUSPECT.search)

_Found = list[tuple[LexborNode, str]]


class _Style(NamedTuple):
    """The values that count for some elements, why these are unseen, and what mutes their text."""

    declared: Declared
    reason: str
    mute: list[str]


def remove_unseen(tree: LexborHTMLParser) -> None:
    """Remove elements and loose text that styles hide; call it before anything else is removed."""
    if tree.body is not None:
        _Page(tree, tree.body).remove()


class _Page:
    """The elements of a page that something may hide, each with the rules that mean it."""

    def __init__(self, tree: LexborHTMLParser, body: LexborNode) -> None:
        self._tree, self._body = tree, body
        self._rules, is_complete = read_rules(tree)
        self._matcher = Matcher(tree)
        self._has_scripts = tree.css_first(_SCRIPTS) is not None
        is_styled_elsewhere = tree.css_first(_ELSEWHERE) is not None or any(
            "@import" in node.text() for node in tree.css("style")
        )
        # Colours of rules are only known where nothing else has a say.
        self._is_complete = is_complete and not is_styled_elsewhere
        self._lifted: set[int] = set()
        self._watched: dict[int, LexborNode] = {}
        self._meaning: defaultdict[int, list[Rule]] = defaultdict(list)
        self._styles: dict[int, _Style] = {}
        # Most elements share their rules with others.
        self._shared: dict[tuple[Any, ...], _Style] = {}
        self._find()

    def _find(self) -> None:
        paints = ("color", "background") if self._is_complete else ()
        told = dict.fromkeys(
            rule
            for rule in self._rules
            if any(paint in rule.block for paint in paints) or _is_suspect(rule.block)
        )
        for rule in told:
            for node in self._meant(rule):
                self._watched[node.mem_id] = node
                self._meaning[node.mem_id].append(rule)
        for node in self._body.css("[style], font[color]"):
            style = attribute(node, "style")
            if not style or SUSPECT.search(style) or "color" in style:
                self._watched[node.mem_id] = node
        for node in list(self._watched.values()):
            # What an inherited property hides may be shown further inside.
            if self._style(node).mute:
                self._watched |= {inner.mem_id: inner for inner in node.css("*")}
        names = {name for node in self._watched.values() for name in _names_of(node)}
        # In their order: the matcher's effort is bounded, and what it reaches must not vary.
        others = [rule for rule in self._rules if rule not in told]
        for rule in others:
            for node in self._meant(rule) if last_name(rule.selector) in names else ():
                if node.mem_id in self._watched:
                    self._meaning[node.mem_id].append(rule)
                    self._styles.pop(node.mem_id, None)

    def _meant(self, rule: Rule) -> list[LexborNode]:
        if self._has_scripts and _PASSING.search(rule.selector):
            return []
        return self._matcher.matching(rule.selector)

    def _style(self, node: LexborNode) -> _Style:
        """The values that count for an element, of those that it declares or rules give it."""
        found = self._styles.get(node.mem_id)
        if found is None:
            meant = self._meaning.get(node.mem_id, ())
            rules = [rule for rule in meant if id(rule) not in self._lifted]
            style = "" if node.mem_id in self._lifted else attribute(node, "style")
            legacy = tuple((name, value) for name, value in _legacy(node) if value)
            key = (*(rule.order for rule in rules), style, legacy)
            found = self._shared.get(key)
            if found is None:
                found = self._shared[key] = self._read_style(rules, style, dict(legacy))
            self._styles[node.mem_id] = found
        return found

    def _read_style(self, rules: Iterable[Rule], style: str, made: dict[str, str]) -> _Style:
        weighed = [
            ((important, 0, *specificity(rule.selector), rule.order), name, value)
            for rule in rules
            for name, value, important in declarations(rule.block)
        ]
        own = declarations(without_strings(style)) if style else ()
        weighed += [((important, 1, 0, 0, 0, 0), name, value) for name, value, important in own]
        weighed.sort(key=itemgetter(0))  # of equals the last counts
        made.update((name, value) for _, name, value in weighed)
        declared = with_variables(made, self._variables)
        mute = [name for name in _INHERITED if is_mute(name, declared.get(name, ""))]
        return _Style(declared, reason_of(declared), mute)

    @cached_property
    def _variables(self) -> Declared:
        whole = (rule for rule in self._rules if rule.selector in (":root", "html", "body", "*"))
        said = (each for rule in whole if "--" in rule.block for each in declarations(rule.block))
        return {name: value for name, value, _ in said if name.startswith("--")}

    def remove(self) -> None:
        """Remove what is hidden."""
        gone, mute = self._hidden()
        may_come = (gone or mute) and (self._has_scripts or not self._is_complete)
        most = text_length(self._body) * _GUARDED_SHARE if may_come else 0.0
        for _ in range(_MOST_GUARDS if may_come else 0):
            hidden = self._causes(gone, mute)
            guards = {cause for cause, length in hidden.items() if length > most}
            if not guards:
                break
            self._lifted |= guards
            self._styles.clear()
            gone, mute = self._hidden()
        texts = {text.mem_id: text for node, name in mute for text in self._texts(node, name)}
        for text in texts.values():
            text.remove()
        drop(node for node, _ in gone)

    def _hidden(self) -> tuple[_Found, _Found]:
        """Elements unseen with all they hold, each with why, and those whose own text is unseen."""
        gone: _Found = []
        mute: _Found = []
        for node in self._watched.values():
            declared, reason, muting = self._style(node)
            if node.tag in _KEPT or not declared:
                continue
            if reason and not self._comes(node, declared, reason):
                gone.append((node, reason))
                continue
            mute += [(node, name) for name in muting if not self._comes(node, declared, name)]
            if self._is_lost(node, declared):
                mute.append((node, "color"))
        return gone, mute

    def _causes(self, gone: _Found, mute: _Found) -> Counter[int]:
        """The length of text that each rule and element hides."""
        hidden: Counter[int] = Counter()
        for node, reason in gone:
            hidden.update(dict.fromkeys(self._blamed(node, FAMILIES[reason]), len(node.text())))
        for node, name in mute:
            length = sum(len(text.text_content or "") for text in self._texts(node, name))
            family = _PAINT if name == "color" else (name,)
            hidden.update(dict.fromkeys(self._blamed(node, family), length))
        return hidden

    def _blamed(self, node: LexborNode, family: tuple[str, ...]) -> Iterator[int]:
        said = [(id(rule), declarations(rule.block)) for rule in self._meaning.get(node.mem_id, ())]
        for cause, declared in (*said, (node.mem_id, _own(node))):
            if any(name.startswith(family) for name, _, _ in declared):
                yield cause

    def _texts(self, node: LexborNode, name: str) -> Iterator[LexborNode]:
        """The texts that a value of an inherited property reaches."""
        ends = _PAINT if name == "color" else (name,)
        ink = _ink(self._style(node).declared)
        is_clear = ink is not None and ink[3] < LEAST_OPACITY
        reaches_all = self._is_complete or name in ("visibility", "text-indent") or is_clear
        waiting = [node]
        while waiting:
            for child in waiting.pop().iter(include_text=True):
                if child.is_text_node:
                    yield child
                elif child.is_element_node and self._style(child).declared.keys().isdisjoint(ends):
                    waiting += [child] if reaches_all or _is_plain(child) else []

    def _comes(self, node: LexborNode, declared: Declared, reason: str) -> bool:
        """Tell an element that a click or a script of the page brings in."""
        if reason not in _COLLAPSED:
            return False
        if reason == "opacity":
            marks = f"{attribute(node, 'class')} {' '.join(node.attributes)}"
            is_fading = _FADING_MARK.search(marks) or not _FADING.isdisjoint(declared)
            if "animation" in declared or (self._has_scripts and is_fading):
                return True
        is_named = attribute(node, "role") == "tabpanel" or attribute(node, "id") in self._named
        if _is_hiding({name: value for name, value, _ in _own(node)}):
            return self._has_scripts and is_named
        return is_named or _follows_control(node) or self._is_shown_later(node, declared)

    def _is_shown_later(self, node: LexborNode, declared: Declared) -> bool:
        """Look for a rule that shows it in a state, or with a class yet to be set."""
        for name in _names_of(node):
            for rule in self._later.get(name, ()):
                shown = {each: value for each, value, _ in declarations(rule.block)}
                if not _is_hiding({**declared, **shown}):
                    return True
        return False

    @cached_property
    def _later(self) -> Mapping[str, list[Rule]]:
        """Rules that mean no element as the page stands, by the last name in them."""
        found: defaultdict[str, list[Rule]] = defaultdict(list)
        for rule in self._rules:
            if _LIFTING.search(rule.block) and self._matcher.is_later(
                rule.selector, has_scripts=self._has_scripts
            ):
                found[last_name(rule.selector)].append(rule)
        return found

    @cached_property
    def _named(self) -> set[str]:
        names = (each if each != "href" else "href^='#'" for each in _NAMING)
        controls = select(self._body, ", ".join(f"[{each}]" for each in names))
        told = [each for each in controls if inline_text(each)]
        said = ((name, attribute(each, name)[:500]) for each in told for name in _NAMING)
        values = [value for name, value in said if name != "href" or value.startswith("#")]
        called = [attribute(each, "onclick")[:500] for each in told]
        words = (word for value in called for word in _WORD.findall(value))
        return {*words, *(name for value in values for name in _NAME.findall(value))}

    def _is_lost(self, node: LexborNode, declared: Declared) -> bool:
        """Tell text without a colour, or in that of what is behind it."""
        ink = _ink(declared)
        shadows = (declared.get(name, "none") for name in ("text-shadow", "text-stroke"))
        if ink is None or declared.get("background-clip") == "text" or set(shadows) != {"none"}:
            return False
        ground = self._ground(node)
        return ink[3] < LEAST_OPACITY or (ground is not None and is_lost(ink, ground))

    def _ground(self, node: LexborNode) -> Color | None:
        """The colour behind an element; None when it is a picture, or not known."""
        for each in (node, *ancestors(node)):
            declared = self._style(each).declared
            value = declared.get("background-color", "transparent")
            color = color_of(value)
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
        return self._canvas

    @cached_property
    def _canvas(self) -> Color | None:
        schemes = [attribute(node, "content") for node in self._tree.css("meta[name=color-scheme]")]
        schemes += [rule.block for rule in self._rules if "color-scheme" in rule.block]
        return None if any("dark" in scheme for scheme in schemes) else _WHITE


def _ink(declared: Declared) -> Color | None:
    return next((color_of(declared[name]) for name in _INK if name in declared), None)


def _is_hiding(declared: Declared) -> bool:
    return bool(reason_of(declared)) or is_mute("visibility", declared.get("visibility", ""))


def _own(node: LexborNode) -> tuple[tuple[str, str, bool], ...]:
    style = attribute(node, "style")
    return declarations(without_strings(style)) if style else ()


def _legacy(node: LexborNode) -> Iterator[tuple[str, str]]:
    attributes = node.attributes
    yield "background-color", (attributes.get("bgcolor") or "").strip().lower()
    yield "background-image", "url" if attributes.get("background") else ""
    if node.tag == "font":
        yield "color", (attributes.get("color") or "").lower()


def _names_of(node: LexborNode) -> set[str]:
    """The names that the last part of a selector may call an element by."""
    names = {f".{name}" for name in attribute(node, "class").split()}
    return {node.tag or "", f"#{attribute(node, 'id')}", "*", *names}


def _is_plain(node: LexborNode) -> bool:
    attributes = node.attributes
    return node.tag in _PLAIN and not attributes.get("class") and not attributes.get("id")


def _follows_control(node: LexborNode) -> bool:
    before = node.prev
    while before is not None and not before.is_element_node:
        before = before.prev
    if before is None or not inline_text(before):
        return False
    return before.css_first(_CONTROL) is not None  # which may be the element itself

"""Finds the elements that a style rule's selector means, in time linear in the page."""

import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import tinycss2
from selectolax.lexbor import LexborNode, SelectolaxError

Tokens = Sequence[Any]

# States of the page that a reader's pointer makes; at rest nothing is in them.
_FLEETING: Final = frozenset(
    "hover active focus focus-visible focus-within visited target-within".split()  # noqa: SIM905
)
# States that a reader changes by one click and that stay, with what an element needs for them.
_LASTING: Final = {"checked": "input", "target": "[id]", "popover-open": "[popover]"}
_STATE_ATTRIBUTES: Final = frozenset({"open", "aria-expanded", "aria-selected", "data-state"})
# True of any element as far as a page's text tells, though the matcher does not know them.
_ALWAYS: Final = frozenset(
    "root scope defined link any-link enabled read-only read-write lang dir host optional".split()  # noqa: SIM905
)
_NTH: Final = frozenset({"nth-child", "nth-last-child", "nth-of-type", "nth-last-of-type"})
_FUNCTIONS: Final = frozenset({"not", "is", "where", "has", "matches", "any", "-webkit-any"})
_KNOWN: Final = frozenset(
    """first-child last-child only-child first-of-type last-of-type only-of-type empty disabled
    required indeterminate placeholder-shown blank""".split()  # noqa: SIM905
)
_MOST_COMPOUNDS: Final = 30
_MOST_SELECTOR_CHARS: Final = 500
# Counting siblings takes the matcher quadratic time; on longer rows every one counts as meant.
_MOST_COUNTED_SIBLINGS: Final = 500
# Elements looked at for all rules of a page together: about two seconds.
MOST_STEPS: Final = 10_000_000


@dataclass(slots=True)
class Compound:
    """What one element must be: the part of a selector between two combinators."""

    tag: str = ""
    classes: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    others: list[str] = field(default_factory=list)
    nth: list[str] = field(default_factory=list)
    combinator: str = ""
    is_state: bool = False

    @property
    def css(self) -> str:
        """What the page's own index cannot decide, as text."""
        return "".join([self.tag or "*", *self.others])


@dataclass(frozen=True, slots=True)
class Selector:
    """One selector of a rule.

    Attributes:
        specificity: As CSS counts: identifiers, classes, types.
        is_state: Whether it speaks of a state that one click brings about; the compounds then
            say which elements may be in it.
    """

    compounds: tuple[Compound, ...]
    specificity: tuple[int, int, int]
    is_state: bool = False


def read_selectors(
    prelude: Tokens, state_classes: frozenset[str], passing: frozenset[str] = frozenset()
) -> list[Selector]:
    """The selectors of a rule that can concern an element's own text.

    Args:
        prelude: What stands before the rule's block.
        state_classes: Classes that a script of the page sets.
        passing: Classes and attributes that scripts take away as soon as they run.
    """
    found = []
    for tokens in _split(prelude):
        try:
            selector = _read(tokens, frozenset(), passing)
            found.append(selector)
            if not selector.is_state and state_classes:
                changed = _read(tokens, state_classes, passing)
                found += [changed] if changed.is_state else []
        except _NotMeantError:
            continue
    return found


class _ExhaustedError(ValueError):
    """All selectors of a page together took more steps than are allowed."""


class _NotMeantError(ValueError):
    """The selector is invalid, or means no element in the page's state of rest."""


def _split(tokens: Tokens) -> Iterable[list[Any]]:
    part: list[Any] = []
    for token in tokens:
        if token.type == "literal" and token.value == ",":
            yield part
            part = []
        else:
            part.append(token)
    yield part


def _read(tokens: Tokens, state_classes: frozenset[str], passing: frozenset[str]) -> Selector:
    if len(tinycss2.serialize(tokens)) > _MOST_SELECTOR_CHARS:
        raise _NotMeantError
    reader = _Reader(state_classes, passing)
    for token in tokens:
        reader.feed(token)
    return reader.selector()


class _Reader:
    """Reads the tokens of one selector."""

    def __init__(self, state_classes: frozenset[str], passing: frozenset[str]) -> None:
        self._state_classes = state_classes
        self._passing = passing
        self._compounds = [Compound()]
        self._is_empty = True
        self._combinator = ""
        self._before = ""
        self._counts = [0, 0, 0]
        self._is_state = False

    def selector(self) -> Selector:
        """What was read."""
        if self._is_empty or self._before or len(self._compounds) > _MOST_COMPOUNDS:
            raise _NotMeantError
        counts = (self._counts[0], self._counts[1], self._counts[2])
        return Selector(tuple(self._compounds), counts, self._is_state)

    def feed(self, token: Any) -> None:
        """Take the next token."""
        if self._before:
            self._named(token)
        elif token.type == "whitespace":
            self._combinator = self._combinator or ("" if self._is_empty else " ")
        elif token.type == "literal":
            self._literal(token.value)
        elif token.type != "comment":
            self._simple(token)

    def _literal(self, value: str) -> None:
        if value in (">", "+", "~"):
            if self._combinator not in ("", " "):
                raise _NotMeantError
            self._combinator = value
        elif value in (".", ":"):
            self._before = value
        elif value == "*":
            self._begin()
        elif value != "|":  # namespaces: the page has one
            raise _NotMeantError

    def _begin(self) -> Compound:
        if self._combinator:
            if self._is_empty:
                raise _NotMeantError
            self._compounds.append(Compound(combinator=self._combinator))
            self._combinator = ""
        self._is_empty = False
        return self._compounds[-1]

    def _simple(self, token: Any) -> None:
        compound = self._begin()
        if token.type == "ident":
            compound.tag = "" if compound.tag == "*" else token.lower_value
            self._counts[2] += 1
        elif token.type == "hash":
            compound.ids.add(token.value)
            self._counts[0] += 1
        elif token.type == "[] block":
            self._attribute(compound, token)
        else:
            raise _NotMeantError

    def _attribute(self, compound: Compound, token: Any) -> None:
        self._counts[1] += 1
        content = [part for part in token.content if part.type not in ("whitespace", "comment")]
        name = getattr(content[0], "lower_value", "") if content else ""
        if not name or name in self._passing:
            raise _NotMeantError
        if name in _STATE_ATTRIBUTES and self._state_classes:
            self._is_state = compound.is_state = True
            return
        flags = [part for part in content[3:] if part.type == "ident"]
        shown = (
            [part for part in content if part not in flags[-1:]] if len(content) > 3 else content
        )
        compound.others.append(f"[{tinycss2.serialize(shown)}]")

    def _named(self, token: Any) -> None:
        before, self._before = self._before, ""
        if before == "." and token.type == "ident":
            if token.value in self._passing:
                raise _NotMeantError
            compound = self._begin()
            self._counts[1] += 1
            if token.value in self._state_classes:
                self._is_state = compound.is_state = True
            else:
                compound.classes.add(token.value)
        elif before == ":" and token.type in ("ident", "function"):
            self._pseudo(token)
        else:
            raise _NotMeantError  # `::before` and its like are not the element's text

    def _pseudo(self, token: Any) -> None:
        compound = self._begin()
        name = token.lower_value if token.type == "ident" else token.lower_name
        self._counts[1] += name != "where"
        if name in _FLEETING:
            raise _NotMeantError
        if name in _LASTING:
            self._is_state = compound.is_state = True
            needed = _LASTING[name]
            compound.others.append(needed if needed.startswith("[") else f":is({needed})")
        elif name == "root":
            compound.others.append(":root")
        elif name in _NTH:
            compound.nth.append(f":{tinycss2.serialize([token])}")
        elif name in _FUNCTIONS:
            self._function(compound, token, name)
        elif name in _KNOWN:
            compound.others.append(f":{name}")
        elif name not in _ALWAYS:
            raise _NotMeantError

    def _function(self, compound: Compound, token: Any, name: str) -> None:
        if token.type != "function":
            raise _NotMeantError
        text = tinycss2.serialize(token.arguments).strip()
        fleeting = [state for state in _FLEETING if f":{state}" in text]
        if fleeting and name != "not":
            raise _NotMeantError
        # At rest no element is in these states, and what is nested deeper counts as true.
        if fleeting or "(" in text or len(text.split()) > 3 + 2 * text.count(","):
            return
        name = "is" if name in ("matches", "any", "-webkit-any") else name
        compound.others.append(f":{name}({text})")


class Elements:
    """The elements of a page in document order, with where each lies.

    Attributes:
        is_exhausted: Selectors were left aside, as all together took more steps than are allowed.
    """

    def __init__(self, root: LexborNode) -> None:
        self.nodes: list[LexborNode] = []
        self.parent: list[int] = []
        self.end: list[int] = []
        self._root = root
        self._number: dict[int, int] = {}
        self._before: list[int] = []
        self._classes: defaultdict[str, set[int]] = defaultdict(set)
        self._ids: defaultdict[str, set[int]] = defaultdict(set)
        self._tags: defaultdict[str, set[int]] = defaultdict(set)
        self._known: dict[str, set[int]] = {}
        self._steps = 0
        self.is_exhausted = False
        self._longest_row = 0
        self._read(root)
        self._all = set(range(len(self.nodes)))

    def number(self, node: LexborNode) -> int | None:
        """Where an element stands in document order."""
        return self._number.get(node.mem_id)

    def matching(self, selector: Selector, *, weight: int = 0) -> set[int]:
        """The elements a selector means; none where it is left aside.

        Args:
            selector: Of a rule.
            weight: Declarations that each of them is given; 0 where the set is all that is kept.
        """
        try:
            found = self._matching(selector)
            is_shared = not weight and found is self._all
            self._spend(0 if is_shared else max(20 * weight, 10) * len(found))
        except _ExhaustedError:
            self.is_exhausted = True
            return set()
        return found

    def _matching(self, selector: Selector) -> set[int]:
        found: set[int] = set()
        for compound in selector.compounds:
            meant = self._meant(compound)
            if not meant:
                return set()
            found = (
                self._joined(found, meant, compound.combinator) if compound.combinator else meant
            )
            if not found:
                return found
        return found

    def _read(self, root: LexborNode) -> None:
        last: dict[int, int] = {}
        rows: dict[int, int] = defaultdict(int)
        for node in root.traverse(include_text=False):
            if not node.is_element_node:
                continue
            at = len(self.nodes)
            above = node.parent
            parent = self._number.get(above.mem_id, -1) if above is not None and at else -1
            self._number[node.mem_id] = at
            self.nodes.append(node)
            self.parent.append(parent)
            self._before.append(last.get(parent, -1))
            last[parent] = at
            rows[parent] += 1
            self._index(node, at)
        self._longest_row = max(rows.values(), default=0)
        self.end = list(range(1, len(self.nodes) + 1))
        for at in range(len(self.nodes) - 1, 0, -1):
            above_at = self.parent[at]
            self.end[above_at] = max(self.end[above_at], self.end[at])

    def _index(self, node: LexborNode, at: int) -> None:
        self._tags[(node.tag or "").lower()].add(at)
        attributes = node.attributes
        for name in (attributes.get("class") or "").split():
            self._classes[name].add(at)
        if attributes.get("id"):
            self._ids[attributes["id"] or ""].add(at)

    def _meant(self, compound: Compound) -> set[int]:
        sets = [self._classes.get(name, set()) for name in compound.classes]
        sets += [self._ids.get(name, set()) for name in compound.ids]
        if compound.tag:
            sets.append(self._tags.get(compound.tag, set()))
        if not all(sets):
            return set()
        nth = compound.nth if self._longest_row <= _MOST_COUNTED_SIBLINGS else []
        for css in [*(f"*{other}" for other in compound.others), *(f"*{each}" for each in nth)]:
            sets.append(self._selected(css))
        if not sets:
            self._spend(0)
            return self._all
        self._spend(min(map(len, sets)))
        return set.intersection(*sorted(sets, key=len))

    def _selected(self, css: str) -> set[int]:
        known = self._known.get(css)
        if known is None:
            weight = 10 if ":has(" in css or ":nth" in css else 1
            self._spend(weight * len(self.nodes))
            try:
                found = self._root.css(css)
            except SelectolaxError:
                found = []  # a browser leaves out a rule that it cannot read
            numbers = (self._number.get(node.mem_id) for node in found)
            known = self._known[css] = {number for number in numbers if number is not None}
        return known

    def _spend(self, steps: int) -> None:
        self._steps += steps + 20
        if self._steps > MOST_STEPS:
            raise _ExhaustedError

    def _joined(self, left: set[int], right: set[int], combinator: str) -> set[int]:
        self._spend(len(left) + len(right))
        if combinator == ">":
            return {at for at in right if self.parent[at] in left}
        if combinator == "+":
            return {at for at in right if self._before[at] in left}
        if combinator == "~":
            first: dict[int, int] = {}
            for at in left:
                first[self.parent[at]] = min(at, first.get(self.parent[at], at))
            return {at for at in right if first.get(self.parent[at], at) < at}
        return self._below(left, right)

    def _below(self, left: set[int], right: set[int]) -> set[int]:
        starts: list[int] = []
        ends: list[int] = []
        for at in sorted(left):
            if not ends or at >= ends[-1]:  # others lie inside the one before
                starts.append(at)
                ends.append(self.end[at])
        found = set()
        for at in right:
            place = bisect.bisect_left(starts, at) - 1
            if place >= 0 and at < ends[place]:
                found.add(at)
        return found

"""Every regular expression of the product, and the texts on which each would be slowest."""

import ast
import functools
import importlib
import pkgutil
import re
import signal
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

with warnings.catch_warnings():
    # The analyser asks for the parser of `re` by its old name.
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_constants
    import sre_parse

    from regexploit.ast.sre import SreOpParser
    from regexploit.redos import find

PACKAGES = (
    "webrag",
    "llama_index.node_parser.webrag",
    "llama_index.postprocessor.webrag",
)
_ANCHORED = frozenset({"match", "fullmatch"})
_METHODS = frozenset({"search", "finditer", "findall", "sub", "subn", "split", *_ANCHORED})
_Node: TypeAlias = tuple[Any, Any]

# For so much text a linear pattern takes well under a millisecond, a quadratic one over 10.
_SCREENED_LENGTH = 3_000
_SUSPECT_S = 0.003
_CERTAIN_S = 0.05
_CONFIRMED = 3
_LENGTH = 8_000
# Doubling the text doubles the time of a linear pattern and takes a quadratic one to four times it.
_MAX_GROWTH = 3.0
_LIMIT_S = 0.4


@dataclass(frozen=True)
class Use:
    """One pattern as the product uses it.

    Attributes:
        name: Where it is written.
        pattern: Compiled.
        is_anchored: It is only ever tried at one place of a text.
    """

    name: str
    pattern: re.Pattern[Any]
    is_anchored: bool


@functools.cache
def all_uses() -> tuple[Use, ...]:
    """Every pattern the product compiles: those of its modules, and those in its functions."""
    found: dict[tuple[Any, int, bool], Use] = {}
    for module in _modules():
        source = _Source(module)
        for use in (*_module_uses(module, source), *source.inline_uses()):
            found.setdefault((use.pattern.pattern, use.pattern.flags, use.is_anchored), use)
    return tuple(found.values())


@functools.cache
def _modules() -> tuple[ModuleType, ...]:
    names = [
        info.name
        for package in map(importlib.import_module, PACKAGES)
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not info.name.endswith("__main__")
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(importlib.import_module(name) for name in (*PACKAGES, *names))


def _module_uses(module: ModuleType, source: "_Source") -> Iterator[Use]:
    for name, value in vars(module).items():
        for place, pattern in _patterns_in(f"{module.__name__}.{name}", value):
            part = place.removeprefix(f"{module.__name__}.") if name == "_RE" else name
            if name == "_RE" and part not in source.used:
                continue  # another module of the same file uses it
            # Public names are used by other modules as well.
            is_anchored = name.startswith("_") and source.methods_of(part) <= _ANCHORED
            yield Use(place, pattern, is_anchored)


def _patterns_in(
    place: str, value: object, depth: int = 0
) -> Iterator[tuple[str, re.Pattern[Any]]]:
    inside: Iterable[tuple[object, object]] = ()
    if isinstance(value, re.Pattern):
        yield place, value
    elif isinstance(value, Mapping):
        inside = value.items()
    elif isinstance(value, tuple | list | set | frozenset):
        inside = enumerate(value)
    elif isinstance(value, type) and value.__module__.startswith(PACKAGES):
        inside = tuple(vars(value).items())
    if depth < 4:
        for key, item in inside:
            yield from _patterns_in(f"{place}[{key!r}]", item, depth + 1)


class _Source:
    """What a module's text says of patterns that its names do not."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        assert module.__file__ is not None
        self._tree = ast.parse(Path(module.__file__).read_text())
        self.used: dict[str, set[str]] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Subscript):
                self.used.setdefault(ast.unparse(node.value), set()).add(node.attr)
        attributes = [n for n in ast.walk(self._tree) if isinstance(n, ast.Attribute)]
        bases = {id(node.value) for node in attributes}
        for node in ast.walk(self._tree):
            is_place = isinstance(node, ast.Name | ast.Subscript)
            if is_place and isinstance(node.ctx, ast.Load) and id(node) not in bases:
                self.used.setdefault(ast.unparse(node), set()).add("passed on")

    def methods_of(self, name: str) -> set[str]:
        """The methods called on a name, with "passed on" when it is used in another way."""
        return self.used.get(name, {"passed on"})

    def inline_uses(self) -> Iterator[Use]:
        """The patterns given to `re` itself inside of functions."""
        for node in self._calls_in_functions():
            module, _, method = ast.unparse(node.func).partition(".")
            if module != "re" or method not in _METHODS | {"compile"}:
                continue
            place = f"{self._module.__name__}:{node.lineno}"
            for text in self._texts(node.args[0]):
                yield Use(place, re.compile(text, self._flags(node)), method in _ANCHORED)

    def _calls_in_functions(self) -> Iterator[ast.Call]:
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        found = {
            id(call): call
            for function in ast.walk(self._tree)
            if isinstance(function, functions)
            for call in ast.walk(function)
            if isinstance(call, ast.Call)
        }
        yield from found.values()

    def _texts(self, node: ast.expr) -> list[Any]:
        """The pattern an expression stands for; what is known only at run time becomes "x"."""
        if isinstance(node, ast.Constant):
            return [node.value]
        if isinstance(node, ast.JoinedStr):
            parts = [
                str(part.value) if isinstance(part, ast.Constant) else self._part(part)
                for part in node.values
            ]
            return ["".join(parts)]
        return []

    def _part(self, node: ast.expr) -> str:
        inner = node.value if isinstance(node, ast.FormattedValue) else node
        value = vars(self._module).get(inner.id) if isinstance(inner, ast.Name) else None
        return value if isinstance(value, str) else "x"

    def _flags(self, call: ast.Call) -> int:
        flags = [ast.unparse(part) for part in (*call.args[1:], *(k.value for k in call.keywords))]
        names = re.findall(r"\bre\.([A-Z]+)\b", " ".join(flags))
        return functools.reduce(lambda found, name: found | getattr(re, name), names, 0)


class _Analysis(SreOpParser):  # type: ignore[misc]
    """The analyser with the two constructs of Python 3.11, which never give anything back."""

    def from_POSSESSIVE_REPEAT(self, data: tuple[int, int, Any]) -> Any:
        minimum, _, inside = data
        return self.from_MAX_REPEAT((minimum, max(minimum, 1), inside))

    def from_ATOMIC_GROUP(self, data: Any) -> Any:
        return self.sequence_or_singleton([part for part in data if not _repeats(part)])


def _repeats(part: _Node) -> bool:
    return part[0] in _REPEATS


_REPEATS = frozenset(
    {sre_constants.MAX_REPEAT, sre_constants.MIN_REPEAT, sre_constants.POSSESSIVE_REPEAT}
)


def static_findings(pattern: re.Pattern[Any]) -> list[str]:
    """What the analyser says against a pattern: cubic time and worse."""
    tree = _Analysis().parse_sre(*_as_text(pattern))
    return [f"{finding.starriness} nested repeats" for finding in find(tree)]


def _as_text(pattern: re.Pattern[Any]) -> tuple[str, int]:
    """A pattern of bytes as one of text, which is what the parser takes."""
    if isinstance(pattern.pattern, bytes):
        return pattern.pattern.decode("latin-1"), pattern.flags
    return pattern.pattern, pattern.flags


def is_plainly_linear(pattern: re.Pattern[Any]) -> bool:
    """Whether a pattern can be tried in few ways at each place of a text, whatever the text."""
    return _ways(sre_parse.parse(*_as_text(pattern))) < _MANY_WAYS


# Also what stands for endless; a repeat of more than so many is taken as such.
_MANY_WAYS = 2_000
_FEW_REPEATS = 50


def _ways(tree: Iterable[_Node]) -> int:
    """In how many ways a part can match at one place, at most."""
    found = 1
    for op, data in tree:
        inner = [_ways(each) for each in _inner(op, data)]
        if op is sre_constants.BRANCH:
            found *= sum(inner)
        elif op in _REPEATS:
            if data[1] > _FEW_REPEATS:
                return _MANY_WAYS
            found *= sum(inner[0] ** times for times in range(data[1] + 1))
        else:
            for each in inner:
                found *= each
        if found >= _MANY_WAYS:
            return _MANY_WAYS
    return found


_MOST_ATTACKS = 150


def slow_attack(use: Use) -> str | None:
    """An attack whose time grows faster than its length, as a sentence; None when there is none."""
    if is_plainly_linear(use.pattern):
        return None
    run = use.pattern.match if use.is_anchored else use.pattern.search
    suspects: list[tuple[float, _Attack]] = []
    attacks = list(_attacks(use.pattern))
    # Patterns of thousands of characters suggest as many attacks; an even sample of them is tried.
    for attack in attacks[:: -(-len(attacks) // _MOST_ATTACKS)] if attacks else ():
        seconds = _seconds(run, attack.text(_SCREENED_LENGTH))
        if seconds >= _SUSPECT_S:
            suspects.append((seconds, attack))
        if seconds >= _CERTAIN_S and len(suspects) <= _CONFIRMED:
            found = _growth(run, attack)
            if found:
                return found
    slowest = sorted(suspects, key=lambda suspect: -suspect[0])[:_CONFIRMED]
    return next((found for _, attack in slowest if (found := _growth(run, attack))), None)


def _growth(run: Any, attack: "_Attack") -> str | None:
    # Again when it looks slow, as other work on the machine only ever adds.
    for _ in range(2):
        first = _seconds(run, attack.text(_LENGTH))
        second = _seconds(run, attack.text(2 * _LENGTH)) if first < _LIMIT_S else _LIMIT_S
        if second < _LIMIT_S and second / first < _MAX_GROWTH:
            return None
        if second >= _LIMIT_S:
            break
    return f"{attack}: {first:.4f} s for {_LENGTH} characters, {second:.4f} s for twice"


@dataclass(frozen=True)
class _Attack:
    before: str
    pump: str
    after: str
    is_bytes: bool

    def text(self, length: int) -> str | bytes:
        pumps = max(length // len(self.pump), 1)
        text = f"{self.before}{self.pump * pumps}{self.after}"
        return text.encode("latin-1", errors="replace") if self.is_bytes else text

    def __str__(self) -> str:
        return f"{self.before[-40:]!r} + {self.pump[:40]!r} * n + {self.after!r}"


_CHARS = " a1A0-_.,:;<>\"'`*[](){}|/\\#=@&+!?~\n\t\r\0\u00e9\u65e5\u3002\U000f0000"


def _attacks(pattern: re.Pattern[Any]) -> Iterator[_Attack]:
    is_bytes = isinstance(pattern.pattern, bytes)
    tree = sre_parse.parse(*_as_text(pattern))
    endings = ("", "\x01", "\n\x01", *_stops(tree))
    whole = [*_samples(tree)][:12]
    seen: set[tuple[str, str]] = set()
    for before, pump in (*_pumps(tree, ""), *(("", sample) for sample in whole)):
        for start, repeated in (
            (before, pump),
            ("", before + pump),
            ("", before),
            (before, pump + " "),
            (before, f" {pump}"),
            ("", f"{before}{pump} "),
            ("", (before + pump)[:-1]),
        ):
            if repeated and (start, repeated) not in seen:
                seen.add((start, repeated))
                for after in endings:
                    yield _Attack(start, repeated, after, is_bytes)
    for pump in (*_CHARS, "a ", "a. ", "< ", "1,", "\n ", "ab\n"):
        yield _Attack("", pump, "\x01", is_bytes)


def _stops(tree: Iterable[_Node]) -> list[str]:
    """Characters that some class of a pattern does not take, beside white space: its ends."""
    found: dict[str, None] = {}
    for op, data in tree:
        if op is sre_constants.IN and data[0][0] is sre_constants.NEGATE:
            found |= dict.fromkeys(chr(c) for kind, c in data if kind is sre_constants.LITERAL)
        for inner in _inner(op, data):
            found |= dict.fromkeys(_stops(inner))
    return [char for char in found if not char.isspace()][:5]


def _pumps(tree: Iterable[_Node], before: str) -> Iterator[tuple[str, str]]:
    """What is repeated in a pattern, each with a text that leads there."""
    for op, data in tree:
        for inner in _inner(op, data):
            yield from _pumps(inner, before)
        if op in _REPEATS and data[1] > 20:
            for sample in [*dict.fromkeys(_samples(data[2]))][:10]:
                if sample:
                    yield before, sample
        before += next(iter(_samples([(op, data)])), "")


def _inner(op: Any, data: Any) -> Iterator[Any]:
    if op in _REPEATS:
        yield data[2]
    elif op is sre_constants.SUBPATTERN:
        yield data[3]
    elif op is sre_constants.ATOMIC_GROUP:
        yield data
    elif op is sre_constants.BRANCH:
        yield from data[1]
    elif op in (sre_constants.ASSERT, sre_constants.ASSERT_NOT):
        yield data[1]


def _samples(tree: Iterable[_Node]) -> Iterator[str]:
    """Texts that a part of a pattern matches, roughly: looking around is passed over."""
    choices = [[*_choices(op, data)][:10] or [""] for op, data in tree]
    first = "".join(options[0] for options in choices)
    yield first
    for index, options in enumerate(choices):
        for option in options[1:]:
            parts = [other[0] for other in choices]
            parts[index] = option
            yield "".join(parts)


def _choices(op: Any, data: Any) -> Iterator[str]:
    if op is sre_constants.LITERAL:
        yield chr(data)
    elif op is sre_constants.ANY:
        yield from "a <"
    elif op in (sre_constants.NOT_LITERAL, sre_constants.IN):
        yield from _members([(op, data)] if op is sre_constants.NOT_LITERAL else data)
    elif op is sre_constants.BRANCH:
        for branch in data[1]:
            yield next(iter(_samples(branch)))
    elif op in _REPEATS:
        for sample in _samples(data[2]):
            yield sample * max(data[0], 1)
    else:
        for inner in _inner(op, data):
            if op not in (sre_constants.ASSERT, sre_constants.ASSERT_NOT):
                yield from _samples(inner)


def _members(items: list[_Node]) -> Iterator[str]:
    """Characters of a class: those it names, then others it takes."""
    is_negated = items[0][0] in (sre_constants.NEGATE, sre_constants.NOT_LITERAL)
    named = [chr(data) for op, data in items if op is sre_constants.LITERAL]
    named += [chr(data[0]) for op, data in items if op is sre_constants.RANGE]
    own = [] if is_negated else named
    for char in dict.fromkeys([*own[:3], *_CHARS]):
        if any(_is_in(char, op, data) for op, data in items) != is_negated:
            yield char


_CATEGORIES = {
    sre_constants.CATEGORY_DIGIT: r"\d",
    sre_constants.CATEGORY_NOT_DIGIT: r"\D",
    sre_constants.CATEGORY_SPACE: r"\s",
    sre_constants.CATEGORY_NOT_SPACE: r"\S",
    sre_constants.CATEGORY_WORD: r"\w",
    sre_constants.CATEGORY_NOT_WORD: r"\W",
}


def _is_in(char: str, op: Any, data: Any) -> bool:
    if op in (sre_constants.LITERAL, sre_constants.NOT_LITERAL):
        return ord(char) == int(data)
    if op is sre_constants.RANGE:
        return bool(data[0] <= ord(char) <= data[1])
    return op is sre_constants.CATEGORY and bool(re.match(_CATEGORIES[data], char))


class TooSlow(Exception):
    """A pattern was interrupted."""


def _seconds(run: Any, text: str | bytes) -> float:
    """Processor time of one use of a pattern; at most the limit, where it is stopped."""
    started = time.thread_time()
    try:
        with stopped_after(_LIMIT_S):
            run(text)
    except TooSlow:
        return _LIMIT_S
    return min(time.thread_time() - started, _LIMIT_S)


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise `TooSlow` in the block once it has used so much processor time."""

    def stop(*_: object) -> None:
        raise TooSlow

    previous = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)

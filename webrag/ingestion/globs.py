"""Matches paths with globs, those of a `.gitignore` among them, in time that grows as both do."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import translate
from functools import cached_property, lru_cache
from typing import Final

ANY_FOLDERS: Final = "**"
_NAME_SIZE: Final = 8


@lru_cache(maxsize=1_000)
def _matcher(expression: str) -> Callable[[str], object]:
    return re.compile(expression, re.DOTALL).fullmatch


class PathGlob:
    """A glob, made of the names between its slashes.

    `*` stands for any characters of one name, `?` for one, `[ab]` for one of those, and a whole
    `**` for any number of folders. How far a path matches is a set of places: so many names of the
    glob can be used up by it. Its `size` tells what matching it may cost. `expression_of` reads
    names that are written in another way, so that each of a row of wildcards is tried once.
    """

    def __init__(
        self, names: Iterable[str], expression_of: Callable[[str], str] = translate
    ) -> None:
        kept: list[str] = []
        for name in names:
            if name != ANY_FOLDERS or kept[-1:] != [ANY_FOLDERS]:  # a row of them is as good as one
                kept.append(name)
        self._names, self._expression_of = kept, expression_of
        self.size = sum(_NAME_SIZE + len(name) for name in kept)
        self.start = self._skipping({0})

    @cached_property
    def _fits(self) -> list[Callable[[str], object] | None]:
        """Made when first needed: it takes a second for a name of 100 kB."""
        of = self._expression_of
        return [None if name == ANY_FOLDERS else _matcher(of(name)) for name in self._names]

    def after(self, name: str, places: Iterable[int]) -> frozenset[int]:
        """The places that the next name of a path leads to."""
        reached = set()
        for place in places:
            if place < len(self._names):
                fits = self._fits[place]
                if fits is None:
                    reached.add(place)
                elif fits(name):
                    reached.add(place + 1)
        return self._skipping(reached)

    def ends_with(self, name: str, places: Collection[int]) -> bool:
        """Tell whether the next name of a path, if it is the last, fits the end of the glob."""
        last = len(self._names) - 1
        if last not in places:
            return False
        fits = self._fits[last]
        return fits is None or bool(fits(name))

    def matches(self, names: Iterable[str]) -> bool:
        """Tell whether the whole path fits the whole glob."""
        places = self.start
        for name in names:
            places = self.after(name, places)
        return len(self._names) in places

    def _skipping(self, places: set[int]) -> frozenset[int]:
        """The places, and those behind a `**` that stands for no folder."""
        names = self._names
        behind = {at + 1 for at in places if at < len(names) and names[at] == ANY_FOLDERS}
        return frozenset(places | behind)


_CLASSES: Final = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\n\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_TOKEN: Final = re.compile(r"\\(?P<escaped>.)|(?P<stars>\*+)|(?P<plain>[^\\*?\[/]+)|.", re.DOTALL)
_STAR: Final = "\n"  # which no line holds


class _FitsNothing(Exception):
    """A pattern that no name fits."""


@dataclass(frozen=True, slots=True)
class IgnoreLine:
    """A line, and how far it matches the way from its folder to the one that is read now."""

    glob: PathGlob
    is_negated: bool
    of_folders: bool
    places: frozenset[int]


def lines_below(lines: Iterable[IgnoreLine], folder: str) -> list[IgnoreLine]:
    """The lines that can still fit a name below a folder."""
    folder = _as_bytes(folder)
    below = (replace(line, places=line.glob.after(folder, line.places)) for line in lines)
    return [line for line in below if line.places]


def is_ignored(name: str, lines: Sequence[IgnoreLine], *, is_folder: bool) -> bool | None:
    """Tell by the last line that fits whether a name is ignored; None where no line fits."""
    name = _as_bytes(name)
    meant = (line for line in reversed(lines) if is_folder or not line.of_folders)
    fitting = (line for line in meant if line.glob.ends_with(name, line.places))
    return next((not line.is_negated for line in fitting), None)


def _as_bytes(name: str) -> str:
    """A name with a character for each of its bytes, which is what git compares."""
    return name if name.isascii() else os.fsencode(name).decode("latin-1")


def ignore_lines(text: bytes) -> Iterator[IgnoreLine]:
    """Read the lines of a `.gitignore`, as they are for the folder it lies in."""
    for raw in text.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n"):
        pattern = _without_end(raw.removesuffix("\r"))
        is_negated = pattern.startswith("!")
        pattern = pattern.removeprefix("!")
        of_folders = pattern.endswith("/")
        pattern = pattern.removesuffix("/")
        if not pattern or raw.startswith("#"):
            continue
        try:
            names = _names(pattern.removeprefix("/"))
        except _FitsNothing:
            continue
        glob = PathGlob(names if "/" in pattern else [ANY_FOLDERS, *names], str)
        yield IgnoreLine(glob, is_negated, of_folders, glob.start)


def _without_end(line: str) -> str:
    """A line without the spaces at its end, of which a backslash keeps the one behind it."""
    bare = line.rstrip(" ")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return line[: len(bare) + 1] if backslashes % 2 else bare


def _names(pattern: str) -> list[str]:
    """The names between the slashes as regular expressions, and ANY_FOLDERS for a whole `**`."""
    names: list[str] = []
    name: list[str] = []
    for part in (*_tokens(pattern), ""):
        if part not in ("/", r"\/", ""):
            name.append(part)
            continue
        if name != ["**"]:
            names.append(_expression(name))
        elif part == "/":
            names.append(ANY_FOLDERS)
        else:  # with a backslash it stands for a folder or more, at the end for what lies in one
            names += [ANY_FOLDERS, ".*"]
        name = []
    return names


def _tokens(pattern: str) -> Iterator[str]:
    """The slashes and stars of a pattern, and regular expressions of the rest; or _FitsNothing."""
    at = 0
    while found := _TOKEN.match(pattern, at):
        at = found.end()
        if found["plain"]:
            yield re.escape(found["plain"])
        elif found["stars"]:
            yield found["stars"][:2]
        elif found["escaped"]:
            yield found[0] if found["escaped"] == "/" else re.escape(found["escaped"])
        elif found[0] == "[":
            source, at = _set(pattern, at)
            yield source
        elif found[0] == "\\":
            raise _FitsNothing
        else:
            yield "." if found[0] == "?" else "/"


def _set(pattern: str, at: int) -> tuple[str, int]:
    """The regular expression of a set, whose bracket is open, and where the set ends."""
    is_negated = pattern[at : at + 1] in ("!", "^")
    at += is_negated
    sources: list[str] = []
    while not sources or pattern[at : at + 1] != "]":
        end = pattern.find("]", at + 2) if pattern.startswith("[:", at) else -1
        if end > at + 2 and pattern[end - 1] == ":":
            source = _CLASSES.get(pattern[at + 2 : end - 1])
            if source is None:
                raise _FitsNothing
            at = end + 1
        else:
            source, at = _member(pattern, at)
        sources.append(source)
    return f"[{'^' * is_negated}{''.join(sources)}]", at + 1


def _member(pattern: str, at: int) -> tuple[str, int]:
    """A character of a set, or a range of them, and where it ends."""
    first, at = _character(pattern, at)
    if pattern[at : at + 1] != "-" or pattern[at + 1 : at + 2] in ("", "]"):
        return re.escape(first), at
    last, at = _character(pattern, at + 1)
    # Of a range without characters git takes the first.
    return f"{re.escape(first)}-{re.escape(max(first, last))}", at


def _character(pattern: str, at: int) -> tuple[str, int]:
    at += pattern.startswith("\\", at)
    if at >= len(pattern):
        raise _FitsNothing
    return pattern[at], at + 1


def _expression(tokens: Iterable[str]) -> str:
    """A regular expression that tries each star once, so that no name takes long."""
    stars = ("*", "**")
    first, *others = "".join(_STAR if each in stars else each for each in tokens).split(_STAR)
    if not others:
        return first
    return first + "".join(f"(?>.*?{each})" for each in others[:-1]) + ".*" + others[-1]

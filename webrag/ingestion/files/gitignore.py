"""Matches names with the lines of a `.gitignore` as git does, in time linear in both.

All lines of a file are one automaton whose set of states is one integer: each byte of a name costs
a few operations on it, however many wildcards the lines have.
"""

import re
import string
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

_SLASH: Final = ord("/")
# Sets of bytes are integers of 256 bits. A step is such a set, or one of the three wildcards.
_Step: TypeAlias = int
_WITHIN_NAME: Final = -1
_ANYTHING: Final = -2
# Followed by `_ANYTHING` and a slash, it stands for no folder or for those two.
_NO_FOLDER: Final = -3
# The empty set, which leads nowhere.
_END: Final = 0
_ANY_FOLDERS: Final = [_NO_FOLDER, _ANYTHING, 1 << _SLASH]
_EVERY: Final = (1 << 256) - 1
_STARS: Final = re.compile(rb"\*+")
_NAMED_CLASS: Final = re.compile(rb"\[:([^\]]{0,32}):\]")
_RANGE: Final = re.compile(rb"-[^\]]")


def _set_of(characters: str) -> int:
    return sum(1 << byte for byte in set(characters.encode("latin-1")))


_CLASSES: Final = {
    b"alnum": _set_of(string.ascii_letters + string.digits),
    b"alpha": _set_of(string.ascii_letters),
    b"blank": _set_of(" \t"),
    b"cntrl": _set_of("".join(map(chr, [*range(32), 127]))),
    b"digit": _set_of(string.digits),
    b"graph": _set_of(string.ascii_letters + string.digits + string.punctuation),
    b"lower": _set_of(string.ascii_lowercase),
    b"print": _set_of(string.ascii_letters + string.digits + string.punctuation + " "),
    b"punct": _set_of(string.punctuation),
    b"space": _set_of(" \t\n\r"),
    b"upper": _set_of(string.ascii_uppercase),
    b"xdigit": _set_of(string.hexdigits),
}


class _NeverMatchesError(ValueError):
    """A line that git accepts and that no name fits, such as an unclosed class."""


class _Line(NamedTuple):
    steps: list[_Step]
    is_negated: bool
    of_folders: bool
    end: int = 0


class IgnoreRules:
    """The lines of one `.gitignore`."""

    def __init__(self, text: bytes) -> None:
        steps: list[_Step] = []
        starts: list[int] = []
        ends: list[_Line] = []
        for line in _lines(text):
            starts.append(len(steps))
            steps += line.steps
            ends.append(line._replace(end=len(steps)))
            steps.append(_END)
        self._size = len(steps)
        by_step: defaultdict[_Step, list[int]] = defaultdict(list)
        for place, step in enumerate(steps):
            by_step[step].append(place)
        self._anything = self._states(by_step.pop(_ANYTHING, ()))
        self._wild = self._anything | self._states(by_step.pop(_WITHIN_NAME, ()))
        self._no_folder = self._states(by_step.pop(_NO_FOLDER, ()))
        self._places_by_members = by_step
        self._moves: dict[int, int] = {}
        self._start = self._with_empty(self._states(starts))
        self._ends = self._states(line.end for line in ends if not line.of_folders)
        self._folder_ends = self._states(line.end for line in ends)
        self._negated = self._states(line.end for line in ends if line.is_negated)

    def judge(self, name: bytes, *, is_folder: bool, states: int | None = None) -> bool | None:
        """Tell by the last line that fits a name, None where no line fits, whether it is ignored.

        The name is the path from the folder of the `.gitignore` on, without a slash at either end,
        and without the beginning for which `after` gave the `states`. Lines with a slash at their
        end are about folders.
        """
        states = self.after(name, states)
        fitting = states & (self._folder_ends if is_folder else self._ends)
        return not self._negated >> (fitting.bit_length() - 1) & 1 if fitting else None

    def after(self, beginning: bytes, states: int | None = None) -> int:
        """Match each line with a path up to a slash, after `states` for what is before it."""
        states = self._start if states is None else states
        for byte in beginning:
            if not states:
                break
            stays = self._anything if byte == _SLASH else self._wild
            states = self._with_empty((states & self._move(byte)) << 1 | states & stays)
        return states

    def _with_empty(self, states: int) -> int:
        optional = states & self._no_folder
        states |= optional << 1 | optional << 3
        return states | (states & self._wild) << 1

    def _move(self, byte: int) -> int:
        if byte not in self._moves:
            accepting = (
                places for members, places in self._places_by_members.items() if members >> byte & 1
            )
            self._moves[byte] = self._states(chain.from_iterable(accepting))
        return self._moves[byte]

    def _states(self, places: Iterable[int]) -> int:
        bits = bytearray(self._size // 8 + 1)
        for place in places:
            bits[place >> 3] |= 1 << (place & 7)
        return int.from_bytes(bits, "little")


def _lines(text: bytes) -> Iterator[_Line]:
    for raw in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        pattern = _without_end(raw.removesuffix(b"\r").partition(b"\0")[0])
        if not pattern or raw.startswith(b"#"):
            continue
        is_negated = pattern.startswith(b"!")
        pattern = pattern.removeprefix(b"!")
        of_folders = pattern.endswith(b"/")
        pattern = pattern.removesuffix(b"/")
        try:
            if b"/" in pattern:
                steps = _steps(pattern.removeprefix(b"/"), is_path=True)
            else:
                steps = _ANY_FOLDERS + _steps(pattern, is_path=False)
        except _NeverMatchesError:
            continue
        yield _Line(steps, is_negated, of_folders)


def _without_end(line: bytes) -> bytes:
    """A line without the spaces at its end, of which a backslash keeps the one behind it."""
    bare = line.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return line[: len(bare) + 1] if backslashes % 2 else bare


def _steps(pattern: bytes, *, is_path: bool) -> list[_Step]:
    """The steps of a pattern; in a path, which holds a slash, `**` may stand for folders."""
    # git compares what stands before the first of these by itself; `**` behind it is at a start.
    first = next((place for place, byte in enumerate(pattern) if byte in b"*?[\\"), 0)
    steps: list[_Step] = []
    place = 0
    while place < len(pattern):
        if stars := _STARS.match(pattern, place):
            is_start = place == first or pattern[place - 1] == _SLASH
            place = stars.end()
            if is_path and is_start and len(stars[0]) > 1:
                added, place = _folder_steps(pattern, place)
                # A row of `**/` is as good as one.
                steps += added if steps[-3:] != _ANY_FOLDERS or added != _ANY_FOLDERS else []
            else:
                steps.append(_WITHIN_NAME)
        elif pattern[place] == ord("?"):
            steps.append(_EVERY & ~(1 << _SLASH))
            place += 1
        elif pattern[place] == ord("["):
            members, place = _class_at(pattern, place + 1)
            steps.append(members)
        else:
            byte, place = _byte_at(pattern, place)
            steps.append(1 << byte)
    return steps


def _folder_steps(pattern: bytes, place: int) -> tuple[list[_Step], int]:
    """The steps of a `**` at the start of a name, by what follows it, and where they end."""
    rest = pattern[place : place + 2]
    if rest.startswith(b"/"):
        return _ANY_FOLDERS, place + 1
    return [_ANYTHING if rest in (b"", b"\\/") else _WITHIN_NAME], place


def _class_at(pattern: bytes, place: int) -> tuple[int, int]:
    is_negated = pattern[place : place + 1] in (b"!", b"^")
    place += is_negated
    members = before = 0
    while True:
        named = _NAMED_CLASS.match(pattern, place)
        if named:
            if named[1] not in _CLASSES:
                raise _NeverMatchesError
            members, before, place = members | _CLASSES[named[1]], 0, named.end()
        elif before and _RANGE.match(pattern, place):
            byte, place = _byte_at(pattern, place + 1)
            # No byte, where they are the wrong way round.
            members, before = members | max(0, (2 << byte) - (1 << before)), 0
        else:
            before, place = _byte_at(pattern, place)
            members |= 1 << before
        if pattern[place : place + 1] == b"]":
            return (members ^ _EVERY if is_negated else members) & ~(1 << _SLASH), place + 1


def _byte_at(pattern: bytes, place: int) -> tuple[int, int]:
    place += pattern[place : place + 1] == b"\\"
    if place >= len(pattern):
        raise _NeverMatchesError
    return pattern[place], place + 1

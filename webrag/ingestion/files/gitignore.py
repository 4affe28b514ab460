"""Reads the lines of a `.gitignore`, and tells by them which names below its folder are ignored."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from webrag.ingestion.globs import ANY_FOLDERS, PathGlob

_CLASSES: Final = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "lower": "a-z",
    "space": " \t\r",
    "upper": "A-Z",
}
_GIT_ONLY: Final = re.compile(r"\\(.)|\[\^|\[:(\w+):\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class IgnoreLine:
    """A line, and how far it matches the way from its folder to the one that is read now."""

    glob: PathGlob
    is_negated: bool
    of_folders: bool
    places: frozenset[int]

    def below(self, folder: str) -> "IgnoreLine":
        """The line as it is for what lies in a folder."""
        return replace(self, places=self.glob.after(folder, self.places))

    def fits(self, name: str, *, is_folder: bool) -> bool:
        """Tell whether the line is about a file or folder."""
        if self.of_folders and not is_folder:
            return False
        return self.glob.ends_with(name, self.places)


def lines_below(lines: Iterable[IgnoreLine], folder: str) -> list[IgnoreLine]:
    """The lines that can still fit a name below a folder."""
    return [each for each in (line.below(folder) for line in lines) if each.places]


def is_ignored(name: str, lines: Sequence[IgnoreLine], *, is_folder: bool) -> bool | None:
    """Tell by the last line that fits whether a name is ignored; None where no line fits."""
    fitting = (line for line in reversed(lines) if line.fits(name, is_folder=is_folder))
    return next((not line.is_negated for line in fitting), None)


def ignore_lines(text: bytes) -> Iterator[IgnoreLine]:
    """Read the lines of a `.gitignore`, as they are for the folder it lies in."""
    for raw in os.fsdecode(text.removeprefix(b"\xef\xbb\xbf")).split("\n"):
        pattern = _without_end(raw.removesuffix("\r"))
        is_negated = pattern.startswith("!")
        pattern = pattern.removeprefix("!")
        of_folders = pattern.endswith("/")
        pattern = pattern.removesuffix("/")
        if not pattern or raw.startswith("#"):
            continue
        names = [] if "/" in pattern else [ANY_FOLDERS]
        names += map(_as_glob, pattern.removeprefix("/").split("/"))
        if names[-1] == ANY_FOLDERS:
            names.append("*")  # what lies in the folder, and not the folder
        glob = PathGlob(names)
        yield IgnoreLine(glob, is_negated, of_folders, glob.start)


def _without_end(line: str) -> str:
    """A line without the spaces at its end, of which a backslash keeps the one behind it."""
    bare = line.rstrip(" ")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return line[: len(bare) + 1] if backslashes % 2 else bare


def _as_glob(name: str) -> str:
    """A name as Python's globs write it: they know no backslash, `[^a]` or `[[:alpha:]]`."""
    if len(name) > 1 and not name.strip("*"):
        return ANY_FOLDERS

    def written(found: re.Match[str]) -> str:
        if found[1]:
            return f"[{found[1]}]" if found[1] in "*?[" else found[1]
        return _CLASSES.get(found[2], found[0]) if found[2] else "[!"

    head, end, tail = _GIT_ONLY.sub(written, name).rpartition("]")
    return head + end + tail.replace("[", "[[]")  # Python looks for the end of each, in vain

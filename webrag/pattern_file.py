"""Reads regular expressions that are kept as data in a file beside the module that uses them."""

import re
from configparser import ConfigParser, ExtendedInterpolation
from functools import cache
from importlib.resources import files


@cache
def _read(package: str, name: str) -> ConfigParser:
    found = ConfigParser(delimiters="=", interpolation=ExtendedInterpolation())
    found.read_string(files(package).joinpath(name).read_text("utf-8"))
    return found


class PatternFile:
    """The patterns of a file, by section and name.

    The lines of an entry are put together without their indentation. `${name}` stands for an entry
    of the section [DEFAULT], `$$` for a dollar sign and `[ ]` for a blank at either end of a line.
    Those of the section [patterns] ignore case.
    """

    def __init__(self, package: str, name: str) -> None:
        self._read = _read(package, name)
        self.sections = tuple(self._read.sections())
        entries = self._entries("patterns") if "patterns" in self.sections else {}
        self.patterns = {
            name: re.compile("".join(lines), re.IGNORECASE) for name, lines in entries.items()
        }

    def _entries(self, section: str) -> dict[str, list[str]]:
        own, shared = self._read[section], self._read.defaults()
        return {name: own[name].strip("\n").split("\n") for name in own if name not in shared}

    def lines(self, section: str) -> list[list[str]]:
        """The lines of each entry of a section, in order."""
        return list(self._entries(section).values())

    def texts(self, section: str) -> list[str]:
        """Each entry of a section in one piece, in order."""
        return ["".join(lines) for lines in self.lines(section)]

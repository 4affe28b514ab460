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
    """

    def __init__(self, package: str, name: str) -> None:
        self._read = _read(package, name)
        self.sections = tuple(self._read.sections())

    def lines(self, section: str) -> list[list[str]]:
        """The lines of each entry of a section, in order."""
        own, shared = self._read[section], self._read.defaults()
        return [own[name].strip("\n").split("\n") for name in own if name not in shared]

    def texts(self, section: str) -> list[str]:
        """Each entry of a section in one piece, in order."""
        return ["".join(lines) for lines in self.lines(section)]

    def pattern(self, name: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
        """An entry of the section [patterns]."""
        return re.compile(self._read["patterns"][name].replace("\n", ""), flags)

"""Matches paths with globs, one name after the other, in time that grows as glob and path do."""

import re
from collections.abc import Callable, Collection, Iterable
from fnmatch import translate
from functools import cached_property, lru_cache
from typing import Final

ANY_FOLDERS: Final = "**"
_NAME_SIZE: Final = 8


@lru_cache(maxsize=1_000)
def _matcher(name: str) -> Callable[[str], object]:
    # It tries each of a row of wildcards once, so that no name takes long.
    return re.compile(translate(name)).match


class PathGlob:
    """A glob, made of the names between its slashes.

    `*` stands for any characters of one name, `?` for one, `[ab]` for one of those, and a whole
    `**` for any number of folders. How far a path matches is a set of places: so many names of the
    glob can be used up by it. Its `size` tells what matching it may cost. A `matcher` reads names
    that are written in another way.
    """

    def __init__(
        self, names: Iterable[str], matcher: Callable[[str], Callable[[str], object]] = _matcher
    ) -> None:
        kept: list[str] = []
        for name in names:
            if name != ANY_FOLDERS or kept[-1:] != [ANY_FOLDERS]:  # a row of them is as good as one
                kept.append(name)
        self._names, self._matcher = kept, matcher
        self.size = sum(_NAME_SIZE + len(name) for name in kept)
        self.start = self._skipping({0})

    @cached_property
    def _fits(self) -> list[Callable[[str], object] | None]:
        """Made when first needed: it takes a second for a name of 100 kB."""
        return [None if name == ANY_FOLDERS else self._matcher(name) for name in self._names]

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

"""Judges by their address alone which pages of a site a crawl covers; it follows nothing."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote, urlsplit

from webrag.crawling.report import CrawlOptions
from webrag.errors import InputError
from webrag.ingestion.addresses import site_of
from webrag.ingestion.globs import ANY_FOLDERS, PathGlob
from webrag.orchestration.links.rules import skip_reason

_MAX_PATTERN_CHARS: Final = 500
_REGEX_SIGNS: Final = re.compile(r"^\^|\$$|\\|\.\*|\(\?")
_BRACES: Final = re.compile(r"\{[^{},]*+,")


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A glob over the path of a URL, as names to match one after the other.

    `*` stands for any characters within one folder or file name, `**` for any folders, `?` for
    one character, as does an escape such as `%C3%A9`. A pattern without a slash at its start may
    begin at any folder; one with a slash at its end covers everything below.
    """

    glob: PathGlob

    @classmethod
    def parse(cls, text: str, *, option: str) -> "PathPattern":
        """Read the pattern of a named option, or raise InputError that says what is allowed."""
        problem = _problem(text)
        if problem:
            raise InputError(
                f"The {option} pattern {text[:80]!r} {problem}; give a path such as /guide/** or"
                " *.html, where * stands for any characters within one folder or file name and"
                " ** for any folders."
            )
        segments = [part for part in unquote(text).split("/") if part]
        if not text.startswith("/"):
            segments.insert(0, ANY_FOLDERS)
        if text.endswith("/"):
            segments.append(ANY_FOLDERS)
        return cls(PathGlob(segments))

    def matches(self, url: str) -> bool:
        """Tell whether the path of a canonical URL matches as a whole."""
        names = unquote(urlsplit(url).path).split("/")
        return self.glob.matches(name for name in names if name)


@dataclass(frozen=True, slots=True)
class CrawlScope:
    """Pages that one crawl covers: below the folder of a root, or its whole site.

    The `roots` are the start page as named and as its site calls it.
    """

    kind: Literal["site", "folder"]
    roots: tuple[str, ...]
    include: tuple[PathPattern, ...] = ()
    exclude: tuple[PathPattern, ...] = ()

    @classmethod
    def of(cls, options: CrawlOptions, roots: Iterable[str]) -> "CrawlScope":
        """The scope of a crawl's options; raises InputError where a pattern cannot be read."""
        return cls(
            options.scope,
            tuple(dict.fromkeys(roots)),
            tuple(PathPattern.parse(text, option="include") for text in options.include),
            tuple(PathPattern.parse(text, option="exclude") for text in options.exclude),
        )

    def reason_against(self, url: str) -> str | None:
        """Say in a clause why a canonical URL is left alone; None when it is covered."""
        if not self.admits(url):
            return "outside the folder of the start page" if self._on_site(url) else "another site"
        reason = skip_reason(url, reads_pdf=True)
        if reason is not None:
            return reason
        if any(pattern.matches(url) for pattern in self.exclude):
            return "excluded by a pattern"
        if self.include and not any(pattern.matches(url) for pattern in self.include):
            return "matched by no include pattern"
        return None

    def admits(self, url: str) -> bool:
        """Tell whether a page with this canonical URL may be stored, patterns apart."""
        return self._on_site(url) and (self.kind == "site" or self.in_folder(url))

    def in_folder(self, url: str) -> bool:
        """Tell whether a URL of the site lies in or below the folder of a root."""
        path = urlsplit(url).path
        return any(path.startswith(folder_of(root)) for root in self.roots)

    def _on_site(self, url: str) -> bool:
        return site_of(url) in {site_of(root) for root in self.roots}


def folder_of(url: str) -> str:
    """Path of the folder a page lies in, with a slash at both ends."""
    return urlsplit(url).path.rpartition("/")[0] + "/"


def _problem(text: str) -> str | None:
    if not text.strip("/ "):
        return "is empty"
    if len(text) > _MAX_PATTERN_CHARS:
        return f"has {len(text):,} characters, more than {_MAX_PATTERN_CHARS}"
    if "://" in text or text.startswith("//"):
        return "holds a host name"
    if _REGEX_SIGNS.search(text):
        return "looks like a regular expression"
    if _BRACES.search(text):
        return "has braces, which stand for nothing here: give a pattern for each"
    if any(ANY_FOLDERS in part and part != ANY_FOLDERS for part in text.split("/")):
        return "has ** beside other characters"
    return None

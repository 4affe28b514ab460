"""Holds the pages of a site's own map, their names and texts, and reads its data; no I/O here."""

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pyjson5 import Json5DecoderException, Json5NestingTooDeep, decode

from webrag.ingestion.addresses import link_target, site_of
from webrag.ingestion.characters import collapse, normalize_characters, storable

MapContent: TypeAlias = Literal["names", "words", "texts"]

MAX_PAGES: Final = 50_000
MAX_NAMES: Final = 200
MAX_TEXT_CHARS: Final = 200_000
_MAX_LINE_CHARS: Final = 200
_MAX_ADDRESS_CHARS: Final = 2_000
_PLAIN_PATH: Final = re.compile(r"\w[\w-]*+(?:[./]\w[\w-]*+)*+", re.ASCII)
_MAX_TOTAL_CHARS: Final = 20_000_000


class MapRefusedError(ValueError):
    """A file is no map that can be used, as readers find; the message ends a sentence."""


class Section(NamedTuple):
    """A part of a page as its map knows it: its heading, which may be empty, and its text."""

    heading: str
    text: str


@dataclass(slots=True)
class ListedPage:
    """One page of a site by its canonical address, with headings and names that it explains."""

    url: str
    title: str = ""
    names: list[str] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SiteListing:
    """Everything one map says of pages, each once: beside titles names, words or whole texts.

    Attributes:
        occurrences: Stems, as Porter's algorithm makes them, to the positions of the pages that
            hold them; for maps that give these in place of texts.
    """

    pages: Sequence[ListedPage]
    occurrences: Mapping[str, Sequence[int]] = field(default_factory=dict)
    content: MapContent = "names"


class Listing:
    """Collects the pages of one site, under the caps on all that is kept.

    `base` is the address that the map's own are relative to.
    """

    def __init__(self, base: str) -> None:
        self._base = base
        self._site = site_of(base)
        self._folder = base.partition("?")[0].rpartition("/")[0] + "/"
        self._pages: dict[str, ListedPage] = {}
        self._by_href: dict[str, ListedPage | None] = {}
        self._left = _MAX_TOTAL_CHARS

    def page(self, href: str, title: str = "") -> ListedPage | None:
        """The page an address leads to; None on other sites and where there are too many."""
        if href not in self._by_href:
            url = self._address(href)
            if url is not None and len(self._pages) < MAX_PAGES:
                self._pages.setdefault(url, ListedPage(url))
            self._by_href[href] = self._pages.get(url or "")
        found = self._by_href[href]
        if found is not None and title and not found.title:
            found.title = line(title)
        return found

    def name(self, page: ListedPage, name: str) -> None:
        """Note a heading or a name that a page explains."""
        cleaned = line(name)
        if cleaned and len(page.names) < MAX_NAMES and self._left > 0:
            self._left -= len(cleaned)
            page.names.append(cleaned)

    def text(self, page: ListedPage, text: str, heading: str = "") -> None:
        """Note text of a page, below one of its headings."""
        # The last name may have taken more than was left.
        kept = storable(text[: max(min(MAX_TEXT_CHARS, self._left), 0)])
        if kept:
            section = Section(line(heading), kept)
            self._left -= sum(map(len, section))
            page.sections.append(section)

    def pages(self) -> Iterable[ListedPage]:
        """Give those collected so far."""
        return self._pages.values()

    def done(self, content: MapContent = "names") -> SiteListing:
        """Give all that was collected, with `content` of the sections where any page has one."""
        found = tuple(
            page for page in self._pages.values() if page.title or page.names or page.sections
        )
        if not found:
            raise MapRefusedError("it names no page of the site")
        has_sections = any(page.sections for page in found)
        return SiteListing(found, content=content if has_sections else "names")

    def _address(self, href: str) -> str | None:
        if not href or len(href) > _MAX_ADDRESS_CHARS:
            return None
        # Resolving 50,000 addresses takes seconds; most need none.
        if href.endswith(".html") and _PLAIN_PATH.fullmatch(href):
            return self._folder + href
        url = link_target(href.partition("#")[0] or self._base, self._base)
        return url if url and site_of(url) == self._site else None


def line(text: str) -> str:
    """A text on one line, without what is too long for a name."""
    shown = normalize_characters(storable(text[: 4 * _MAX_LINE_CHARS]))
    return collapse(shown)[:_MAX_LINE_CHARS].strip()


# Tags within a word or a sentence; all others part what stands around them.
_INLINE_TAG: Final = re.compile(
    r"</?(?:a|abbr|b|code|em|i|kbd|mark|q|s|samp|small|span|strong|sub|sup|u|var)\b[^<>]{0,200}+>",
    re.IGNORECASE,
)
_TAG: Final = re.compile(r"<[^<>]{0,200}+>")


def plain(text: str) -> str:
    """A text without tags and entities."""
    if "<" not in text and "&" not in text:
        return text
    return html.unescape(_TAG.sub(" ", _INLINE_TAG.sub("", text[:MAX_TEXT_CHARS]))).strip()


def table_of(value: Any) -> Mapping[str, Any]:
    """A value when it is a table, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """A value when it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """A value when it is a text, else nothing."""
    return value if isinstance(value, str) else ""


# What JavaScript has and JSON5 has not: numbers as keys, as Doxygen writes them, and templates.
# What is not closed reaches to the end: trying it again at every quote would take quadratic time.
_NOT_JSON5: Final = re.compile(
    r"\"(?:[^\"\\]++|\\.)*+(?:\"|\\?\Z)|'(?:[^'\\]++|\\.)*+(?:'|\\?\Z)"
    r"|`(?P<template>(?:[^`\\]++|\\.)*+)(?:`|\\?\Z)"
    r"|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)|//[^\n]*+"
    r"|(?P<before>[{,]\s*+)(?P<number>\d{1,9}+)(?=\s*+:)",
    re.DOTALL,
)
_MOST_NESTED: Final = 500
_NEAR: Final = 100
_PARSE_CALL: Final = "JSON.parse("


def read_json(text: str) -> Any:
    """Read a JSON file; raises MapRefusedError where it is none, or is nested too deeply."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise _refusal(error) from error


def read_data(text: str, after: str = "") -> Any:
    """Read the first table or list of a JavaScript file, as a literal or inside `JSON.parse`.

    It begins `after` what stands before the data.
    """
    begin = text.find(after)
    if begin < 0:
        raise MapRefusedError(f"{after.strip()!r} does not occur in it")
    begin += len(after)
    opening = re.compile(r"[\[{]|JSON\.parse\(").search(text, begin)
    if opening is None:
        raise MapRefusedError("it holds no data")
    if opening.group() == _PARSE_CALL:
        return read_json(_read_literal(text[opening.end() :]))
    try:
        return json.JSONDecoder().raw_decode(text, opening.start())[0]
    except (ValueError, RecursionError):
        return _read_literal(text[opening.start() :])


def read_quoted(text: str, known: str) -> Any:
    """Read JSON inside a string of a JavaScript file, near whose beginning a word stands."""
    at = text.find(known)
    quote = max(text.rfind(mark, max(at - _NEAR, 0), at) for mark in ("'{", '"{', "`{"))
    if at < 0 or quote < 0:
        raise MapRefusedError("it holds no data")
    return read_json(_read_literal(text[quote:]))


def _read_literal(text: str) -> Any:
    with suppress(Json5DecoderException):
        return decode(text, _MOST_NESTED, True)
    try:
        return decode(_NOT_JSON5.sub(_as_json5, text), _MOST_NESTED, True)
    except Json5DecoderException as error:
        raise _refusal(error) from error


def _as_json5(found: re.Match[str]) -> str:
    if found["number"]:
        return f'{found["before"]}"{found["number"]}"'
    if found["template"] is None:
        return found[0]
    body = found["template"].replace("\r\n", "\n").replace("\0", " ").replace("\\\\", "\0")
    body = body.replace("\\\n", "").replace("\\'", "'").replace("'", "\\'").replace("\n", "\\n")
    return f"'{body.replace(chr(0), 2 * chr(92))}'"


def _refusal(error: Exception) -> MapRefusedError:
    if isinstance(error, RecursionError | Json5NestingTooDeep):
        return MapRefusedError("it is nested too deeply")
    return MapRefusedError(f"it is not written as data ({str(error.args[0])[:100]})")

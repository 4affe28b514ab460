"""Reads on in a stored page: from an offset, a heading, a passage or around a quotation."""

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final
from uuid import UUID

from webrag.argument_checks import LEAST_READ_TOKENS, check_text, checked_count, shown_value
from webrag.concurrency import in_background
from webrag.corpus.models import PageText
from webrag.corpus.pages import Corpus
from webrag.errors import InputError
from webrag.frozen import FrozenModel
from webrag.ingestion.addresses import page_address
from webrag.ingestion.characters import sentence_ends
from webrag.retrieval.citation_checks import find_quote
from webrag.retrieval.markup import plain_text

TokenCounter = Callable[[str], int]

_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_FENCE: Final = re.compile(r" {0,3}(?:>[ \t]?|[-*+][ \t]+)*(`{3,}|~{3,})(.*)")
_LEAST_QUOTED: Final = 0.5
# A page of nothing but headings has hundreds of thousands; nobody looks further.
_MOST_HEADINGS: Final = 5_000
_HEADING_CHARS: Final = 200
# What stands before a quotation says what it is about: a third of the excerpt.
_SHARE_BEFORE_QUOTE: Final = 1 / 3
# Dense code has some two characters a token, prose more than four; cutting begins with more than
# can fit, whatever the page is.
_MOST_CHARS_PER_TOKEN: Final = 12
# An excerpt ends where a paragraph does, when that costs no more than this share of it.
_GIVEN_UP_SHARE: Final = 0.3
_GIVEN_UP_FOR_SENTENCE: Final = 0.5  # chosen, not measured, as is the one above
# Characters behind a full stop that tell whether it ends a sentence.
_SHOWS_SENTENCE_END: Final = 5


class Heading(FrozenModel):
    """A heading of a stored page, and the offset of its line."""

    level: int
    text: str
    char_start: int


class PageExcerpt(FrozenModel):
    """Part of a stored page, exactly, with the page's headings and a note on the place."""

    page: PageText
    text: str
    char_start: int
    char_end: int
    page_chars: int
    headings: tuple[Heading, ...] = ()
    note: str = ""

    @property
    def next_offset(self) -> int | None:
        """Offset of the rest of the page; None at its end."""
        return self.char_end if self.char_end < self.page_chars else None

    @property
    def heading_path(self) -> tuple[str, ...]:
        """Headings above the first character, outermost first."""
        path: list[Heading] = []
        before = bisect_right([each.char_start for each in self.headings], self.char_start)
        for each in self.headings[:before]:
            while path and path[-1].level >= each.level:
                path.pop()
            path.append(each)
        return tuple(each.text for each in path)

    def __repr__(self) -> str:
        return (
            f"<PageExcerpt chars {self.char_start}-{self.char_end} of {self.page_chars}, "
            f"{self.page.url}>"
        )

    def __str__(self) -> str:
        """The text."""
        return self.text


@dataclass(frozen=True, slots=True)
class ReadingPlace:
    """A place to read from, or a quotation to read around; with no field set the beginning."""

    offset: int | None = None
    heading: str | None = None
    quote: str | None = None
    passage_id: UUID | None = None

    def check(self) -> None:
        """Refuse what names no place."""
        given = [name for name, value in asdict(self).items() if value is not None]
        if len(given) > 1:
            raise InputError(
                f"{' and '.join(given)} name more than one place to read; give one of them."
            )
        if self.offset is not None:
            checked_count("offset", self.offset, minimum=0)
        for name, text in (("heading", self.heading), ("quote", self.quote)):
            if text is not None and not check_text(name, text).strip():
                raise InputError(f"{name} is empty; give words of the page, or leave it out.")


async def read_stored(
    corpus: Corpus,
    *,
    url: str | None,
    place: ReadingPlace,
    max_tokens: int,
    count_tokens: TokenCounter,
) -> PageExcerpt:
    """Read part of a stored page, as `WebRAG.read`; nothing is fetched."""
    place.check()
    checked_count("max_tokens", max_tokens, minimum=LEAST_READ_TOKENS)
    page, place = await _located(corpus, url, place)
    read = partial(excerpt_at, page, place, max_tokens=max_tokens, count_tokens=count_tokens)
    return await in_background(read)


async def _located(
    corpus: Corpus, url: str | None, place: ReadingPlace
) -> tuple[PageText, ReadingPlace]:
    if place.passage_id is not None:
        passage = await corpus.passage_text(place.passage_id)
        page = None if passage is None else await corpus.page_text(passage.document_id)
        if passage is None or page is None:
            raise InputError(
                f"The passage {place.passage_id} is not stored; the page may have changed since. "
                "Search again for the ids of today."
            )
        return page, ReadingPlace(offset=passage.char_start)
    if url is None:
        raise InputError("No page was named: give its URL or the id of a passage.")
    address = page_address(url)
    stored = await corpus.page(address)
    page = None if stored is None else await corpus.page_text(UUID(stored.document_id))
    if page is None:
        raise InputError(f"{address} is not stored; `ingest` fetches it.")
    return page, place


def excerpt_at(
    page: PageText, place: ReadingPlace, *, max_tokens: int, count_tokens: TokenCounter
) -> PageExcerpt:
    """The text of a page from a place on, ending with a paragraph where one ends."""
    markdown = page.markdown
    headings = headings_of(markdown)
    start, note = _start(page, place, headings, max_tokens=max_tokens, count_tokens=count_tokens)
    text = cut_to_tokens(markdown, start, max_tokens, count_tokens)
    return PageExcerpt(
        page=page,
        text=text,
        char_start=start,
        char_end=start + len(text),
        page_chars=len(markdown),
        headings=headings,
        note=note,
    )


def _start(
    page: PageText,
    place: ReadingPlace,
    headings: Sequence[Heading],
    *,
    max_tokens: int,
    count_tokens: TokenCounter,
) -> tuple[int, str]:
    markdown = page.markdown
    if place.heading is not None:
        return _named(headings, place.heading, page.url).char_start, ""
    if place.quote is not None:
        found = find_quote(markdown, place.quote)
        if found.char_start is None or found.similarity < _LEAST_QUOTED:
            raise InputError(
                f"{page.url} holds nothing like {shown_value(place.quote)}; give the words as they "
                "stand there, a heading or an offset."
            )
        is_changed = found.state == "changed"
        note = "The page has only a passage similar to the quotation." if is_changed else ""
        before = int(max_tokens * _SHARE_BEFORE_QUOTE)
        return _start_before(markdown, found.char_start, before, count_tokens), note
    start = place.offset or 0
    if start and start >= len(markdown):
        raise InputError(
            f"offset is {start}; {page.url} has {len(markdown):,} characters, so it must be below "
            "that."
        )
    return start, ""


def _named(headings: Sequence[Heading], wanted: str, url: str) -> Heading:
    """The heading meant: the same words, else the first that holds them."""
    words = _folded(wanted)
    texts = [_folded(each.text) for each in headings]
    for fits in (lambda text: text == words, lambda text: words in text):
        for each, text in zip(headings, texts, strict=True):
            if fits(text):
                return each
    raise InputError(f"{url} has no heading {shown_value(wanted)}.{_guess(headings, texts, words)}")


def _guess(headings: Sequence[Heading], texts: Sequence[str], words: str) -> str:
    # Imported here: few are read by a heading that is not there.
    from rapidfuzz import fuzz, process

    asked = words[:_HEADING_CHARS]
    found = process.extract(asked, texts, scorer=fuzz.ratio, limit=3, score_cutoff=60)
    near = [text for text, _, _ in found]
    shown = [headings[texts.index(text)].text for text in near] or [e.text for e in headings[:5]]
    if not shown:
        return " It has none at all: give an offset."
    kind = "Near to it" if near else "Its first"
    return f" {kind}: {'; '.join(map(shown_value, shown))}."


def _folded(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold())) or text.casefold().strip()


def headings_of(markdown: str) -> tuple[Heading, ...]:
    """Headings that begin with number signs, outside fenced code; linear in the text."""
    found: list[Heading] = []
    fence = ""
    for start, line in _lines(markdown):
        mark = _FENCE.match(line)
        if fence:
            is_end = mark is not None and mark[1].startswith(fence) and not mark[2].strip()
            fence = "" if is_end else fence
        elif mark:
            fence = mark[1]
        elif (heading := _HEADING.match(line)) is not None:
            text = plain_text(heading[2][:_HEADING_CHARS].rstrip("# \t")).strip()
            found.append(Heading(level=len(heading[1]), text=text, char_start=start))
            if len(found) == _MOST_HEADINGS:
                break
    return tuple(found)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        # Neither a heading nor a fence is longer than this.
        yield start, text[start : min(end, start + _HEADING_CHARS * 2)]
        start = end + 1


def cut_to_tokens(text: str, start: int, max_tokens: int, count_tokens: TokenCounter) -> str:
    """Give as much text from an offset on as fits, up to an end of something near to it."""
    part = text[start : start + max_tokens * _MOST_CHARS_PER_TOKEN]
    whole = start + len(part) == len(text)
    while (tokens := count_tokens(part)) > max_tokens and len(part) > 1:
        whole = False
        part = part[: max(int(len(part) * min(0.95, max_tokens / tokens)), 1)]
    return part if whole else text[start : last_end(text, start, start + len(part))]


def last_end(text: str, start: int, stop: int) -> int:
    """Give the last end of a paragraph, line, sentence or word near to where a text is cut."""
    near = math.ceil(stop - (stop - start) * _GIVEN_UP_SHARE)
    far = math.ceil(stop - (stop - start) * _GIVEN_UP_FOR_SENTENCE)
    paragraph = text.rfind("\n\n", start, stop) + 2
    line = text.rfind("\n", start, stop) + 1
    ends = sentence_ends(text, far, stop + _SHOWS_SENTENCE_END, rule="prose")
    sentence = max((end + text.startswith(" ", end) for end in ends if end <= stop), default=0)
    word = text.rfind(" ", start, stop) + 1
    for end, least in ((paragraph, near), (line, near), (max(line, sentence), far), (word, near)):
        if end >= least:
            return min(end, stop)
    return stop


def _start_before(text: str, place: int, tokens: int, count_tokens: TokenCounter) -> int:
    """Start of the first paragraph before a place from which on no more than that is read."""
    start = max(place - tokens * _MOST_CHARS_PER_TOKEN, 0)
    while start < place and (counted := count_tokens(text[start:place])) > tokens:
        start = place - int((place - start) * min(0.95, tokens / counted))
    if start == 0:
        return 0
    for separator in ("\n\n", "\n"):
        found = text.find(separator, start - len(separator), place)
        if found >= 0:
            return found + len(separator)
    return place

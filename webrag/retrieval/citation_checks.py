"""Checks quotations against stored and live pages, and tells what two texts have in common.

Long and repetitive texts stop nobody.
"""

import asyncio
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import Match, SequenceMatcher
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar
from uuid import UUID

from webrag.argument_checks import check_text
from webrag.concurrency import all_of, in_background, within
from webrag.corpus.models import StoredPage
from webrag.errors import InputError, PageGoneError, WebRAGError
from webrag.frozen import FrozenModel
from webrag.ingestion.addresses import is_file, page_address
from webrag.ingestion.characters import DEFAULT_IGNORABLE
from webrag.ingestion.models import NormalizedDocument

if TYPE_CHECKING:
    from webrag.corpus.pages import Corpus
    from webrag.ingestion.service import IngestionService

T = TypeVar("T", bound=Hashable)

MAX_QUOTE_CHARS = 10_000

FindingState = Literal[
    "exact",
    "moved",
    "reformatted",
    "changed",
    "absent",
    "not_stored",
    "gone",
    "unreachable",
    "unchecked",
]

VERBATIM: Final[tuple[FindingState, ...]] = ("exact", "moved")
"""States of a version that holds the quotation as it was quoted."""


class Citation(FrozenModel):
    """A quotation somebody gives, and where it is said to stand in the stored text of a page.

    A passage, too, names a page; without `char_end` it is as long as the quotation.
    """

    quote: str
    url: str | None = None
    char_start: int | None = None
    char_end: int | None = None
    passage_id: UUID | None = None


class Finding(FrozenModel):
    """The passage of one version of a page that fits a quotation, if any.

    Attributes:
        state: `exact` the version holds it verbatim, at the place named if one was; `moved`
            verbatim, but elsewhere; `reformatted` the same words with other white space, markup or
            typographic signs; `changed` only a similar passage was found; `absent` not even that;
            `not_stored` the corpus lacks the page, `gone` the site says
            that the page does not exist, `unreachable` the live page could not be read,
            `unchecked` it was not asked for or time ran out.
        text: The version's own words from `char_start` on; None when nothing is like it.
        similarity: Share of words in common, [0, 1]; 1.0 for the first three states.
        reason: Why the version could not be read.
        seen_at: When the site delivered or confirmed the version.
    """

    state: FindingState
    text: str | None = None
    char_start: int | None = None
    char_end: int | None = None
    similarity: float = 0.0
    reason: str | None = None
    seen_at: datetime | None = None


class CitationCheck(FrozenModel):
    """A quotation, and what was found of it in the stored version and on the page as it is now.

    Where the stored version has it no more, the site last confirmed a kept earlier text with it at
    `last_seen_at`, and the first text without it was stored at `missing_since`.
    """

    citation: Citation
    url: str
    stored: Finding
    live: Finding
    page_unchanged: bool | None = None
    last_seen_at: datetime | None = None
    missing_since: datetime | None = None


def check_citation(citation: Citation) -> None:
    """Refuse what cannot be looked up, whatever is stored."""
    quote = check_text("A quote", citation.quote)
    if not quote.strip():
        raise InputError("A quote is empty: give the text that was quoted.")
    if len(quote) > MAX_QUOTE_CHARS:
        raise InputError(
            f"A quote has {len(quote):,} characters; at most {MAX_QUOTE_CHARS:,} are allowed."
        )
    quoted_place(citation)
    if citation.url:
        page_address(citation.url)
    elif citation.passage_id is None:
        raise InputError("A citation names no page: give its url, or the id of a passage.")


def quoted_place(citation: Citation) -> tuple[int, int] | None:
    """Give the offsets the quotation is said to stand at; None when that is not said."""
    start, end = citation.char_start, citation.char_end
    if start is None:
        return None
    end = start + len(citation.quote) if end is None else end
    if not 0 <= start < end:
        raise InputError(
            f"char_start is {start} and char_end is {end}; they must be offsets, the first smaller."
        )
    return start, end


# Two sentences about one thing share about half of their words; a corrected one shares more.
_LEAST_SIMILARITY = 0.6

_WORD = re.compile(r"\w+")

_OTHER = -1  # the number of every word that the quotation lacks

_BLOCK_CHARS = 4_096  # what is walked character by character, once

# What ends a line of a cell in the stored text; blanks in its place leave offsets as they are.
_CELL_LINE = "<br>"
_AS_BLANKS = " " * len(_CELL_LINE)
# White space, marks of Markdown, and what is drawn as nothing.
_IGNORED = re.compile(rf"[\s*_`\\#>|~{DEFAULT_IGNORABLE}]")

_TYPOGRAPHY = str.maketrans(
    "\u2018\u2019\u201c\u201d\u2010\u2011\u2013\u2014",
    "\u0027\u0027\u0022\u0022----",
)


def find_quote(text: str, quote: str, place: tuple[int, int] | None = None) -> Finding:
    """Find the best match of a quotation: at its place, nearest to it, then similar.

    Linear in the length of the text, and never more than quadratic in the words of the quotation,
    which is not blank, sixty-four at once.
    """
    found = _nearest(text, quote, None if place is None else place[0])
    within = -1 if place is None else text.find(quote, *place)
    found = within if within >= 0 else found
    if found is not None:
        inside = place is None or (place[0] <= found and found + len(quote) <= place[1])
        return _match("exact" if inside else "moved", text, (found, found + len(quote)))
    span = _reformatted(text, quote, place)
    if span is not None:
        return _match("reformatted", text, span)
    similar = _most_similar(text, quote)
    if similar is None or similar[1] < _LEAST_SIMILARITY:
        return Finding(state="absent", similarity=similar[1] if similar else 0.0)
    return _match("changed", text, similar[0], similar[1])


def _match(
    state: FindingState, text: str, span: tuple[int, int], similarity: float = 1.0
) -> Finding:
    start, end = span
    return Finding(
        state=state,
        text=text[start:end],
        char_start=start,
        char_end=end,
        similarity=round(similarity, 3),
    )


def _nearest(text: str, part: str, near: int | None) -> int | None:
    """Find where a part begins: first of all, or closest to an offset; of two as close the first.

    Only two places are looked up, as a text of one letter holds the part everywhere.
    """
    after = text.find(part, near)
    if near is None:
        return after if after >= 0 else None
    head = text[: near + len(part) - 1]
    # Searched backwards in a reversed copy: `rfind` takes the product of both lengths.
    mirrored = head[::-1].find(part[::-1])
    before = len(head) - mirrored - len(part) if mirrored >= 0 else -1
    found = [start for start in (before, after) if start >= 0]
    return min(found, key=lambda start: abs(start - near), default=None)


def _reformatted(text: str, quote: str, place: tuple[int, int] | None) -> tuple[int, int] | None:
    essential = _Essential()
    text, quote = (each.replace(_CELL_LINE, _AS_BLANKS) for each in (text, quote))
    wanted = quote.translate(essential)
    if not wanted:
        return None
    near = None if place is None else len(text[: place[0]].translate(essential))
    start = _nearest(text.translate(essential), wanted, near)
    if start is None:
        return None
    first = _offset(text, start, essential)
    return first, _offset(text, start + len(wanted) - 1, essential) + 1


class _Essential(dict[int, str]):
    """For each character what of it carries the wording."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if _IGNORED.match(char):
            kept = ""
        elif char < "\x80":
            kept = char
        else:
            kept = unicodedata.normalize("NFKC", char).translate(_TYPOGRAPHY)
        self[code] = kept
        return kept


def _offset(text: str, place: int, essential: _Essential) -> int:
    """Offset of the character that gives the essential one at a place."""
    for begin in range(0, len(text), _BLOCK_CHARS):
        block = text[begin : begin + _BLOCK_CHARS]
        held = len(block.translate(essential))
        if place < held:
            ends = accumulate(len(essential[ord(char)]) for char in block)
            return begin + next(at for at, end in enumerate(ends) if end > place)
        place -= held
    raise IndexError(place)


def _most_similar(text: str, quote: str) -> tuple[tuple[int, int], float] | None:
    """Span of the passage that shares most words with the quotation, and the share."""
    numbers: dict[str, int] = {}
    quoted = (match[0].casefold() for match in _WORD.finditer(quote))
    words = [numbers.setdefault(word, len(numbers)) for word in quoted]
    starts, ends, held = array("Q"), array("Q"), array("q")
    for match in _WORD.finditer(text):
        starts.append(match.start())
        ends.append(match.end())
        held.append(numbers.get(match[0].casefold(), _OTHER))
    if not words or not held:
        return None
    best = _fullest_window(held, words)
    # Additions make the passage longer than the quotation.
    low, high = max(0, best - len(words) // 2), min(len(held), best + 2 * len(words))
    matched = matching_runs(words, held[low:high].tolist(), most_pairs=_MOST_PAIRS_OF_QUOTE)
    if not matched:
        return None
    first, end = low + matched[0].b, low + matched[-1].b + matched[-1].size
    shared = sum(run.size for run in matched)
    return (starts[first], ends[end - 1]), 2 * shared / (len(words) + end - first)


def _fullest_window(held: Sequence[int], words: Sequence[int]) -> int:
    """Start of the run of `len(words)` words that has most of them, each counted as often."""
    wanted = Counter(words)
    window: Counter[int] = Counter()
    best = best_start = shared = 0
    for end, word in enumerate(held):
        window[word] += 1
        shared += window[word] <= wanted[word]
        start = end - len(words)
        if start >= 0:
            left = held[start]
            shared -= window[left] <= wanted[left]
            window[left] -= 1
        if shared > best:
            best, best_start = shared, max(0, start + 1)
    return best_start


WordChange: TypeAlias = tuple[Literal["same", "removed", "added"], str]

# Of each text; rapidfuzz would keep a bit for every pair of more.
_MOST_COMPARED: Final = 2_000
# Pairs of equal words that are compared before another way is taken, some .05 s; for a quotation
# .5 s: those of 10,000 characters of prose need 700,000, "a a a ..." needs one for every two words
# and again.
_MOST_PAIRS: Final = 500_000
_MOST_PAIRS_OF_QUOTE: Final = 5_000_000


def word_changes(old: str, new: str) -> tuple[WordChange, ...]:
    """Compare two texts word by word: what both have and what only one of them has, in order.

    Between the beginning and the end that both have, the first 2,000 words of each are compared;
    the others are all removed and added.
    """
    from rapidfuzz.distance import Postfix, Prefix

    first, second = old.split(), new.split()
    begin = Prefix.similarity(first, second)
    left, other_left = first[begin:], second[begin:]
    end = Postfix.similarity(left, other_left)
    between = matching_runs(
        left[: len(left) - end][:_MOST_COMPARED],
        other_left[: len(other_left) - end][:_MOST_COMPARED],
        most_pairs=_MOST_PAIRS,
    )
    runs = [
        Match(0, 0, begin),
        *(Match(begin + run.a, begin + run.b, run.size) for run in between),
        Match(len(first) - end, len(second) - end, end),
    ]
    parts: list[WordChange] = []
    done = other_done = 0
    for run in runs:
        pieces: tuple[WordChange, ...] = (
            ("removed", " ".join(first[done : run.a])),
            ("added", " ".join(second[other_done : run.b])),
            ("same", " ".join(first[run.a : run.a + run.size])),
        )
        parts += (piece for piece in pieces if piece[1])
        done, other_done = run.a + run.size, run.b + run.size
    return tuple(parts)


def matching_runs(first: Sequence[T], second: Sequence[T], *, most_pairs: int) -> list[Match]:
    """Find runs of words, or of numbers for them, that both sequences have, in order.

    The longest come first up to so many pairs of equal words; beyond, their length is no matter.
    """
    try:
        blocks = _Matcher(first, second, most_pairs).get_matching_blocks()
    except _TooRepetitiveError:
        from rapidfuzz.distance import LCSseq

        common = LCSseq.editops(first, second).as_matching_blocks()
        blocks = [Match(block.a, block.b, block.size) for block in common]
    return [block for block in blocks if block.size]


class _TooRepetitiveError(Exception):
    """Comparing runs of equal words would take too long."""


class _Matcher(SequenceMatcher[T]):
    """Finds the longest runs first; gives up where words repeat without end."""

    def __init__(self, first: Sequence[T], second: Sequence[T], most_pairs: int) -> None:
        super().__init__(None, first, second, autojunk=False)
        times = Counter(second)
        self._pairs = list(accumulate((1 + times[word] for word in first), initial=0))
        self._left = most_pairs

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        self._left -= self._pairs[-1 if ahi is None else ahi] - self._pairs[alo]
        if self._left < 0:
            raise _TooRepetitiveError
        return super().find_longest_match(alo, ahi, blo, bhi)


# Per host the fetcher is stricter.
_FETCH_CONCURRENCY = 8

_Fetched = Mapping[str, NormalizedDocument | WebRAGError]
OnChecked = Callable[[CitationCheck, int, int], None]


@dataclass(frozen=True)
class _Claim:
    citation: Citation
    url: str
    place: tuple[int, int] | None
    page: StoredPage | None
    stored: Finding
    markdown: str | None = None


class Verifier:
    """Looks quotations up; live pages are fetched like any other page and never stored."""

    def __init__(self, corpus: "Corpus", ingestion: "IngestionService") -> None:
        self._corpus = corpus
        self._ingestion = ingestion

    async def verify(
        self,
        citations: Sequence[Citation],
        *,
        live: bool = True,
        deadline_s: float | None = None,
        on_checked: OnChecked | None = None,
    ) -> list[CitationCheck]:
        """Check each quotation, in the order given, as `WebRAG.verify`."""
        claims = [await self._claim(citation) for citation in citations]
        texts = {url: await self._stored(url) for url in {claim.url: None for claim in claims}}
        for place, claim in enumerate(claims):
            if (stored := texts[claim.url]) is not None:
                page, markdown = stored
                found = await _found(claim, markdown, page.fetched_at)
                claims[place] = replace(claim, page=page, stored=found, markdown=markdown)
        fetched = await self._fetched(claims, deadline_s) if live else None
        checks: list[CitationCheck] = []
        for claim in claims:
            checks.append(await self._with_past(claim, await _compared(claim, fetched)))
            if on_checked is not None:
                on_checked(checks[-1], len(checks), len(claims))
        return checks

    async def _claim(self, citation: Citation) -> _Claim:
        check_citation(citation)
        url, place = citation.url, quoted_place(citation)
        if citation.passage_id is not None:
            passage = await self._corpus.passage_text(citation.passage_id)
            if passage is not None:
                url = url or passage.url
                place = place or (passage.char_start, passage.char_end)
            elif not url:
                raise InputError(
                    f"No stored passage has the id {citation.passage_id}; give the url of the page "
                    "that is quoted."
                )
        assert url  # checked: a passage or a page is named
        return _Claim(citation, page_address(url), place, None, Finding(state="not_stored"))

    async def _stored(self, url: str) -> tuple[StoredPage, str] | None:
        page = await self._corpus.page(url)
        markdown = None if page is None else await self._corpus.markdown(page.url)
        return None if page is None or markdown is None else (page, markdown)

    async def _with_past(self, claim: _Claim, check: CitationCheck) -> CitationCheck:
        """Add when a quotation disappeared, as far as earlier texts of the page were kept."""
        if claim.page is None or check.stored.state not in ("changed", "absent"):
            return check
        missing_since = claim.page.stored_at
        for past in await self._corpus.past(claim.page.url):
            found = await in_background(find_quote, past.markdown, claim.citation.quote)
            if found.state not in ("changed", "absent"):
                update = {"last_seen_at": past.fetched_at, "missing_since": missing_since}
                return check.model_copy(update=update)
            missing_since = past.stored_at
        return check

    async def _fetched(self, claims: Sequence[_Claim], deadline_s: float | None) -> _Fetched:
        slots = asyncio.Semaphore(_FETCH_CONCURRENCY)
        pages = {claim.url: claim.page for claim in claims}
        outcomes: dict[str, NormalizedDocument | WebRAGError] = {}

        async def one(url: str, page: StoredPage | None) -> None:
            # Of two files with one text only the one that was named may be read.
            address = url if page is None or is_file(url) else page.url
            try:
                async with slots:
                    document = await self._ingestion.ingest(address)
            except WebRAGError as error:
                outcomes[url] = error
                return
            # Only a request with validators can be answered with "not modified".
            assert isinstance(document, NormalizedDocument)
            outcomes[url] = document

        async with within(deadline_s):
            await all_of(one(url, page) for url, page in pages.items())
        return outcomes


async def _compared(claim: _Claim, fetched: _Fetched | None) -> CitationCheck:
    outcome = None if fetched is None else fetched.get(claim.url)
    same: bool | None = None
    if outcome is None:
        reason = None if fetched is None else "Time ran out; verify it again."
        live = Finding(state="unchecked", reason=reason)
    elif isinstance(outcome, WebRAGError):
        is_gone = isinstance(outcome, PageGoneError)
        live = Finding(state="gone" if is_gone else "unreachable", reason=str(outcome))
    else:
        live = await _found(claim, outcome.markdown, outcome.fetched_at)
        same = None if claim.markdown is None else claim.markdown == outcome.markdown
    return CitationCheck(
        citation=claim.citation,
        url=claim.url if claim.page is None else claim.page.url,
        stored=claim.stored,
        live=live,
        page_unchanged=same,
    )


async def _found(claim: _Claim, text: str, seen_at: datetime) -> Finding:
    # A page may have megabytes; the event loop must not wait for the comparison.
    match = await in_background(find_quote, text, claim.citation.quote, claim.place)
    return match.model_copy(update={"seen_at": seen_at})

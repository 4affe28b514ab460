"""Chooses the quotations that answer a question, each with what it needs to be understood; pure."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Final

from llama_index.postprocessor.webrag.wordings import QUESTION_WEIGHT

from webrag.answering.covering import (
    AnswerKind,
    Said,
    holds_name,
    is_of_kind,
    names_of,
    needs_of,
    place_of,
    wanted_kind,
)
from webrag.answering.evidence import Evidence, Gathered
from webrag.answering.models import ExecutionPlan, PartKind
from webrag.ingestion.characters import sentence_ends
from webrag.lexical.analysis import analyze
from webrag.retrieval.markup import Block, read_blocks
from webrag.retrieval.quotes import (
    Encode,
    Quotation,
    asked_weights,
    best_quotes,
    header_row,
    term_coverage,
)

Span = tuple[int, int]

_PASSAGES: Final = 6
_MAX_QUOTE_CHARS: Final = 400
_QUOTES: Final = 6  # of one passage
# What the relevance of a passage counts beside what a quotation says. On 72 questions over four
# sites 1 and 2 give the same, .3 a tenth less.
_RELEVANCE_WEIGHT: Final = 1.0
_WORDS: Final = 120
_MORE_WORDS: Final = 180  # steps and lists take more room than a fact
_LEAST_SHARE: Final = 0.7  # of the best value; what is far below it only fills the room
_KIND_GAIN: Final = 0.1
_PLACE_SHARE: Final = 0.3  # what a term in the title or a heading counts, of one in the quotation
_REPEATED: Final = 0.8  # Jaccard of terms from which a sentence says the same again
_MAX_BLOCK_CHARS: Final = 900  # of code or a list that is shown whole
_MAX_GAP: Final = 8  # characters of markup between a name and what is said of it
_SHORT_CHARS: Final = 200
_CLOSEST: Final = 3
_FOLLOWING: Final = 3  # sentences behind a quotation among which its value is looked for

_MARKER: Final = re.compile(r"(?:^|\n)[ \t>]*(?:[-*+]|\d{1,3}[.)])[ \t]+$")
_LABELLED: Final = re.compile(r"[^\n]{1,120}(?: {2,}|\\)\n")
_IDENTIFIER: Final = re.compile(r"\S+$")
_ANNOUNCED: Final = (":", "\uff1a")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A quotation as a part of an answer.

    Attributes:
        text: `markdown[start:end]` of the page.
        value: What quotations are chosen by; 0 for what only leads to another.
    """

    evidence: Evidence
    start: int
    end: int
    kind: PartKind
    text: str
    value: float = 0.0


@dataclass(frozen=True)
class _Candidate:
    """A quotation that may be chosen."""

    evidence: Evidence
    quote: Quotation
    value: float

    @cached_property
    def text(self) -> str:
        return _slice(self.evidence, (self.quote.start, self.quote.end))

    @cached_property
    def told(self) -> str:
        """The quotation below what names its subject."""
        lead = self.quote.lead
        return f"{_slice(self.evidence, lead)}\n{self.text}" if lead else self.text

    @cached_property
    def place(self) -> str:
        """Title and headings above it, which name what a sentence need not name again."""
        return place_of(self.evidence)

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(analyze(self.told))

    @property
    def words(self) -> int:
        return len(self.told.split())


def choose_excerpts(
    plan: ExecutionPlan,
    gathered: Gathered,
    *,
    encode: Encode | None,
    max_excerpts: int = 4,
) -> list[Excerpt]:
    """The quotations that answer a question best, those of the best passage first.

    They are chosen as those of search results are, over the best passages together. What belongs
    to another option or product than the question names is left out. A quotation comes with the
    name, the sentence or the header row it stands under, and with the list it announces. Nothing
    unquotable is chosen, nothing twice.

    Args:
        plan: The question, its parts and its kind.
        gathered: Ranked passages.
        encode: Compares meanings; None to go by words alone.
        max_excerpts: Quotations at most, besides what leads to them.
    """
    question, kind, needs = plan.revised_query, wanted_kind(plan), needs_of(plan)
    found = [_with_value(each, kind) for each in _candidates(question, gathered, encode)]
    candidates = _of_the_subject(question, kind, [e for e in found if not _breaks_off(e)] or found)
    valued = [
        replace(each, value=each.value + _named_above(each, question, gathered) + gained)
        for each in candidates
        for gained in (_KIND_GAIN * (is_of_kind(each.told, kind) or _leads_to_list(each, kind)),)
    ]
    words = _MORE_WORDS if kind in ("steps", "list") else _WORDS
    first = _one_for_each(needs, valued, gathered) if len(needs) > 1 else []
    if entries := list(_entries(names_of(question), gathered.evidence[:_PASSAGES])):
        valued = [each for each in valued if each.evidence is entries[0].evidence]
        best = max((each.value for each in valued), default=0.0)
        first = [replace(each, value=best) for each in entries]
    chosen = _within_budget(valued, words, max(max_excerpts, len(first)), first)
    # Passage by passage, the one with the best quotation first; in page order within a passage.
    leading: dict[int, float] = {}
    for each in chosen:
        number = each.evidence.number
        leading[number] = max(leading.get(number, 0.0), each.value)
    chosen.sort(key=lambda each: (-leading[each.evidence.number], each.quote.start))
    return _apart(_told(chosen, kind))


def _candidates(question: str, gathered: Gathered, encode: Encode | None) -> Iterator[_Candidate]:
    weights = dict(gathered.term_idf)
    for terms in gathered.wordings.values():
        weights |= terms
    best = max((each.order for each in gathered.evidence), default=0.0)
    for evidence in gathered.evidence[:_PASSAGES]:
        chunk, focus = evidence.chunk, evidence.chunk.focus
        asked = asked_weights(
            evidence.sub_query or question, tuple(gathered.wordings), evidence.wording
        )
        worth = _RELEVANCE_WEIGHT * evidence.order / best if best > 0 else 0.0
        for quote in best_quotes(
            chunk.text,
            chunk.char_start,
            tuple(asked),
            weights,
            max_chars=_MAX_QUOTE_CHARS,
            most=_QUOTES,
            encode=encode,
            focus=(focus.char_start, focus.char_end) if focus else None,
            weights=tuple(asked.values()),
        ):
            if evidence.is_quotable(quote.start, quote.end):
                yield _Candidate(evidence, _quotable_lead(evidence, quote), worth + quote.value)


def _entries(names: frozenset[str], evidence: Sequence[Evidence]) -> Iterator[_Candidate]:
    """The entries of several names, of the first passage that has one for each; else nothing.

    How options differ is told where they stand beside each other, each with what it means.
    """
    for each in evidence if len(names) > 1 else ():
        passage = _Passage.of(each)
        spans = [passage.entry(name) for name in names]
        if all(span and each.is_quotable(*span) for span in spans):
            yield from (_Candidate(each, Quotation(*span, 0.0), 0.0) for span in spans if span)
            return


def _with_value(candidate: _Candidate, kind: AnswerKind) -> _Candidate:
    """A quotation with the sentences behind it up to the one that tells the value asked for.

    "The length of a segment. The default is 2." is told in two sentences, of which the second
    names no subject.
    """
    if kind not in ("default", "value") or is_of_kind(candidate.told, kind):
        return candidate
    evidence, quote = candidate.evidence, candidate.quote
    passage = _Passage.of(evidence)
    block = passage.place(quote.start)
    last = passage.end_of(block)
    if passage.blocks[block].kind != "prose" or quote.end >= last:
        return candidate
    rest = _slice(evidence, (quote.end, last))
    for cut in (*islice(sentence_ends(rest, rule="prose"), _FOLLOWING), len(rest)):
        end = quote.end + len(rest[:cut].rstrip())
        if end - quote.start > _MAX_QUOTE_CHARS or not evidence.is_quotable(quote.start, end):
            break
        if is_of_kind(_slice(evidence, (quote.end, end)), kind):
            return replace(candidate, quote=replace(quote, end=end))
    return candidate


def _breaks_off(candidate: _Candidate) -> bool:
    """Whether a quotation announces what cannot be shown behind it."""
    if not _announces(candidate.text):
        return False
    passage = _Passage.of(candidate.evidence)
    place = passage.place(candidate.quote.start)
    return next(passage.announced(place + 1), None) is None


def _leads_to_list(candidate: _Candidate, kind: AnswerKind) -> bool:
    """Whether a list is asked for and a quotation announces one, or a table."""
    if kind != "list" or not _announces(candidate.text):
        return False
    passage = _Passage.of(candidate.evidence)
    announced = passage.announced(passage.place(candidate.quote.start) + 1)
    return any(each.kind != "code" for each in announced)


def _quotable_lead(evidence: Evidence, quote: Quotation) -> Quotation:
    if quote.lead is None or evidence.is_quotable(*quote.lead):
        return quote
    return replace(quote, lead=None)


def _of_the_subject(
    question: str, kind: AnswerKind, candidates: list[_Candidate]
) -> list[_Candidate]:
    """Those that stand under a name the question names, where any do.

    The values of something are told where it has a page or section of its own; elsewhere it is
    only mentioned.
    """
    names = names_of(question)
    named = [each for each in candidates if _held_names(each, names)]
    if kind in ("default", "list", "value") and len(names) == 1:
        headed = [each for each in named if names <= _headings(each.evidence)]
        named = headed or named
    return named or candidates


def _headings(evidence: Evidence) -> frozenset[str]:
    """What the page and the sections a passage stands in are named, without what is around it."""
    *headings, _ = place_of(evidence).casefold().splitlines()
    return frozenset(word for heading in headings for word in heading.strip("`# ()¶").split()[:1])


def _named_above(candidate: _Candidate, question: str, gathered: Gathered) -> float:
    """The worth of the question's terms that stand above a quotation and not in it."""
    covered = 0.0
    for asked, idf in ((question, gathered.term_idf), *gathered.wordings.items()):
        own = term_coverage(candidate.told, asked, idf)
        both = term_coverage(f"{candidate.place}\n{candidate.told}", asked, idf)
        covered += (both - own) * (QUESTION_WEIGHT if asked == question else 1.0)
    return _PLACE_SHARE * covered / (QUESTION_WEIGHT + len(gathered.wordings))


def _held_names(candidate: _Candidate, names: frozenset[str]) -> frozenset[str]:
    place = f"{candidate.told}\n{candidate.place}"
    return frozenset(name for name in names if holds_name(name, place))


def _one_for_each(
    needs: Sequence[str], candidates: Sequence[_Candidate], gathered: Gathered
) -> list[_Candidate]:
    """The quotation that says most of each thing that is asked for, where one says anything.

    Where an option is told what it is, its name comes first.
    """
    found: list[_Candidate] = []
    for need in needs:
        shares = [term_coverage(each.told, need, gathered.term_idf) for each in candidates]
        best = max(
            zip(shares, candidates, strict=True),
            key=lambda pair: (_begins_with(pair[1].told, need), pair[0] + pair[1].value),
            default=None,
        )
        if best and best[0] > 0 and not _says_again(best[1], found):
            found.append(best[1])
    return found


def _begins_with(text: str, name: str) -> bool:
    return bool(_IDENTIFIER.match(name)) and text.lstrip("`*_->#[ \n").casefold().startswith(name)


def _within_budget(
    candidates: Sequence[_Candidate],
    words: int,
    max_excerpts: int,
    first: Sequence[_Candidate],
) -> list[_Candidate]:
    chosen = list(first)
    left = words - sum(each.words for each in first)
    ordered = sorted(candidates, key=lambda each: -each.value)
    for each in ordered:
        if len(chosen) == max_excerpts or each.value < _LEAST_SHARE * ordered[0].value:
            break
        if (chosen and each.words > left) or _says_again(each, chosen):
            continue
        chosen.append(each)
        left -= each.words
        if left <= 0:
            break
    return chosen


def _says_again(candidate: _Candidate, chosen: Sequence[_Candidate]) -> bool:
    terms = candidate.terms
    return any(
        terms and len(terms & other.terms) >= _REPEATED * len(terms | other.terms)
        for other in chosen
    )


def _told(chosen: Sequence[_Candidate], kind: AnswerKind) -> list[Excerpt]:
    """Every quotation with what belongs to it; of a list, each entry once."""
    told: list[Excerpt] = []
    for each in chosen:
        own = each.evidence, each.quote.start, each.quote.end
        if any(_overlap(own, other) for other in told):
            continue
        parts = list(_complete(each, kind))
        spans = [(part.evidence, part.start, part.end) for part in parts]
        if any(_overlap(span, other) for span in spans for other in told):
            parts = list(_complete(each, "other"))
        told += parts
    return told


def _overlap(span: tuple[Evidence, int, int], other: Excerpt) -> bool:
    evidence, start, end = span
    is_same_page = evidence.chunk.source_url == other.evidence.chunk.source_url
    return is_same_page and start < other.end and other.start < end


def _complete(candidate: _Candidate, kind: AnswerKind) -> Iterator[Excerpt]:
    """A quotation with what leads to it before it and what it announces behind it."""
    evidence, quote = candidate.evidence, candidate.quote
    chunk = evidence.chunk
    passage = _Passage.of(evidence)
    at = passage.place(quote.start)
    start, end = quote.start, quote.end
    if passage.blocks[at].kind == "row":
        header = header_row(chunk.text, passage.blocks, at)
        if header:
            yield passage.excerpt(*passage.offset(header), value=0.0)
    elif quote.lead is not None:
        gap = _slice(evidence, (quote.lead[1], start))
        is_prose = passage.blocks[at].kind == "prose"
        if is_prose and not any(map(str.isalnum, gap)) and len(gap.strip()) <= _MAX_GAP:
            start = quote.lead[0]
        else:
            yield passage.excerpt(*quote.lead, value=0.0)
    last = at
    # Options and terms stand beside each other; they are no steps.
    if (kind == "list" and passage.is_entry(at)) or (kind == "steps" and passage.is_item(at)):
        first, last = passage.siblings(at)
        start = min(start, passage.start_of(first))
        end = max(end, passage.end_of(last))
    if start < quote.start and not evidence.is_quotable(start, end):
        start, end, last = quote.start, quote.end, at
    yield passage.excerpt(start, end, value=candidate.value)
    if _announces(_slice(evidence, (start, end))):
        yield from passage.announced(last + 1)


class _Passage:
    """The blocks of a passage, and which of them belong together."""

    def __init__(self, evidence: Evidence, blocks: Sequence[Block]) -> None:
        self.evidence = evidence
        self.blocks = blocks
        self._text = evidence.chunk.text
        self._offset = evidence.chunk.char_start

    @classmethod
    def of(cls, evidence: Evidence) -> "_Passage":
        return cls(evidence, [b for b in read_blocks(evidence.chunk.text) if b.kind != "html"])

    def offset(self, span: Span) -> Span:
        return span[0] + self._offset, span[1] + self._offset

    def place(self, start: int) -> int:
        """Number of the block in which an offset of the page lies."""
        found = bisect_right(self.blocks, start - self._offset, key=lambda block: block.start)
        return max(0, found - 1)

    def start_of(self, place: int) -> int:
        return self.blocks[place].start + self._offset

    def end_of(self, place: int) -> int:
        return self.blocks[place].end + self._offset

    def is_entry(self, place: int) -> bool:
        """Whether a block is an item of a list, or a term with its definition."""
        block = self.blocks[place]
        return self.is_item(place) or (block.kind == "prose" and self._is_labelled(block))

    def is_item(self, place: int) -> bool:
        """Whether a block is an item of a list."""
        block = self.blocks[place]
        before = self._text[max(0, block.start - 60) : block.start]
        return block.kind == "prose" and bool(_MARKER.search(before))

    def entry(self, name: str) -> Span | None:
        """Where a name is told what it is: the entry that begins with it."""
        for place, block in enumerate(self.blocks):
            text = self._text[block.start : block.end]
            if self.is_entry(place) and _begins_with(text, name):
                return self.start_of(place), self.end_of(place)
        return None

    def _is_labelled(self, block: Block) -> bool:
        return bool(_LABELLED.match(self._text, block.start, block.end))

    def siblings(self, place: int) -> Span:
        """First and last of the entries around one, as far as they are short enough together."""
        first = last = place
        while first > 0 and self._goes_on(first - 1, last) and self.is_entry(first - 1):
            first -= 1
        while last + 1 < len(self.blocks) and self._goes_on(first, last + 1):
            if not (self.is_entry(last + 1) or self._is_rest(last + 1)):
                break
            last += 1
        return first, last

    def _is_rest(self, place: int) -> bool:
        """Whether a short paragraph goes on with the definition above it."""
        block = self.blocks[place]
        is_short = block.kind == "prose" and block.end - block.start <= _SHORT_CHARS
        below = place + 1 < len(self.blocks) and self._is_labelled(self.blocks[place + 1])
        return is_short and below and not _announces(self._text[block.start : block.end])

    def _goes_on(self, first: int, last: int) -> bool:
        size = self.blocks[last].end - self.blocks[first].start
        span = self.start_of(first), self.end_of(last)
        return size <= _MAX_BLOCK_CHARS and self.evidence.is_quotable(*span)

    def announced(self, place: int) -> Iterator[Excerpt]:
        """The code, list, table or definitions that begin at a place; nothing where none do."""
        if place >= len(self.blocks) or not self._goes_on(place, place):
            return
        last = place
        if self.blocks[place].kind == "row":
            while last + 1 < len(self.blocks) and self._is_row(place, last + 1):
                last += 1
        elif self.is_entry(place):
            _, last = self.siblings(place)
        elif self.blocks[place].kind != "code":
            return
        yield self.excerpt(self.start_of(place), self.end_of(last), value=0.0)

    def _is_row(self, first: int, place: int) -> bool:
        return self.blocks[place].kind == "row" and self._goes_on(first, place)

    def excerpt(self, start: int, end: int, *, value: float) -> Excerpt:
        block = self.blocks[self.place(start)]
        kind: PartKind = {"code": "code", "row": "table"}.get(block.kind, "prose")  # type: ignore[assignment]
        marker = _MARKER.search(self._text[max(0, block.start - 60) : block.start])
        if kind == "prose" and marker and start == block.start + self._offset:
            start -= len(marker[0].lstrip())
            kind = "list"
        return Excerpt(self.evidence, start, end, kind, _slice(self.evidence, (start, end)), value)


def _apart(excerpts: Iterable[Excerpt]) -> list[Excerpt]:
    """Without those that lie in another one."""
    found: list[Excerpt] = []
    for each in excerpts:
        if each not in found:
            found.append(each)
    return [
        each
        for each in found
        if not any(
            other is not each
            and other.evidence.chunk.source_url == each.evidence.chunk.source_url
            and other.start <= each.start
            and each.end <= other.end
            and (other.end - other.start, other.value) > (each.end - each.start, each.value)
            for other in found
        )
    ]


def closest(excerpts: Sequence[Excerpt]) -> list[Excerpt]:
    """The best three quotations, each with what leads to it or follows from it in its passage."""
    best = sorted((each for each in excerpts if each.value > 0), key=lambda each: -each.value)
    places = [excerpts.index(each) for each in best[:_CLOSEST]]
    kept: set[int] = set()
    for place in places:
        first = last = place
        while first > 0 and _is_beside(excerpts[first - 1], excerpts[place]):
            first -= 1
        while last + 1 < len(excerpts) and _is_beside(excerpts[last + 1], excerpts[place]):
            last += 1
        kept.update(range(first, last + 1))
    return [excerpts[place] for place in sorted(kept)]


def _is_beside(each: Excerpt, best: Excerpt) -> bool:
    return each.value == 0 and each.evidence.number == best.evidence.number


def said_by(excerpts: Sequence[Excerpt]) -> list[Said]:
    """The excerpts as what an answer says."""
    return [
        Said(each.text, place_of(each.evidence), each.evidence.quality, each.kind == "code")
        for each in excerpts
    ]


def _announces(text: str) -> bool:
    return text.rstrip("*_` ").endswith(_ANNOUNCED)


def _slice(evidence: Evidence, span: Span) -> str:
    offset = evidence.chunk.char_start
    return evidence.chunk.text[span[0] - offset : span[1] - offset]

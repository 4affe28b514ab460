"""Chooses the few words of a passage that say most about a question; it does not rank passages."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, zip_longest
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from webrag.ingestion.characters import sentence_ends
from webrag.lexical.analysis import analyze, query_terms, term_weight
from webrag.retrieval.markup import Block, read_blocks

Span = tuple[int, int]
Encode = Callable[[Sequence[str]], NDArray[np.float32]]
"""Vectors of unit length, one for each text."""

_WORD_GAP = re.compile(r"\s+")
# Stands between a term and its definition, where pages have links ("[source]") that the stored
# text leaves out; a quotation across it would not be verbatim on the page.
_HARD_BREAK = re.compile(r"(?<! ) {2,}+\n")
# What ends a line of code that pages show with a number before the next one, which the stored text
# leaves out; other code seldom has blanks there.
_NUMBERED_LINE = re.compile(r"(?<! ) ++\r?\n")
# What stands between the header row of a table and the first row of its body.
_BELOW_HEADER = re.compile(r"[ \t|]*+\r?\n[ \t>|]*+:?-[ \t:|-]*+\r?\n")

# Of two quotations that cover the same words the fuller one is better: a sentence's neighbours hold
# what it refers to. At 0.2 (measured on documentation sites) it held the answer in .42 of the
# questions, at 0 in .33, and with a cost of 0.1 in .28.
_FULLNESS_GAIN = 0.2
_POSITION_COST = 0.02  # passages open with their point; only breaks near-ties
# A heading, or the header row of a table, names the subject and says nothing about it.
_HEADING_COST = 0.25
# From this share of the longest quotation on, a passage's fuller run is always the better one.
_FULLER_IS_BETTER = 2 * _POSITION_COST / _FULLNESS_GAIN
_MOST_SHORT_UNITS = 100  # of which every run is weighed, where that share is not reached


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring units of one block, as one candidate, with the question's terms in them."""

    start: int
    end: int
    kind: str
    terms: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Question:
    """A question's terms by their place in it, the weight of each, and which are identifiers."""

    places: Mapping[str, int]
    weights: Sequence[float]
    total: float
    names: frozenset[int]

    @classmethod
    def of(cls, query: str, term_idf: Mapping[str, float]) -> "_Question":
        terms = query_terms(query)
        weights = [max(0.0, term_idf.get(term, 1.0)) for term in terms]
        names = frozenset(place for place, term in enumerate(terms) if term_weight(term) > 1)
        return cls({term: place for place, term in enumerate(terms)}, weights, sum(weights), names)

    def held(self, text: str) -> frozenset[int]:
        """Places of the terms that a text holds."""
        return frozenset(
            place for term in analyze(text) if (place := self.places.get(term)) is not None
        )

    def coverage(self, held: frozenset[int]) -> float:
        """Their share of all weights."""
        return sum(self.weights[each] for each in sorted(held)) / self.total if self.total else 0.0


def finest_quote(
    text: str,
    offset: int,
    query: str,
    term_idf: Mapping[str, float],
    *,
    max_chars: int = 400,
) -> Span | None:
    """Where the best quotation for a question stands.

    Whole sentences, table rows or code lines of one block, without list markers, fence lines,
    heading markers or table frames; only what alone exceeds `max_chars` is cut, between words.

    Args:
        text: Markdown of a passage.
        offset: Where the passage begins in its page.
        query: The question.
        term_idf: Weight of each query term; terms that are not in it count 1.0.
        max_chars: Longest quotation, at least 1.

    Returns:
        Start and end in the page, or None when the passage holds no text that can be quoted.
    """
    question = _Question.of(query, term_idf)
    best, best_value = None, 0.0
    for run in _candidates(text, max(1, max_chars), question):
        value = _value(text, run, question, max_chars)
        if best is None or value > best_value:
            best, best_value = run, value
    return None if best is None else (offset + best.start, offset + best.end)


@dataclass(frozen=True, slots=True)
class Quotation:
    """A part of a passage worth quoting.

    Attributes:
        start: Offset in the page.
        end: Offset after it.
        value: How much it says about the question; comparable between passages.
        lead: What stands above it and names its subject, such as the term of a definition or the
            sentence before a list or a listing; None where nothing does.
        meaning: Its vector of unit length; empty where meanings are not compared.
    """

    start: int
    end: int
    value: float
    lead: Span | None = None
    meaning: tuple[float, ...] = ()


# Found on 72 questions over four documentation sites, each asked of the page that answers it.
_MEANING_WEIGHT: Final = 1.0
_LENGTH_GAIN: Final = 0.2
_FOCUS_GAIN: Final = 0.1
# Where wordings were given, the reranker's choice is surer: at .2 it is 67 of 80 answers that are
# among the first three quotations, at .1 63; without wordings it is 32 and 35 of 56.
_WORDINGS_FOCUS_GAIN: Final = 0.2
_LEAD_SHARE: Final = 0.5  # what a term in the lead counts, of one in the quotation
# A definition of the identifier asked for says more of it than a sentence that mentions it. Of 56
# questions for an option or variable of four manuals .49 of the definitions were quoted without
# it, .69 at .3, .84 at .6, .86 at 1; on 72 other questions nothing changes.
_DEFINED_GAIN: Final = 0.6
_FIRST_QUESTION: Final = 2.0  # weight of the question itself, of its other wordings each 1
# What a quotation loses that means the same as a better one, so that the few that are shown hold
# more: at 0 it is 67 of 80 answers that are among the first three, at .1 68, .2 71, .4 69.
_LIKENESS_COST: Final = 0.2
_MOST_UNITS: Final = 3  # sentences quoted together
_MOST_COMPARED: Final = 100  # candidates whose meaning is compared, those with the most words
_LEAD_CHARS: Final = 160
_LABEL_CHARS: Final = 80
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_SENTENCE_MARKS = (".", "!", "?", ";", "\u3002", "\uff01", "\uff1f")


# Of the texts a quotation is chosen by: the question, the one its passage was found by, others.
# With the question alone 44 of 78 answers were among the first three quotations, so 65.
_QUESTION_SHARE = 1.0
_BEST_SHARE = 2.0
_OTHER_SHARE = 0.5


def asked_weights(question: str, wordings: Sequence[str], best: str | None) -> dict[str, float]:
    """What quotations of a passage are chosen by and what each counts, for `best_quotes`.

    Args:
        question: The one its passage was found for.
        wordings: Other wordings of the whole question.
        best: The one the passage fits best; None for the question itself.
    """
    asked = {question: _QUESTION_SHARE} | dict.fromkeys(wordings, _OTHER_SHARE)
    if best is None or best not in wordings:
        return asked
    return asked | {best: _BEST_SHARE}


def best_quotes(
    text: str,
    offset: int,
    questions: Sequence[str],
    term_idf: Mapping[str, float],
    *,
    max_chars: int = 400,
    most: int = 3,
    encode: Encode | None = None,
    focus: Span | None = None,
    weights: Sequence[float] | None = None,
) -> list[Quotation]:
    """The parts of a passage that answer a question most likely, best first.

    One to three neighbouring sentences, a listing or lines of one, or a table row, never a
    heading, and none that overlap. What names their subject without standing in one piece with
    them on the page is told apart, as their lead.

    Args:
        text: Markdown of a passage.
        offset: Where the passage begins in its page.
        questions: The question, then other wordings of it.
        term_idf: Weight of each of their terms; terms that are not in it count 1.0.
        max_chars: Longest quotation, at least 1.
        most: Quotations at most.
        encode: Compares meanings; None to go by words alone.
        focus: Part of the page that a reranker liked best.
        weights: What each of `questions` counts; None for the first twice as much as another.
    """
    if weights is None:
        weights = [_FIRST_QUESTION, *(1.0 for _ in questions[1:])]
    judge = _Judge(text, questions, weights, term_idf, max(1, max_chars))
    valued = judge.valued(list(_quotable(text, max(1, max_chars))), encode)
    if focus is not None:
        gain = _WORDINGS_FOCUS_GAIN if len(questions) > 1 else _FOCUS_GAIN
        valued = [
            (value + gain * _is_within(each, offset, focus), each, meaning)
            for value, each, meaning in valued
        ]
    valued.sort(key=lambda triple: (-triple[0], triple[1].start))

    def overlap(one: int, other: int) -> bool:
        left, right = valued[one][1], valued[other][1]
        return left.start < right.end and right.start < left.end

    values, _, meanings = zip(*valued, strict=True) if valued else ((), (), ())
    places = best_apart(values, meanings, most, overlap)
    return [_quotation(offset, *valued[place]) for place in places]


def best_apart(
    values: Sequence[float],
    meanings: Sequence[Sequence[float]],
    most: int,
    clash: Callable[[int, int], bool] | None = None,
) -> list[int]:
    """Places of the best of some quotations, each worth less for what a better one says as well.

    Args:
        values: Of each, best first.
        meanings: Of each, a vector of unit length; empty where it is not known.
        most: Quotations at most.
        clash: Whether two cannot both be taken; None where any two can.
    """
    chosen: list[int] = []
    # Likeness costs no more than this, so that what is further behind cannot be among the best.
    least = -inf if clash or len(values) < most else values[most - 1] - _LIKENESS_COST
    left = {place: 0.0 for place, value in enumerate(values) if value >= least}
    while left and len(chosen) < most:
        # Of equal ones the first: `max` keeps the order.
        best = max(left, key=lambda place: values[place] - _LIKENESS_COST * left[place])
        chosen.append(best)
        left = {
            place: max(alike, _likeness(meanings[best], meanings[place]))
            for place, alike in left.items()
            if place != best and not (clash and clash(best, place))
        }
    return chosen


def _likeness(one: Sequence[float], other: Sequence[float]) -> float:
    return float(np.dot(one, other)) if len(one) and len(other) else 0.0


def _quotation(
    offset: int, value: float, each: "_Candidate", meaning: Sequence[float]
) -> Quotation:
    lead = each.lead and (offset + each.lead[0], offset + each.lead[1])
    return Quotation(offset + each.start, offset + each.end, value, lead, tuple(meaning))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A part that may be quoted.

    Attributes:
        lead: As in `Quotation`.
        beside: For a listing, the sentences above and below it, which tell what it shows.
    """

    start: int
    end: int
    lead: Span | None = None
    beside: tuple[Span, ...] = ()


def _is_within(each: _Candidate, offset: int, span: Span) -> bool:
    return span[0] <= offset + each.start and offset + each.end <= span[1]


class _Judge:
    """What each part of a passage says about the variants of a question."""

    def __init__(
        self,
        text: str,
        questions: Sequence[str],
        weights: Sequence[float],
        term_idf: Mapping[str, float],
        max_chars: int,
    ) -> None:
        self._text = text
        self._questions = questions
        self._asked = [_Question.of(each, term_idf) for each in questions]
        counted = np.array(weights)
        self._weights = counted / counted.sum()
        self._max_chars = max_chars

    def valued(
        self, candidates: Sequence[_Candidate], encode: Encode | None
    ) -> list[tuple[float, _Candidate, Sequence[float]]]:
        """The value and the vector of each candidate; none of all but the most promising."""
        found = sorted(((self._said(each), each) for each in candidates), key=lambda pair: -pair[0])
        meant = self._meant([each for _, each in found[:_MOST_COMPARED]], encode)
        meant += [(0.0, ())] * (len(found) - len(meant))
        return [
            (self._full(each) + said + _MEANING_WEIGHT * alike, each, meaning)
            for (said, each), (alike, meaning) in zip(found, meant, strict=True)
        ]

    def _full(self, each: _Candidate) -> float:
        return _LENGTH_GAIN * min(1.0, (each.end - each.start) / self._max_chars)

    def _said(self, each: _Candidate) -> float:
        own = self._covered(((each.start, each.end),), each.lead)
        told = (self._covered((beside,), None) for beside in each.beside)
        return max((own, *told))

    def _covered(self, spans: Sequence[Span], lead: Span | None) -> float:
        text = " ".join(self._text[start:end] for start, end in spans)
        covered = 0.0
        for question, weight in zip(self._asked, self._weights, strict=True):
            own = question.held(text)
            covered += weight * question.coverage(own)
            if lead:
                above = question.held(self._text[slice(*lead)])
                defines = bool(above & question.names) and _is_label(self._text, lead)
                share = 1.0 if defines else _LEAD_SHARE
                covered += weight * share * question.coverage(above - own)
                covered += weight * _DEFINED_GAIN * defines
        return float(covered)

    def _meant(
        self, candidates: Sequence[_Candidate], encode: Encode | None
    ) -> list[tuple[float, Sequence[float]]]:
        """How alike each is to the questions, what stands beside it included, and its vector."""
        if encode is None or not candidates:
            return []
        spans = [span for each in candidates for span in ((each.start, each.end), *each.beside)]
        vectors = encode([*self._questions, *(self._text[slice(*span)] for span in spans)])
        count = len(self._questions)
        alike = vectors[count:] @ vectors[:count].T @ self._weights
        firsts = np.cumsum([0, *(1 + len(each.beside) for each in candidates)])
        return [
            (max(*alike[first:end].tolist(), -1.0), vectors[count + first])
            for first, end in pairwise(firsts.tolist())
        ]


def _quotable(text: str, max_chars: int) -> Iterator[_Candidate]:
    """Everything that may be quoted, with what leads to it."""
    lead: Span | None = None
    blocks = [block for block in read_blocks(text) if block.kind != "html"]
    for place, block in enumerate(blocks):
        following = blocks[place + 1] if place + 1 < len(blocks) else None
        if block.kind == "heading" or _is_header_row(text, block, following):
            lead = None
            continue
        beside = _beside(text, blocks, place)
        for group in _unbroken(text, block, _units(text, block)):
            is_row = block.kind == "row" and group[-1][1] - group[0][0] <= max_chars
            units = [(group[0][0], group[-1][1])] if is_row else group
            last = units[-1]
            label = block.kind == "prose" and _names(text, last)
            said = units[:-1] if label and _is_label(text, last) else units
            yield from _windows(said, max_chars, text, lead, beside)
            if label:
                lead = last
            elif block.kind == "prose" and not _is_item(text, block):
                lead = None


def _beside(text: str, blocks: Sequence[Block], place: int) -> tuple[Span, ...]:
    """The sentences that stand around a listing, or around a line that is a formula."""
    block = blocks[place]
    if block.kind != "code" and not _is_formula(text, block):
        return ()
    above = blocks[place - 1] if place else None
    below = blocks[place + 1] if place + 1 < len(blocks) else None
    spans = []
    if above is not None and above.kind == "prose":
        spans.append(_units(text, above)[-1])
    if below is not None and below.kind == "prose":
        spans.append(_units(text, below)[0])
    return tuple(spans)


def _is_formula(text: str, block: Block) -> bool:
    part = text[block.start : block.end]
    return block.kind == "prose" and len(part) <= _LEAD_CHARS and part.endswith(("\\]", "\\)", "$"))


def _names(text: str, unit: Span) -> bool:
    """Whether a sentence leads to what stands below it."""
    is_short = unit[1] - unit[0] <= _LEAD_CHARS
    return is_short and (text[slice(*unit)].rstrip("*_` ").endswith(":") or _is_label(text, unit))


def _is_label(text: str, unit: Span) -> bool:
    """Whether it is no sentence but a name, such as the term of a definition."""
    part = text[slice(*unit)].rstrip("*_`\"')\u201d ")
    return len(part) <= _LABEL_CHARS and not part.endswith((*_SENTENCE_MARKS, ":", "]"))


def _is_item(text: str, block: Block) -> bool:
    line = text.rfind("\n", 0, block.start) + 1
    return _ITEM.match(text, line, block.start + 1) is not None


def _windows(
    units: Sequence[Span], max_chars: int, text: str, lead: Span | None, beside: tuple[Span, ...]
) -> Iterator[_Candidate]:
    for first, (start, stop) in enumerate(units):
        if stop - start > max_chars:
            for low, high in _cut(text, start, stop, max_chars):
                yield _Candidate(low, high, lead, beside)
            continue
        for _, end in units[first : first + _MOST_UNITS]:
            if end - start > max_chars:
                break
            yield _Candidate(start, end, lead, beside)


def quotable_units(text: str) -> Iterator[tuple[int, int, str]]:
    """The sentences, code blocks and table rows of a passage, in page order.

    Args:
        text: Markdown of a passage.

    Returns:
        Start, end and kind of the block (`prose`, `heading`, `code` or `row`); the spans hold no
        list marker, fence line or outer table frame and do not overlap.
    """
    for block in read_blocks(text):
        if block.kind == "html":
            continue
        if block.kind == "row" or (block.kind == "code" and not _barriers(text, block)):
            yield block.start, block.end, block.kind
            continue
        for group in _unbroken(text, block, _units(text, block)):
            yield from ((start, end, block.kind) for start, end in group if end > start)


def term_coverage(text: str, query: str, term_idf: Mapping[str, float]) -> float:
    """Share of a question's weighted terms that a text holds, [0, 1]; 0 when it has no terms."""
    question = _Question.of(query, term_idf)
    return question.coverage(question.held(text))


def _value(text: str, run: _Run, question: _Question, max_chars: int) -> float:
    # Similarity of static embeddings was tried beside the words and gained nothing.
    fullness = _FULLNESS_GAIN * (run.end - run.start) / max_chars
    position = _POSITION_COST * run.end / len(text)
    heading = _HEADING_COST if run.kind == "heading" else 0.0
    return question.coverage(run.terms) + fullness - position - heading


def _candidates(text: str, max_chars: int, question: _Question) -> Iterator[_Run]:
    blocks = read_blocks(text)
    for block, following in zip_longest(blocks, blocks[1:]):
        if block.kind == "html":
            continue
        kind = "heading" if _is_header_row(text, block, following) else block.kind
        for group in _unbroken(text, block, _units(text, block)):
            start, end = group[0][0], group[-1][1]
            if block.kind == "row" and end - start <= max_chars:
                # A cell alone says little.
                yield _Run(start, end, kind, question.held(text[start:end]))
            else:
                yield from _runs(text, group, block.kind, max_chars, question)


def _is_header_row(text: str, block: Block, following: Block | None) -> bool:
    """Whether a row stands above the body of its table; a header without one may be quoted."""
    has_body = following is not None and following.kind == block.kind == "row"
    return has_body and _BELOW_HEADER.match(text, block.end) is not None


def header_row(text: str, blocks: Sequence[Block], place: int) -> Span | None:
    """The header of the table in whose body a row stands; None when that is not in the text."""
    first = place
    while first > 0 and blocks[first - 1].kind == "row":
        first -= 1
    if first == place or not _is_header_row(text, blocks[first], blocks[first + 1]):
        return None
    return blocks[first].start, blocks[first].end


def _units(text: str, block: Block) -> list[Span]:
    """What is quoted whole: code lines, cells, or sentences."""
    if block.kind == "code":
        return [(piece.start, piece.end) for piece in block.pieces]
    if block.kind == "row":
        return block.cells
    return list(_sentences(text, block))


def _sentences(text: str, block: Block) -> Iterator[Span]:
    start = block.start
    opened = [first for first, _ in block.atoms]
    closed = list(accumulate((last for _, last in block.atoms), max))
    for cut in sentence_ends(text, block.start, block.end, rule="prose"):
        # Of the pieces of markup that begin before the cut, one may end behind it.
        before = bisect_left(opened, cut)
        if before > 0 and cut < closed[before - 1]:
            continue
        yield _strip(text, start, cut)
        start = cut
    yield _strip(text, start, block.end)


def _unbroken(text: str, block: Block, units: list[Span]) -> Iterator[list[Span]]:
    """Groups of units with no barrier inside or between them; a unit that holds one is split."""
    barriers = _barriers(text, block)
    starts = [start for start, _ in barriers]
    whole = [part for unit in units for part in _without(text, barriers, starts, unit)]
    group = whole[:1]
    for left, right in pairwise(whole):
        following = bisect_left(starts, left[1])
        if following < len(starts) and starts[following] < right[0]:
            yield group
            group = []
        group.append(right)
    if group:
        yield group


def _barriers(text: str, block: Block) -> list[Span]:
    """HTML tags, hard line breaks and line numbers, in order."""
    if block.kind == "row":
        return sorted(block.tags)
    if block.kind == "code":
        return [match.span() for match in _NUMBERED_LINE.finditer(text, block.start, block.end)]
    breaks = [match.span() for match in _HARD_BREAK.finditer(text, block.start, block.end)]
    return sorted([*block.tags, *breaks])


def _without(
    text: str, barriers: Sequence[Span], starts: Sequence[int], unit: Span
) -> Iterator[Span]:
    start, stop = unit
    for first, last in barriers[bisect_left(starts, start) : bisect_left(starts, stop)]:
        if start <= first:
            yield from (part for part in [_strip(text, start, first)] if _has_word(text, *part))
            start = last
    yield from (part for part in [_strip(text, start, stop)] if _has_word(text, *part))


def _runs(
    text: str, units: Sequence[Span], kind: str, max_chars: int, question: _Question
) -> Iterator[_Run]:
    """The runs of neighbouring units that may be best; a unit that does not fit is cut into words.

    No term reaches over the end of a unit, so that a run holds what its units and the signs
    between them hold, and each is analysed once. A run within a longer one that begins with it
    covers no more words; where its lead in position cannot make up for that, it is left out.
    """
    held = [question.held(text[start:end]) for start, end in units]
    between = [question.held(text[left[1] : right[0]]) for left, right in pairwise(units)]
    is_short = len(text) < _FULLER_IS_BETTER * max_chars and len(units) <= _MOST_SHORT_UNITS
    terms: Counter[int] = Counter()
    last = 0  # one past the last unit counted in `terms`
    for first, (start, stop) in enumerate(units):
        if stop - start > max_chars:
            for low, high in _cut(text, start, stop, max_chars):
                yield _Run(low, high, kind, question.held(text[low:high]))
            terms, last = Counter(), first + 1
            continue
        if last <= first:
            terms, last = Counter(held[first]), first + 1
        if is_short:
            terms, last = Counter(held[first]), first + 1
            yield _Run(start, stop, kind, frozenset(terms))
        while last < len(units) and units[last][1] - start <= max_chars:
            terms.update(between[last - 1])
            terms.update(held[last])
            last += 1
            if is_short:
                yield _Run(start, units[last - 1][1], kind, frozenset(terms))
        if not is_short:
            yield _Run(start, units[last - 1][1], kind, frozenset(terms))
        terms -= Counter(held[first])
        if first < len(between):
            terms -= Counter(between[first])


def _cut(text: str, start: int, end: int, max_chars: int) -> Iterator[Span]:
    """Parts of at most `max_chars`, from word to word; each begins half a part after the last."""
    gaps = [gap.span() for gap in _WORD_GAP.finditer(text, start, end)]
    starts = [start, *(after for _, after in gaps)]
    ends = [*(before for before, _ in gaps), end]
    position = start
    while position < end:
        fitting = bisect_right(ends, position + max_chars) - 1
        is_fit = fitting >= 0 and ends[fitting] > position
        stop = ends[fitting] if is_fit else min(position + max_chars, end)
        yield position, stop
        if stop >= end:
            return
        later = bisect_left(starts, position + (max_chars + 1) // 2)
        if later < len(starts) and starts[later] <= stop:
            position = starts[later]
        else:
            blank = _WORD_GAP.match(text, stop, end)
            position = blank.end() if blank else stop


def _strip(text: str, start: int, end: int) -> Span:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip())


def _has_word(text: str, start: int, end: int) -> bool:
    return any(char.isalnum() for char in text[start:end])

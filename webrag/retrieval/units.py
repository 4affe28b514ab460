"""Cuts a passage into the units that can be quoted and understood alone; it judges none of them."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain, groupby, islice, pairwise, takewhile
from typing import Final, Literal

from webrag.ingestion.characters import sentence_ends
from webrag.retrieval.markup import Block, read_blocks

Span = tuple[int, int]
UnitKind = Literal["prose", "item", "list", "row", "code"]

_WORD_GAP = re.compile(r"\s+")
# Stands between a term and its definition, where pages have links ("[source]") that the stored
# text leaves out; a quotation across it would not be verbatim on the page.
_HARD_BREAK = re.compile(r"(?<! ) {2,}+\n")
# What ends a line of code that pages show with a number before the next one, which the stored text
# leaves out; other code seldom has blanks there.
_NUMBERED_LINE = re.compile(r"(?<! ) ++\r?\n")
# What stands between the header row of a table and the first row of its body.
_BELOW_HEADER = re.compile(r"[ \t|]*+\r?\n[ \t>|]*+:?-[ \t:|-]*+\r?\n")
_RULE = re.compile(r"^[ \t>]*(?:-{3,}|\*{3,}|_{3,})[ \t]*$", re.MULTILINE)
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_WORD = re.compile(r"[^\W\d_]{2,}")
# Prose with fixed line ends may begin a line with a figure or a year that ends a sentence.
_PARAGRAPH = re.compile(r"\n[ \t]*+\n|\n(?=[ \t]*+(?:[-*+]|\d{1,2}[.)])[ \t])")
_SENTENCE_MARKS = (".", "!", "?", ";", "\u3002", "\uff01", "\uff1f")
_NO_LABEL_ENDS = (*_SENTENCE_MARKS, ",")
_ANNOUNCING = (":", "\uff1a")
_ASKING = ("?", "\uff1f")
_EMPHASIS = "*_` "
_LINE_SIGNS = " \t>\\#("  # what a line of comments or a parenthesis begins with
_COLUMN = re.compile(r"\S\t")
# What a shell or an interpreter prints before what is typed: "gap>", "user@host:~$", "In [3]:".
_PROMPT = re.compile(r"[\w@:~/.-]{0,40}+ ?(?:[>$#%]|\[\d{1,4}\]:)[>\s]*")
# Plain words may be an instruction, "Open the settings menu", which is quoted as it is.
_NAME = re.compile(r"`[^`\n]{1,80}`|(?P<mark>\*\*|__|\*|_)[^*_\n]{1,80}(?P=mark)")
# A line that says something of what it names, "Flash point: 118 °C", unlike "Example 3: Baking".
_FACT = re.compile(r"(?<!\d)[*_]{0,3}:[*_]{0,3}\s+\S")
# Of an option with its arguments, whatever they end with: "`show routes [all]`".
_CODE_NAME = re.compile(r"`[^`\n]+`")
# What numbers the words behind it: "Example 4.20. Baking", "**2. Prices**", "**IV.** Payment".
_CAPTION = re.compile(
    r"[*_]*+(?:[^\W\d]\w*+ )?(?:\d++(?:[.-]\d++)*+|[IVX]++|[A-Za-z])\\?\.[*_]*+\s*+"
)

_MOST_SENTENCES: Final = 4
_LEAD_CHARS: Final = 200
_LABEL_CHARS: Final = 80
_TERMS: Final = 2  # lines above a definition; of more short lines each says something itself
# What introduces something says something itself from so many words on: a name, an announcement.
_TELLING_WORDS: Final = (6, 10)
_WORDS_A_LINE: Final = 5
_LETTERS: Final = 0.8  # of the signs of a line of prose
_CODE_LINES: Final = (1, 3, 6)
_LIST_ITEMS: Final = (2, 3, 5, 8)
_MOST_CODE_LINES: Final = 40  # of a listing every line begins a unit, of a longer one every third


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence, a row, a line of code or a heading of a passage.

    Attributes:
        start: Offset in the passage.
        end: Offset after it.
        kind: What it is cut from; `heading` is never quoted.
        headings: The passage's headings above it, by the number of their piece.
    """

    start: int
    end: int
    kind: Literal["prose", "item", "row", "code", "heading"]
    headings: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """Neighbouring pieces of a passage that may be quoted together.

    Attributes:
        start: Offset in the passage.
        end: Offset after it.
        kind: What it is.
        first: Number of its first piece.
        last: One past the number of its last piece.
        lead: Number of the piece above it that names its subject: the term of a definition, the
            header of a table, the sentence that introduces a list or a listing.
        introduces: Whether it ends with what introduces another unit.
    """

    start: int
    end: int
    kind: UnitKind
    first: int
    last: int
    lead: int | None = None
    introduces: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """A passage in pieces, and its units in reading order."""

    pieces: tuple[Piece, ...]
    units: tuple[Unit, ...]


def cut_units(text: str, *, max_chars: int = 400) -> Cut:
    """Cut markdown into units of whole sentences, rows, items, definitions and lines of code.

    A unit holds no list marker, fence line, heading or table frame and stands in one piece on the
    page; only what alone exceeds `max_chars` is cut, between words.

    Args:
        text: Markdown of a passage.
        max_chars: Longest unit, at least 1.
    """
    return _Cutter(text, max(1, max_chars)).cut()


class _Cutter:
    def __init__(self, text: str, max_chars: int) -> None:
        self._text = text
        self._max_chars = max_chars
        self._pieces: list[Piece] = []
        self._units: list[Unit] = []
        self._headings: list[tuple[int, int]] = []  # level and number of the piece
        self._blocks = [block for block in read_blocks(text) if block.kind != "html"]
        in_code = (_CODE_NAME.fullmatch(text, block.start, block.end) for block in self._blocks)
        self._names_in_code = sum(map(bool, in_code))  # of several none is what is announced
        self._terms: set[int] = set()  # pieces that only name a subject, or ask
        self._leading: set[int] = set()  # pieces that introduce something
        self._lead: int | None = None  # what the last block ended with, where it introduces
        self._header: int | None = None  # of the table that rows stand in
        self._named_row: int | None = None  # the last row of a nameless table with a first cell
        self._items: list[tuple[int, int]] = []  # pieces of the items of the list so far
        self._list_lead: int | None = None
        self._last_sentence: int | None = None  # of the paragraph right above
        self._last_lead: int | None = None  # what leads to that
        self._named_item: int | None = None  # indentation of the item whose name leads to its parts

    def cut(self) -> Cut:
        around = zip([None, *self._blocks], self._blocks, [*self._blocks[1:], None], strict=False)
        for above, block, following in around:
            if above is not None and _RULE.search(self._text, above.end, block.start):
                self._end_list()
                self._lead = self._last_sentence = None
            if not (block.kind == "prose" and _is_item(self._text, block)):
                self._end_list()
            self._leave_named_item(block)
            if block.kind == "heading":
                self._add_heading(block)
            elif block.kind == "row":
                self._add_row(block, following)
            elif block.kind == "code":
                self._add_code(block)
            else:
                self._add_prose(block, above, following)
        self._end_list()
        distinct = dict.fromkeys(filter(self._says_something, self._units))
        marked = (replace(e, introduces=e.last - 1 in self._leading) for e in distinct)
        return Cut(tuple(self._pieces), tuple(marked))

    def _says_something(self, unit: Unit) -> bool:
        """Tell whether a unit has words, and several where it only introduces other units."""
        if unit.kind == "code" and _PROMPT.fullmatch(self._text, unit.start, unit.end):
            return False
        last = unit.last - 1
        if last not in self._leading:
            return _has_word(self._text, unit.start, unit.end)
        said = self._text[self._pieces[last].start : self._pieces[last].end]
        if said.endswith(_SENTENCE_MARKS):
            return last not in self._terms
        least = _TELLING_WORDS[said.rstrip(_EMPHASIS).endswith(_ANNOUNCING)]
        return last not in self._terms and len(_WORD.findall(said)) >= least

    def _add_piece(self, span: Span, kind: Literal["prose", "item", "row", "code"]) -> int:
        headings = tuple(number for _, number in self._headings)
        self._pieces.append(Piece(*span, kind, headings))
        return len(self._pieces) - 1

    def _add_unit(self, kind: UnitKind, first: int, last: int, lead: int | None = None) -> None:
        span = self._pieces[first].start, self._pieces[last - 1].end
        self._append(Unit(*span, kind, first, last, lead))

    def _append(self, unit: Unit) -> None:
        self._units.append(unit)
        if unit.lead is not None:
            self._leading.add(unit.lead)

    def _size(self, first: int, last: int) -> int:
        return self._pieces[last].end - self._pieces[first].start

    def _fits(self, first: int, last: int) -> bool:
        return self._size(first, last) <= self._max_chars

    def _add_heading(self, block: Block) -> None:
        line = self._text.rfind("\n", 0, block.start) + 1
        level = len(self._text[line : block.start].strip()) or 6
        self._headings = [each for each in self._headings if each[0] < level]
        number = self._add_piece((block.start, block.end), "prose")
        self._pieces[number] = Piece(block.start, block.end, "heading")
        self._headings.append((level, number))
        self._lead = self._header = self._last_sentence = None

    def _add_row(self, block: Block, following: Block | None) -> None:
        span = block.start, block.end
        if is_header_row(self._text, block, following):
            self._header = self._add_piece(span, "row")
            return
        lead = self._header if self._header is not None else self._lead
        goes_on = self._continues_a_row(block)
        if goes_on and self._named_row is not None:
            lead = self._named_row
        number = None
        if block.end - block.start <= self._max_chars:
            number = self._add_piece(span, "row")
            self._add_unit("row", number, number + 1, lead)
        else:
            self._add_cells(block, lead)
        if not goes_on:
            self._named_row = number if self._header is None else None
        self._last_sentence = None
        if following is None or following.kind != "row":
            self._lead = self._header = self._named_row = None

    def _continues_a_row(self, block: Block) -> bool:
        """Tell a row without a first cell, which goes on with what the row above it names."""
        line = self._text.rfind("\n", 0, block.start) + 1
        return self._text.count("|", line, block.start) > 1

    def _add_cells(self, block: Block, lead: int | None) -> None:
        """Cut a row in its cells and their lines; a name in the first leads to the others."""
        spans = [part for group in _unbroken(self._text, block, block.cells) for part in group]
        start = block.start
        if len(block.cells) > 1 and len(spans) > 1 and _is_label(self._text, spans[0]):
            lead = self._add_piece(spans.pop(0), "row")
            start = spans[0][0]
        number = self._add_piece((start, block.end), "row")
        for first, last in spans:
            for low, high in _cut(self._text, first, last, self._max_chars):
                self._append(Unit(low, high, "row", number, number + 1, lead))

    def _add_code(self, block: Block) -> None:
        lead = self._lead
        if lead is None and self._last_sentence is not None and self._is_short(self._last_sentence):
            lead = self._last_sentence
        self._lead = self._last_sentence = None
        for group in _unbroken(self._text, block, _sources(self._text, block)):
            for is_prose, spans in _paragraphs(self._text, group):
                numbers = [self._add_piece(span, "prose" if is_prose else "code") for span in spans]
                if is_prose:
                    self._add_runs(numbers, "prose", lead)
                else:
                    self._add_runs_of_code(numbers, lead)

    def _add_runs_of_code(self, numbers: Sequence[int], lead: int | None) -> None:
        most = self._max_chars
        lines = (self._pieces[number] for number in numbers)
        opened = [0, *accumulate(_opened(self._text[e.start : e.end]) for e in lines)]
        for place, first in enumerate(numbers):
            if self._size(first, first) > most:
                piece = self._pieces[first]
                for low, high in _cut(self._text, piece.start, piece.end, most):
                    self._append(Unit(low, high, "code", first, first + 1, lead))
                continue
            if len(numbers) > _MOST_CODE_LINES and place % 3:
                continue
            fitting = list(takewhile(partial(self._fits, first), numbers[place:]))
            starts = place == 0 or self._is_apart(numbers[place - 1], first)
            ends = {n - 1 for n in _CODE_LINES if n <= len(fitting)}
            ends |= {len(fitting) - 1} if starts else set()
            # What opens a bracket ends where that is closed, unless it is too long then.
            closing = [at for at in range(len(fitting)) if opened[place + at + 1] <= opened[place]]
            for last in sorted({next((at for at in closing if at >= n), n) for n in ends}):
                self._add_unit("code", first, fitting[last] + 1, lead)

    def _is_apart(self, above: int, below: int) -> bool:
        between = self._text[self._pieces[above].end : self._pieces[below].start]
        return between.count("\n") > 1

    def _add_prose(self, block: Block, before: Block | None, following: Block | None) -> None:
        is_item = _is_item(self._text, block)
        kind: Literal["item", "prose"] = "item" if is_item else "prose"
        groups = [g for g in _unbroken(self._text, block, _sources(self._text, block)) if g]
        if is_item and not self._items:
            self._begin_list(block)
        above = self._list_lead if is_item and self._items else self._lead
        first_of_block = len(self._pieces)
        terms = _terms(self._text, groups)
        term: int | None = None
        for place, group in enumerate(groups):
            if place in terms and term == len(self._pieces) - 1:
                # A second term of the same definition: both name its subject.
                self._pieces[term] = replace(self._pieces[term], end=group[0][1])
                continue
            numbers = [self._add_piece(span, kind) for span in group]
            is_code = not is_item and _CODE_NAME.fullmatch(self._text, *group[0])
            if place in terms:
                term = numbers[0]
                self._terms.add(term)
            else:
                self._add_runs(
                    numbers, "code" if is_code else kind, above if term is None else term
                )
        last = len(self._pieces) - 1
        if last < first_of_block:
            return
        is_alone = last == first_of_block and not is_item
        is_caption = is_alone and self._is_caption(last, following)
        is_title = self._asks(last) or is_caption
        is_name = is_alone and (is_title or self._is_name(last, before, following))
        self._join_paragraphs(first_of_block, is_item=is_item, is_name=is_name, is_title=is_title)
        self._last_sentence = None if is_item and not self._announces(last) else last
        self._last_lead = above if term is None else term
        if is_item and last == first_of_block and self._names_its_parts(last, block, following):
            self._end_list()
            self._named_item, self._lead = _indentation(self._text, block), last
            self._terms.add(last)
            return
        self._lead_on(last, is_item=is_item, is_name=is_name, is_caption=is_caption)
        if is_item:
            self._items.append((first_of_block, last + 1))

    def _lead_on(self, last: int, *, is_item: bool, is_name: bool, is_caption: bool) -> None:
        """Let what introduces something lead to it; what announces a caption goes on doing so."""
        if is_caption and self._lead is not None and self._announces(self._lead):
            self._terms.add(last)
            self._leading.add(last)
        elif self._introduces(last, is_name=is_name):
            self._lead = last
            self._terms |= {last} if self._asks(last) else set()
        elif not is_item:
            self._lead = None

    def _leave_named_item(self, block: Block) -> None:
        """End what the name of an item leads to at a block that stands not within the item."""
        if self._named_item is not None and _indentation(self._text, block) <= self._named_item:
            self._end_list()
            self._lead = self._named_item = None

    def _names_its_parts(self, number: int, block: Block, following: Block | None) -> bool:
        """Tell an item that is a name alone, above a paragraph or a list within it."""
        if following is None or following.kind != "prose":
            return False
        is_within = _indentation(self._text, following) > _indentation(self._text, block)
        piece = self._pieces[number]
        return is_within and _NAME.fullmatch(self._text, piece.start, piece.end) is not None

    def _is_label_alone(self, block: Block) -> bool:
        is_line = block.kind == "prose" and "\n" not in self._text[block.start : block.end]
        is_paragraph = is_line and not _is_item(self._text, block)
        return is_paragraph and _is_label(self._text, (block.start, block.end))

    def _introduces(self, number: int, *, is_name: bool) -> bool:
        return self._is_short(number) and (self._announces(number) or is_name)

    def _is_short(self, number: int) -> bool:
        return self._pieces[number].end - self._pieces[number].start <= _LEAD_CHARS

    def _is_name(self, number: int, *beside: Block | None) -> bool:
        """Tell a name of what follows from a fact, as all of several in a row are without marks."""
        span = self._pieces[number].start, self._pieces[number].end
        told = self._text[slice(*span)]
        if not _is_label(self._text, span) or _FACT.search(told.rstrip(_EMPHASIS)):
            return False
        others = [self._text[e.start : e.end] for e in beside if e and self._is_label_alone(e)]
        if _NAME.fullmatch(told):
            others = list(filter(_NAME.fullmatch, others))
            if told[0] != "`" or self._names_in_code > 1:
                return not others
        return not (others or (self._lead == number - 1 and self._announces(number - 1)))

    def _is_caption(self, number: int, following: Block | None) -> bool:
        """Tell a numbered title in bold, of an example or a table, which stands above its thing.

        Several of them in a row, such as rules, are what the page tells.
        """
        piece = self._pieces[number]
        is_above = following is not None and not self._is_numbered(following.start, following.end)
        return is_above and self._is_numbered(piece.start, piece.end)

    def _is_numbered(self, start: int, end: int) -> bool:
        told = self._text[start:end]
        is_bold = told.startswith("**") and told.endswith("**") and told[2:3].isalpha()
        return is_bold and _CAPTION.match(told) is not None

    def _announces(self, number: int) -> bool:
        return self._ends_with(number, _ANNOUNCING)

    def _asks(self, number: int) -> bool:
        return self._ends_with(number, _ASKING)

    def _ends_with(self, number: int, signs: tuple[str, ...]) -> bool:
        piece = self._pieces[number]
        return self._text[piece.start : piece.end].rstrip(_EMPHASIS).endswith(signs)

    def _add_runs(self, numbers: Sequence[int], kind: UnitKind, lead: int | None) -> None:
        for place, first in enumerate(numbers):
            if self._size(first, first) > self._max_chars:
                piece = self._pieces[first]
                for low, high in _cut(self._text, piece.start, piece.end, self._max_chars):
                    self._append(Unit(low, high, kind, first, first + 1, lead))
                continue
            for last in numbers[place : place + _MOST_SENTENCES]:
                if self._size(first, last) > self._max_chars:
                    break
                self._add_unit(kind, first, last + 1, lead)

    def _join_paragraphs(self, first: int, *, is_item: bool, is_name: bool, is_title: bool) -> None:
        """The last sentence of a paragraph with the first of the next, which often refers to it."""
        above = self._last_sentence
        if above is None or is_item or self._pieces[first].kind != "prose":
            return
        if first in self._terms and not self._announces(above):
            return
        is_name = is_name and (is_title or not self._announces(above))
        if first == len(self._pieces) - 1 and self._introduces(first, is_name=is_name):
            return  # what it says belongs to what follows
        between = self._text[self._pieces[above].end : self._pieces[first].start]
        if self._size(above, first) <= self._max_chars and not between.strip():
            if self._announces(above):
                # Alone it would end where what it announces begins.
                self._units = [each for each in self._units if each.last != above + 1]
            self._add_unit("prose", above, first + 1, self._last_lead)

    def _begin_list(self, block: Block) -> None:
        """Let a sentence that the items go on with lead to them; alone it says nothing."""
        above = self._last_sentence
        if above is not None and self._text[block.start].islower() and self._is_open(above):
            self._lead = above
            self._terms.add(above)
        self._list_lead = self._lead

    def _is_open(self, number: int) -> bool:
        piece = self._pieces[number]
        shown = self._text[piece.start : piece.end].rstrip(_EMPHASIS)
        return self._is_short(number) and not shown.endswith((*_SENTENCE_MARKS, *_ANNOUNCING))

    def _end_list(self) -> None:
        items, lead = self._items, self._list_lead
        for place, (first, _) in enumerate(items):
            lasts = (last - 1 for _, last in islice(items, place, None))
            fitting = list(takewhile(partial(self._fits, first), lasts))
            counts = {n for n in _LIST_ITEMS if n <= len(fitting)}
            counts |= {len(fitting)} if place == 0 or place + len(fitting) == len(items) else set()
            for count in sorted(counts - {0, 1}):
                self._add_unit("list", first, fitting[count - 1] + 1, lead)
        if items and self._lead == lead:
            self._lead = None  # it led to the items, not to what follows them
        self._items, self._list_lead = [], None


def _opened(text: str) -> int:
    return sum(map(text.count, "([{")) - sum(map(text.count, ")]}"))


def _is_item(text: str, block: Block) -> bool:
    line = text.rfind("\n", 0, block.start) + 1
    return _ITEM.match(text, line, block.start + 1) is not None


def _indentation(text: str, block: Block) -> int:
    """Blanks and quotation marks before a block's line, which those of an item's parts exceed."""
    line = text[text.rfind("\n", 0, block.start) + 1 : block.start]
    return len(line) - len(line.lstrip(" \t>"))


def _is_label(text: str, span: Span) -> bool:
    """True for no sentence but a name, such as the term of a definition."""
    if _CODE_NAME.fullmatch(text, *span):
        return span[1] - span[0] <= _LEAD_CHARS
    part = text[slice(*span)].rstrip("*_`\"')\u201d ")
    if part.endswith("]") and not _NAME.match(text, *span):
        return False  # "[source]", "[3]", unlike "**depth**=*n* **[required]**"
    return len(part) <= _LABEL_CHARS and not part.endswith((*_NO_LABEL_ENDS, *_ANNOUNCING))


def _terms(text: str, groups: Sequence[Sequence[Span]]) -> set[int]:
    """Numbers of the lines that name or announce what the line below them says."""
    last = len(groups) - 1
    alone = {place: group[0] for place, group in enumerate(groups) if len(group) == 1}
    shown = {place: text[slice(*span)].rstrip(_EMPHASIS) for place, span in alone.items()}
    short = (place for place, line in shown.items() if len(line) <= _LABEL_CHARS)
    found = announcing = {place for place in short if shown[place].endswith(_ANNOUNCING)}
    names = {place for place, span in alone.items() if _is_label(text, span)}
    for is_name, run in groupby(range(last + 1), names.__contains__):
        places = [*run]
        is_announced = places[0] - 1 in announcing and places[-1] == last
        if is_name and len(places) <= _TERMS and not is_announced:
            found = found.union(places)
        elif is_name and [each for each in places if _NAME.match(text, *alone[each])] == [0]:
            found = found | {0}
    # The last line defines, however short it is.
    return found - {last}


def _paragraphs(text: str, lines: Sequence[Span]) -> Iterator[tuple[bool, Sequence[Span]]]:
    """Lines of code as they stand, and the sentences of what is prose with fixed line ends."""
    start, end = lines[0][0], lines[-1][1]
    cuts = [start, *(gap.end() for gap in _PARAGRAPH.finditer(text, start, end)), end]
    apart = [[e for e in lines if low <= e[0] < high] for low, high in pairwise(cuts)]
    for is_prose, group in groupby(filter(None, apart), partial(_is_wrapped_prose, text)):
        if is_prose:
            yield from ((True, _wrapped_sentences(text, own)) for own in group)
        else:
            yield False, [*chain.from_iterable(group)]


def _wrapped_sentences(text: str, lines: Sequence[Span]) -> list[Span]:
    marker = _ITEM.match(text, lines[0][0])
    start, end = marker.end() if marker else lines[0][0], lines[-1][1]
    cuts = [start, *sentence_ends(text, start, end, rule="prose"), end]
    return [_strip(text, *each) for each in pairwise(cuts) if _has_word(text, *each)]


def _is_wrapped_prose(text: str, lines: Sequence[Span]) -> bool:
    told = text[lines[0][0] : lines[-1][1]]
    signs = sum(not char.isspace() for char in told)
    is_wordy = len(_WORD.findall(told)) >= _WORDS_A_LINE * len(lines)
    is_plain = sum(map(str.isalpha, told)) >= _LETTERS * signs
    has_columns = "|" in told or _COLUMN.search(told) is not None
    return is_wordy and is_plain and not has_columns and len(lines) > 1


def is_header_row(text: str, block: Block, following: Block | None) -> bool:
    """True for a row above the body of its table; a header without one may be quoted."""
    has_body = following is not None and following.kind == block.kind == "row"
    return has_body and _BELOW_HEADER.match(text, block.end) is not None


def _sources(text: str, block: Block) -> list[Span]:
    """Split into what is quoted whole: lines of code or of columns, or sentences."""
    if block.kind == "code":
        return _lines_of_code(text, block)
    if text.count("\t", block.start, block.end) > text.count("\n", block.start, block.end):
        return _lines(text, block.start, block.end)  # columns
    return list(_sentences(text, block))


def _lines_of_code(text: str, block: Block) -> list[Span]:
    """The lines, each with the one below it where that only closes brackets."""
    lines: list[Span] = []
    for piece in block.pieces:
        is_closing = piece.plain.lstrip().startswith((")", "]", "}"))
        if is_closing and lines and not _has_word(text, piece.start, piece.end):
            lines[-1] = (lines[-1][0], piece.end)
        else:
            lines.append((piece.start, piece.end))
    return lines


def _lines(text: str, start: int, end: int) -> list[Span]:
    breaks = [found.start() for found in re.finditer("\n", text[start:end])]
    cuts = [start, *(start + each for each in breaks), end]
    return [_strip(text, *each) for each in pairwise(cuts)]


def _sentences(text: str, block: Block) -> Iterator[Span]:
    start = block.start
    opened = [first for first, _ in block.atoms]
    closed = list(accumulate((last for _, last in block.atoms), max))
    for cut in sentence_ends(text, block.start, block.end, rule="prose"):
        # Of the pieces of markup that begin before the cut, one may end behind it; long emphasis,
        # and that of all the text, may hold many sentences.
        before = bisect_left(opened, cut)
        if before > 0 and cut < closed[before - 1]:
            low, high = opened[before - 1], closed[before - 1]
            is_whole = (low, high) == (block.start, block.end)
            is_short = high - low <= _LEAD_CHARS
            asks = text[low:high].rstrip(_EMPHASIS).endswith(_ASKING)
            if text[low] not in "*_" or (is_short and (asks or not is_whole)):
                continue
        if _CAPTION.fullmatch(text, start, cut):
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
    """HTML tags, line numbers and the hard line breaks that end no sentence, in order."""
    if block.kind == "code":
        return [match.span() for match in _NUMBERED_LINE.finditer(text, block.start, block.end)]
    breaks = [match.span() for match in _HARD_BREAK.finditer(text, block.start, block.end)]
    within = sentence_ends(text, block.start, block.end, rule="prose") if breaks else ()
    kept = {*within, *(low for low, high in breaks if _goes_on(text, block, low, high))}
    return sorted([*block.tags, *(each for each in breaks if each[0] not in kept)])


def _goes_on(text: str, block: Block, start: int, end: int) -> bool:
    """Tell a line break within a sentence from one behind a name, an entry or a command."""
    above = text[max(block.start, text.rfind("\n", 0, start) + 1) : start].lstrip(_LINE_SIGNS)
    words = sum(word.strip(".,;:()\"'").isalpha() for word in above.split())
    is_prose = words >= _WORDS_A_LINE and above[0] not in _EMPHASIS
    is_open = above[-1:].isalpha() or above.endswith((",", ")"))
    return is_prose and is_open and text[end : end + 9].lstrip(_LINE_SIGNS)[:1].islower()


def _without(
    text: str, barriers: Sequence[Span], starts: Sequence[int], unit: Span
) -> Iterator[Span]:
    start, stop = unit
    for first, last in barriers[bisect_left(starts, start) : bisect_left(starts, stop)]:
        if start <= first:
            yield from (part for part in [_strip(text, start, first)] if _has_word(text, *part))
            start = last
    yield from (part for part in [_strip(text, start, stop)] if _has_word(text, *part))


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

"""Results as people at a terminal and programs read them."""

import shlex
import textwrap
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple
from uuid import UUID

from webrag.argument_checks import shown_moment
from webrag.frozen import FrozenModel, shared_fields
from webrag.orchestration.models import ConfidenceBand, OrchestrationResult, RankedChunk
from webrag.presentation.brief.blocks import by_rank, cited, further_blocks, quoted_blocks, worthy
from webrag.presentation.brief.models import BriefConfig, EvidenceBlock
from webrag.presentation.brief.sections import also_searched, as_of_note, section_name
from webrag.presentation.untrusted import clean_block, defuse, one_line

if TYPE_CHECKING:
    from webrag.answering.models import ManagerResult

# Fewer the weaker the evidence is: what hardly answers is not worth the reading.
_SHOWN = {"high": 6, "medium": 5, "low": 4, "none": 1}

_CONFIDENCE = {
    "high": "high: this very likely answers the question",
    "medium": "medium: this probably answers the question",
    "low": "low: this may not answer the question",
    "none": "none: nothing that was found seems to answer the question; this comes closest",
}

# The confidence is the chance that one of them answers.
_FIRST_QUOTATIONS = 3

_WIDTH = 100
_BEST_LINES = 14
_OTHER_LINES = 3
_NAME_CHARS = 90
_NOTE_CHARS = 300
_DESCRIPTION_CHARS = 400
_NOTES = 4


class CommandLine(NamedTuple):
    """Prints commands so that they run where the reader is.

    The options are those of the running command that the next one needs, too.
    """

    program: str = "webrag"
    options: tuple[str, ...] = ()

    def of(self, *words: str) -> str:
        """The line that runs a command of these words."""
        return f"{self.program} {shlex.join([*words, *self.options])}"


class ResultQuotation(FrozenModel):
    """A quotation of a passage, with what names the place and the subject it stands at."""

    text: str
    char_start: int
    char_end: int
    link: str
    columns: str | None = None
    lead: str | None = None
    place: str | None = None
    as_of: datetime | None = None


class ResultPassage(FrozenModel):
    """A passage that was found: where it stands, its rank, and its finest quotations."""

    rank: int
    passage_id: UUID
    url: str
    title: str | None
    author: str | None = None
    site_name: str | None = None
    version: str | None = None
    headings: tuple[str, ...]
    published_at: datetime | None
    fetched_at: datetime
    relevance: float
    is_adjacent: bool
    char_start: int
    char_end: int
    text: str
    addresses_reader: bool = False
    quotations: tuple[ResultQuotation, ...] = ()


class ResultLink(FrozenModel):
    """A link that was not followed."""

    url: str
    anchor: str


class ResultPart(FrozenModel):
    """One part of the question: how far it is answered, and its best passage."""

    text: str
    confidence: float
    confidence_band: ConfidenceBand
    passage_id: UUID | None


class ResultDocument(FrozenModel):
    """The JSON that `answer`, `search` and `demo` print; docs/reference/command-line.md has it."""

    query: str
    as_of: datetime | None = None
    mode: Literal["full_context", "chunk"]
    confidence: float
    confidence_band: ConfidenceBand
    passages: tuple[ResultPassage, ...]
    seed_urls: tuple[str, ...]
    sub_queries: tuple[str, ...]
    parts: tuple[ResultPart, ...]
    wordings: tuple[str, ...]
    also_searched: dict[str, str]
    documents_searched: int
    urls_fetched: tuple[str, ...]
    next_links: tuple[ResultLink, ...]
    stopped_because: str
    description: str = ""
    warnings: tuple[str, ...]
    degraded: tuple[str, ...]
    partial: bool
    total_ms: float

    def within(self, max_tokens: int, count_tokens: Callable[[str], int]) -> "ResultDocument":
        """Keep the best passages, one at least, whose texts together have `max_tokens` at most."""
        left, kept = max_tokens, 0
        for passage in self.passages:
            left -= count_tokens(passage.text)
            if left < 0 and kept:
                break
            kept += 1
        return self.model_copy(update={"passages": self.passages[:kept]})


def best_passages(
    result: OrchestrationResult,
    config: BriefConfig,
    *,
    at_most: int | None = None,
) -> list[EvidenceBlock]:
    """Give the passages worth a person's time, that of the best quotation first.

    Without `at_most` they are as many as the confidence is worth.
    """
    quoted = quoted_blocks(result, config)
    others: Sequence[EvidenceBlock] = further_blocks(result, config, quoted)
    if at_most is None:
        detail = "brief" if result.confidence_band == "high" else "full"
        others = worthy(others, result, config.model_copy(update={"detail": detail}))
    unquoted = len(result.units)
    found = [*quoted, *(cited(block, result) for block in others if not block.is_adjacent)]
    found.sort(key=lambda block: block.quotes[0].place if block.quotes else unquoted)
    most = max(_SHOWN[result.confidence_band], len(quoted))
    return found[: most if at_most is None else at_most]


def format_result(
    result: OrchestrationResult,
    passages: Sequence[EvidenceBlock],
    command: CommandLine = CommandLine(),  # noqa: B008 - it cannot be changed
    place: str = "URL",
) -> str:
    """Give the confidence, best quotation, further passages, and where the rest of `place` is."""
    if not passages:
        nothing = [*as_of_note(result.as_of), "Nothing was found.", *_notes(result)]
        return "\n".join([*nothing, *_what_would_find_it(result, command, place)])
    most = _SHOWN[result.confidence_band]
    best, *others = _one_by_one(passages)[:most]
    lines = [*as_of_note(result.as_of), f"Confidence {_CONFIDENCE[result.confidence_band]}.", ""]
    lines += quotation_lines(best)
    if others:
        lines += ["", "Further passages:"]
    for number, block in enumerate(others, 2):
        lines += ["", f"{number}. {_name(block)}", f"   {_link(block)}"]
        lines += [f"   {line}" for line in (*_quoted(block, _OTHER_LINES), *_stands_in(block))]
    lines += [*_rest(result, passages, command), *_notes(result)]
    return "\n".join([*lines, *_what_would_find_it(result, command, place)])


def quotation_lines(best: EvidenceBlock) -> list[str]:
    """The best quotation and where it stands."""
    place = (*_stands_in(best), f"— {_name(best)}", _link(best))
    return [*_quoted(best, _BEST_LINES), *(f"    {line}" for line in place)]


def _what_would_find_it(result: OrchestrationResult, command: CommandLine, place: str) -> list[str]:
    """The command to run next, where nothing that was found seems to answer."""
    if result.confidence_band != "none" or result.as_of is not None:
        return []
    start = next(iter(result.seed_urls), place)
    if any(step.candidates_expanded for step in result.expansion_steps):
        return [f"To store more of its site: {command.of('ingest', start, '--max-pages', '200')}"]
    return [look_on_the_web(result.query, command, start)]


def look_on_the_web(question: str, command: CommandLine, place: str) -> str:
    """The line with the command that reads more pages for a question."""
    why = "To look on the web" if place == "URL" else "To follow links from there"
    asked = one_line(question, max_chars=_NOTE_CHARS)
    return f"{why}: {command.of('answer', place, asked, '--deep')}"


def _one_by_one(passages: Sequence[EvidenceBlock]) -> list[EvidenceBlock]:
    """Each passage once for each of its quotations that are the first of all, else once."""
    told = [
        passage.model_copy(
            update={
                "quotes": (quote,),
                "heading": quote.heading or passage.heading,
            }
        )
        for passage in passages
        for quote in passage.quotes
        if quote is passage.quotes[0]
        or (quote.place < _FIRST_QUOTATIONS and not passage.addresses_reader)
    ]
    told.sort(key=lambda block: block.quotes[0].place)
    return [*told, *(passage for passage in passages if not passage.quotes)]


def _quoted(block: EvidenceBlock, most_lines: int) -> list[str]:
    if block.addresses_reader:
        return ["(not shown: it gives orders to an assistant that reads it; --full shows it)"]
    text = block.citation.verbatim_text if block.citation else block.text
    wrapper = textwrap.TextWrapper(_WIDTH, break_long_words=False, break_on_hyphens=False)
    lines = [part for line in defuse(clean_block(text)).splitlines() for part in wrapper.wrap(line)]
    shown = lines[:most_lines]
    if len(shown) < len(lines):
        shown[-1] = f"{shown[-1]} ..."
    if block.citation:
        shown[0] = f'"{shown[0]}'
        shown[-1] = f'{shown[-1]}"'
    return shown


def _stands_in(block: EvidenceBlock) -> list[str]:
    """The header of the table a quotation is a row of, and the term it defines."""
    if block.addresses_reader or not block.quotes:
        return []
    quote = block.quotes[0]
    told = {"Columns": quote.columns, "Below": quote.lead}
    return [
        f"{name}: {one_line(text, max_chars=_NAME_CHARS)}" for name, text in told.items() if text
    ]


def _name(block: EvidenceBlock) -> str:
    found = block.citation
    place, as_of = (found.place, found.as_of) if found else (None, None)
    return page_name(block.title, block.heading, place, as_of)


def page_name(
    title: str | None, heading: str | None, place: str | None, as_of: datetime | None
) -> str:
    """Name the place of a quotation on one line: page, section, file and moment."""
    below = section_name(title, heading, _NAME_CHARS // 2)
    name = one_line(title or "", max_chars=_NAME_CHARS - len(below)) or "Untitled"
    name = f"{name} § {below}" if below else name
    name = f"{name} ({one_line(place)})" if place else name
    return f"{name}, as of {shown_moment(as_of)}" if as_of else name


def _link(block: EvidenceBlock) -> str:
    return block.citation.link if block.citation else block.url


def _rest(
    result: OrchestrationResult, shown: Sequence[EvidenceBlock], command: CommandLine
) -> list[str]:
    held = {block.chunk_id for block in shown}
    more = sum(item.chunk.chunk_id not in held for item in result.chunks)
    said = f"{more:,} more {'passage' if more == 1 else 'passages'}: --full. " if more else ""
    if result.as_of is not None:
        return ["", said.strip()] if said else []  # `read` gives pages as they are now
    read_on = command.of("read", "--passage", str(shown[0].chunk_id))
    return ["", f"{said}The best one in its page: {read_on}"]


def _notes(result: OrchestrationResult) -> list[str]:
    notes = [one_line(each, max_chars=_NOTE_CHARS) for each in (*result.warnings, *result.degraded)]
    told = description_lines(result)
    told += [also_searched(result.also_searched)] if result.also_searched else []
    if result.partial:
        notes.append("Time ran out; this is what was found until then.")
    more = len(notes) - _NOTES
    shown = [f"Note: {each}" for each in notes[:_NOTES]]
    return [*told, *shown, *([f"... and {more} more notes: --full"] if more > 0 else [])]


def description_lines(result: "ManagerResult | OrchestrationResult") -> list[str]:
    """A line for the text that a page keeps beside the one that can be cited."""
    if not result.description:
        return []
    told = one_line(result.description, max_chars=_DESCRIPTION_CHARS)
    return [f"The page describes itself, beside its text: \u201c{told}\u201d"]


def result_document(result: OrchestrationResult, blocks: Sequence[EvidenceBlock]) -> ResultDocument:
    """Give the result for programs, with the quotations of the blocks."""
    told: dict[UUID, list[EvidenceBlock]] = {}
    for block in blocks:
        told.setdefault(block.chunk_id, []).append(block)
    return ResultDocument(
        **shared_fields(ResultDocument, result, "passages", "parts", "wordings", "next_links"),
        passages=tuple(
            _passage(rank, item, told.get(item.chunk.chunk_id, ()))
            for rank, item in enumerate(by_rank(result.chunks), 1)
        ),
        sub_queries=result.query_analysis.sub_queries,
        parts=tuple(
            ResultPart(**shared_fields(ResultPart, part), passage_id=part.chunk_id)
            for part in result.parts
        ),
        wordings=tuple(result.wordings),
        documents_searched=result.corpus_stats.total_documents,
        next_links=tuple(
            ResultLink(url=link.url, anchor=link.anchor) for link in result.next_links
        ),
        stopped_because=result.final_decision.reason,
        total_ms=result.timing.total_ms,
    )


def _passage(rank: int, item: RankedChunk, blocks: Sequence[EvidenceBlock]) -> ResultPassage:
    chunk = item.chunk
    quotes = (quote for block in blocks for quote in block.quotes)
    return ResultPassage(
        **shared_fields(ResultPassage, chunk),
        rank=rank,
        passage_id=chunk.chunk_id,
        url=chunk.source_url,
        headings=chunk.heading_path,
        relevance=item.reranked_score,
        is_adjacent=item.is_locality_expanded,
        addresses_reader=any(block.addresses_reader for block in blocks),
        quotations=tuple(
            ResultQuotation(
                **shared_fields(ResultQuotation, quote.citation),
                text=quote.citation.verbatim_text,
                columns=quote.columns,
                lead=quote.lead,
            )
            for quote in sorted(quotes, key=lambda each: each.place)
        ),
    )

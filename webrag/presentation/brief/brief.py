"""A result as the bracketed research brief that models and people read, within a token budget."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from webrag.orchestration.models import OrchestrationResult
from webrag.presentation.brief.blocks import (
    candidate_blocks,
    cited,
    finds_nothing,
    focus_form,
    is_strong,
    relevant_blocks,
)
from webrag.presentation.brief.models import BriefConfig, EvidenceBlock
from webrag.presentation.brief.sections import (
    brief_stats,
    citation_entries,
    evidence_entry,
    evidence_notice,
    follow_ups,
    guide,
    image_lines,
    left_out_lines,
    next_links,
    source_entry,
    sources,
    stats,
)
from webrag.presentation.brief.trace import expansion_trace
from webrag.presentation.reports import counted
from webrag.presentation.untrusted import one_line

__all__ = ["BriefConfig", "EvidenceBlock", "evidence_blocks", "format_brief"]

TokenCounter = Callable[[str], int]

# Headers, blank lines, and the two omission notes that are only known at the end.
_RESERVE_TOKENS = 80
# Evidence shorter than this helps nobody; below it the other sections are shortened first.
_LEAST_EVIDENCE_TOKENS = 200
_TERSE_BLOCKS = 3
# Of what the passages may cost together; a second one is read in less than the rest only cut.
_SHARE_OF_THE_FIRST = 0.6
# What is cut to less, its source line and its citation included, says too little.
_LEAST_CUT_TOKENS = 200
# The best passage is shown all the same; then its quotations make room until so much is left.
_LEAST_CUT_CHARS = 200
_SHORT_QUOTES = (160, 60)
# What comes closest to a question that nothing answers is worth a look, not a chapter.
_CLOSEST_TOKENS = 400
_CLOSEST = "Nothing that was found seems to answer the question; this comes closest."
# As much as the hint of an error may have; filters with many pages would fill the brief.
_WARNING_CHARS = 400


def format_brief(
    result: OrchestrationResult,
    config: BriefConfig,
    *,
    count_tokens: TokenCounter,
    nonce: str | None = None,
) -> str:
    """The brief: sources, evidence, images, trace, citations, figures and what to do next.

    The text never has more than `config.token_budget` tokens. [SOURCES], [CITATIONS], [STATS]
    and [FOLLOW-UP OPTIONS] (and the guide, when it is wanted) are always there; evidence ends
    where its relevance does or what they leave, then come trace and images, and lines say what
    was left out. A budget too small for that shortens the sections, then leaves out the options
    and the links of citations, and says so; from 500 tokens on the best passage and a quotation of
    it are there, unless its address alone takes more. One too small for any passage gives a
    sentence that says so.

    Args:
        result: What orchestration returned.
        config: Budget and layout.
        count_tokens: Tokens of a text; the budget is in its unit.
        nonce: Unpredictable token that frames page text, so that no page can end its own
            frame; None for readers who need no frames.
    """
    layout = _lay_out(result, config, count_tokens=count_tokens, nonce=nonce)
    if layout is not None:
        return layout.text
    notice = (
        f"[STATS]\n{config.token_budget:,} tokens are too small for a brief: raise max_tokens or "
        "MCP_RESPONSE_TOKEN_BUDGET."
    )
    return _clipped(notice, config.token_budget, count_tokens)


def evidence_blocks(
    result: OrchestrationResult,
    config: BriefConfig,
    *,
    count_tokens: TokenCounter,
) -> list[EvidenceBlock]:
    """Exactly the passages `format_brief` prints, in its order and form.

    Best reranked score first, adjacent context after all matched evidence, no character of a
    page twice, and only what is relevant beside the best and fits the token budget. The first
    `whole_results` passages are whole parent chunks, the others the child that matched best.
    """
    layout = _lay_out(result, config, count_tokens=count_tokens)
    return list(layout.blocks) if layout else []


@dataclass(frozen=True)
class _Layout:
    """The parts of one brief, chosen so that `text` stays within the budget.

    Attributes:
        blocks: Passages printed, in order.
        candidates: Passages there were in all.
        relevant: How many of them are worth their tokens.
        is_terse: Sections are shortened.
        is_bare: [FOLLOW-UP OPTIONS] are left out as well.
        has_links: Citations that are asked for in full link to their words on the page.
        unseen: Lines that name the best of those that are not printed.
    """

    result: OrchestrationResult
    config: BriefConfig
    nonce: str | None
    is_terse: bool = False
    is_bare: bool = False
    has_links: bool = True
    blocks: tuple[EvidenceBlock, ...] = ()
    candidates: int = 0
    relevant: int = 0
    unseen: tuple[str, ...] = ()
    trace: str = ""
    images: tuple[str, ...] = ()
    omitted: tuple[str, ...] = field(default=())

    @property
    def text(self) -> str:
        """The whole brief."""
        sections = (
            ("PRESENTATION GUIDE", self._guide()),
            ("SOURCES", self._sources()),
            ("EVIDENCE", self._evidence()),
            ("IMAGES", "\n".join(self.images)),
            ("EXPANSION TRACE", self.trace),
            ("CITATIONS", self.citations(self.blocks) or "(none)"),
            ("STATS", self._stats()),
            ("NEXT LINKS", "" if self.is_terse else next_links(self.result)),
            ("FOLLOW-UP OPTIONS", "" if self.is_bare else follow_ups(self.result, self.config)),
        )
        return "\n\n".join(f"[{name}]\n{body}" for name, body in sections if body)

    def citations(self, blocks: Sequence[EvidenceBlock]) -> str:
        """Quote some passages as [CITATIONS] does."""
        with_links = self.has_links and self.config.detail == "full"
        return "\n\n".join(citation_entries(blocks, with_links=with_links))

    def _guide(self) -> str:
        if not self.config.include_guide:
            return ""
        return guide(self.result) if not self.is_terse else "Cite every claim; add no facts."

    def _sources(self) -> str:
        return sources(self.result.chunks, self.blocks, with_sections=not self.is_terse)

    def _stats(self) -> str:
        if self.is_terse:
            return brief_stats(self.result, self.config.token_budget)
        whole = len(self.blocks) == self.candidates and not any(b.is_cut for b in self.blocks)
        lines = stats(self.result, is_whole=whole, detail=self.config.detail)
        return "\n".join((lines, *self.omitted))

    def _evidence(self) -> str:
        if not self.result.chunks:
            return self._nothing_found()
        parts = [evidence_notice(self.nonce), _CLOSEST if finds_nothing(self.result) else ""]
        parts += [evidence_entry(block, self.nonce) for block in self.blocks]
        parts.append("\n".join(line for line in (self._left_out(), *self.unseen) if line))
        return "\n\n".join(part for part in parts if part)

    def _left_out(self) -> str:
        shown = len(self.blocks)
        less = self.candidates - max(shown, self.relevant)
        parts = [
            f"{self.relevant - shown} omitted due to response budget"
            if shown < self.relevant
            else "",
            f"{less} are less relevant" if less else "",
        ]
        left = ", ".join(filter(None, parts))
        start = f"... (showing {shown} of {self.candidates} chunks — remaining"
        return f"{start} {left})" if left else ""

    def _nothing_found(self) -> str:
        result = self.result
        if not result.seed_urls and not result.corpus_stats.total_documents:
            why = (one_line(warning, max_chars=_WARNING_CHARS) for warning in result.warnings)
            return " ".join(("There was no page to search.", *why))
        where = "the specified URL" if result.seed_urls else "the corpus"
        return f"No relevant content was found for this query in {where}."


def _lay_out(
    result: OrchestrationResult,
    config: BriefConfig,
    *,
    count_tokens: TokenCounter,
    nonce: str | None = None,
) -> _Layout | None:
    """Choose what is printed: fixed sections first, then evidence, trace and images.

    Returns:
        None when the budget does not hold the best passage even in the shortest form.
    """
    whole = _Layout(result, config, nonce)
    terse = replace(whole, is_terse=True)
    bare = replace(terse, is_bare=True)
    # In other scripts than Latin a link is some nine times as long as what it leads to.
    for form in (whole, terse, bare, replace(bare, has_links=False)):
        layout = _filled(form, count_tokens)
        if layout is not None:
            return layout
    return None


def _filled(layout: _Layout, count_tokens: TokenCounter) -> _Layout | None:
    """The form with as much as fits; None where that is no passage, or too little of one."""
    result, config = layout.result, layout.config
    left = config.token_budget - count_tokens(layout.text) - _RESERVE_TOKENS
    if not layout.is_terse and left < (_LEAST_EVIDENCE_TOKENS if result.chunks else 0):
        return None
    candidates = tuple(candidate_blocks(result, config))
    relevant = relevant_blocks(candidates, result, config)
    layout = replace(layout, candidates=len(candidates), relevant=len(relevant))
    if finds_nothing(result) and not config.every_passage:
        closest = min(left, _CLOSEST_TOKENS)
        layout = _with_blocks(layout, relevant, closest, count_tokens)
        if closest < left:  # what is left out is so for another reason than the budget
            layout = replace(layout, relevant=len(layout.blocks))
    else:
        most = _TERSE_BLOCKS if layout.is_terse else None
        layout = _with_blocks(layout, relevant[:most], left, count_tokens)
    if not layout.is_terse:
        in_order = (*relevant, *(each for each in candidates if each not in relevant))
        left_out = in_order[len(layout.blocks) :] if result.as_of is None else ()
        best = max((each.relevance for each in candidates), default=0.0)
        unseen = left_out_lines(left_out, best=best, few=finds_nothing(result))
        layout = _with_extras(replace(layout, unseen=tuple(unseen)), count_tokens)
    layout = _reduced(layout, count_tokens)
    is_there = layout.blocks or not candidates
    return layout if is_there and count_tokens(layout.text) <= config.token_budget else None


def _with_blocks(
    layout: _Layout, candidates: Sequence[EvidenceBlock], left: int, count_tokens: TokenCounter
) -> _Layout:
    """Add passages in order until one does not fit; it is cut where what is left is worth it."""
    for block in candidates:
        most = left if layout.blocks else _most_of_the_first(block, candidates, left, layout)
        fitting = _fitting(layout, block, most, left, count_tokens)
        if fitting is None:
            break
        left -= _cost(fitting, layout, count_tokens)
        layout = replace(layout, blocks=(*layout.blocks, fitting))
        if fitting.is_cut:
            break
    return layout


def _most_of_the_first(
    block: EvidenceBlock, candidates: Sequence[EvidenceBlock], left: int, layout: _Layout
) -> int:
    """What the first passage may cost as a whole: not all there is, beside others as strong."""
    floor = layout.result.relevance_floor
    strong = (is_strong(each.relevance, block.relevance, floor) for each in candidates[1:])
    return int(left * _SHARE_OF_THE_FIRST) if any(strong) else left


def _fitting(
    layout: _Layout, block: EvidenceBlock, most: int, left: int, count_tokens: TokenCounter
) -> EvidenceBlock | None:
    """The passage, or its best part where it costs more than `most`, or what fits of that."""
    block = cited(block, layout.result)
    if _cost(block, layout, count_tokens) <= most:
        return block
    smaller = focus_form(block, layout.result)
    if smaller is not None:
        focused = cited(smaller, layout.result)
        block = focused if focused.quotes or not block.quotes else block
    if _cost(block, layout, count_tokens) <= left:
        return block
    if layout.blocks:
        return _cut(block, layout, left, count_tokens) if left >= _LEAST_CUT_TOKENS else None
    cut = None
    for form in _shorter_quoted(block, layout.result):
        cut = _cut(form, layout, left, count_tokens) or cut
        if cut is not None and len(cut.text) >= _LEAST_CUT_CHARS:
            break
    return cut


def _shorter_quoted(block: EvidenceBlock, result: OrchestrationResult) -> Iterator[EvidenceBlock]:
    """The passage with fewer and shorter quotations, so that something of it can be shown."""
    yield block
    yield block.model_copy(update={"quotes": block.quotes[:1]})
    for chars in _SHORT_QUOTES:
        quotes = cited(block, result, max_chars=chars).quotes[:1]
        if quotes:
            yield block.model_copy(update={"quotes": quotes, "citation": quotes[0].citation})


def _cost(block: EvidenceBlock, layout: _Layout, count_tokens: TokenCounter) -> int:
    """What a passage adds; of its quotations only those that are among the best of all."""
    parts = [evidence_entry(block, layout.nonce)]
    if all(each.source_number != block.source_number for each in layout.blocks):
        parts.append(source_entry(block))
    before, after = (
        count_tokens(layout.citations(blocks))
        for blocks in (layout.blocks, (*layout.blocks, block))
    )
    return count_tokens("\n\n".join(parts)) + 2 + after - before


def _cut(
    block: EvidenceBlock, layout: _Layout, left: int, count_tokens: TokenCounter
) -> EvidenceBlock | None:
    """The longest beginning of a passage that fits, ending between words."""
    low, high = 0, len(block.text)
    while low < high:
        middle = (low + high + 1) // 2
        if _cost(_shortened(block, middle), layout, count_tokens) <= left:
            low = middle
        else:
            high = middle - 1
    end = max(block.text.rfind(" ", 0, low), block.text.rfind("\n", 0, low))
    shortened = _shortened(block, end if end > low // 2 else low)
    fits = _cost(shortened, layout, count_tokens) <= left
    return shortened if shortened.text.strip() and fits else None


def _shortened(block: EvidenceBlock, length: int) -> EvidenceBlock:
    return block.model_copy(update={"text": block.text[:length], "is_cut": True})


def _with_extras(layout: _Layout, count_tokens: TokenCounter) -> _Layout:
    """Add the trace and the images when they still fit, or a line that names what is missing."""
    budget = layout.config.token_budget
    trace = expansion_trace(layout.result, detail=layout.config.detail)
    if trace:
        wider = replace(layout, trace=trace)
        steps = counted(layout.result.total_iterations, "iteration")
        note = f"[Expansion trace omitted — {steps}, see stats above]"
        fits = count_tokens(wider.text) <= budget
        layout = wider if fits else replace(layout, omitted=(*layout.omitted, note))
    images = tuple(image_lines(layout.blocks, layout.result.chunks))
    if images:
        wider = replace(layout, images=images)
        note = f"[{len(images)} images omitted due to response budget]"
        fits = count_tokens(wider.text) <= budget
        layout = wider if fits else replace(layout, omitted=(*layout.omitted, note))
    return layout


def _reduced(layout: _Layout, count_tokens: TokenCounter) -> _Layout:
    """Take parts away until the whole text fits: counts of parts need not add up exactly."""
    budget = layout.config.token_budget
    while count_tokens(layout.text) > budget:
        if layout.images:
            layout = replace(layout, images=())
        elif layout.trace:
            layout = replace(layout, trace="")
        elif layout.unseen:
            layout = replace(layout, unseen=layout.unseen[:-1])
        elif layout.omitted:
            layout = replace(layout, omitted=())
        elif layout.blocks:
            layout = replace(layout, blocks=layout.blocks[:-1])
        else:
            break
    return layout


def _clipped(text: str, token_budget: int, count_tokens: TokenCounter) -> str:
    while text and count_tokens(text) > token_budget:
        text = text[: len(text) // 2]
    return text

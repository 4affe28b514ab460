"""A result as the bracketed research brief that models and people read, within a token budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from webrag.orchestration.models import OrchestrationResult
from webrag.presentation.brief.blocks import (
    cited,
    further_blocks,
    quoted_blocks,
    seen_units,
    shortest,
    spanned,
    worthy,
)
from webrag.presentation.brief.models import BriefConfig, EvidenceBlock
from webrag.presentation.brief.sections import (
    answer_line,
    cited_quotes,
    description_entry,
    evidence_entry,
    follow_ups,
    frame_line,
    guide,
    image_lines,
    next_links,
    nothing_found,
    quoted_entry,
    seen_line,
    sources,
    stats,
)
from webrag.presentation.brief.trace import expansion_path, expansion_trace

TokenCounter = Callable[[str], int]

# Of a passage or a quotation that is cut; less says too little.
_LEAST_CHARS = 40
# Of a brief whose pages seem not to hold the answer, as a model gets it: others show the same.
_MOST_CHARS_OF_NONE = 1_200
# Of the closest quotation where the other sections take these characters alone.
_CLOSEST_CHARS = 200
_ANY_NONCE = "0" * 8


def format_brief(
    result: OrchestrationResult,
    config: BriefConfig,
    *,
    count_tokens: TokenCounter,
    nonce: str | None = None,
) -> str:
    """Lay out a brief: how sure it is, quotations in context, figures, and what to do next.

    The text never has more than `config.token_budget` tokens: further passages go first, then what
    stands around quotations, then the quotations behind the first, and all sections but [SOURCES]
    and [CITATIONS]; a sentence says so. From 300 tokens on the best quotation is there, or its
    beginning, unless its address alone takes more. Where nothing answers, quotations are cut so
    that it has 1,200 characters at most; where the other sections alone take more, the first 200
    characters of the closest stand beside them. The unpredictable `nonce` frames page text, so
    that no page can end its own frame; None for no frames.
    """
    draft = _lay_out(result, config, count_tokens=count_tokens, nonce=nonce)
    if draft is not None:
        return draft.text
    text = (
        f"[STATS]\n{config.token_budget:,} tokens are too small for a brief: raise max_tokens or "
        "MCP_RESPONSE_TOKEN_BUDGET."
    )
    while text and count_tokens(text) > config.token_budget:
        text = text[: len(text) // 2]
    return text


def evidence_blocks(
    result: OrchestrationResult,
    config: BriefConfig,
    *,
    count_tokens: TokenCounter,
) -> list[EvidenceBlock]:
    """Give exactly the passages `format_brief` prints, in its order and form."""
    draft = _lay_out(result, config, count_tokens=count_tokens)
    return [*draft.quoted, *draft.further] if draft else []


@dataclass(frozen=True)
class _Draft:
    """The parts of one brief, chosen so that `text` stays within the budget.

    A terse one leaves out all sections but [SOURCES] and [CITATIONS]. Of a short one the sections
    stay, and quotations are cut to `most_chars`.
    """

    result: OrchestrationResult
    config: BriefConfig
    nonce: str | None
    is_terse: bool
    wanted: Sequence[EvidenceBlock]
    most_chars: int | None = None
    quoted: tuple[EvidenceBlock, ...] = ()
    further: tuple[EvidenceBlock, ...] = ()
    trace: str = ""
    images: tuple[str, ...] = ()
    has_trace: bool = False
    has_images: bool = False

    @property
    def shown(self) -> tuple[EvidenceBlock, ...]:
        """All passages that are printed."""
        return (*self.quoted, *self.further)

    @property
    def text(self) -> str:
        """The whole brief."""
        result, config = self.result, self.config
        said = answer_line(result)
        if config.caller == "mcp" and not self.is_terse:
            said = f"[PRESENTATION GUIDE]\n{said} {guide(result)}"
        has_all = not self.shown and seen_units(result, config.seen)
        sections = [
            ("SOURCES", "" if has_all else sources(result, self.shown)),
            ("CITATIONS", self._citations()),
            ("EVIDENCE", self._evidence()),
        ]
        if not self.is_terse:
            sections += [
                ("IMAGES", "\n".join(self.images) if self.has_images else ""),
                ("EXPANSION TRACE", self.trace if self.has_trace else ""),
                ("STATS", stats(result, self._left_out(), detail=config.detail)),
                ("NEXT LINKS", next_links(result)),
                ("FOLLOW-UP OPTIONS", follow_ups(result, config)),
            ]
        else:
            said += f" Not printed: what does not fit {config.token_budget:,} tokens."
        return "\n\n".join([said, *(f"[{name}]\n{body}" for name, body in sections if body)])

    def _citations(self) -> str:
        cited_ones = cited_quotes(self.result, self.quoted)
        numbers = {quote: number for number, quote in enumerate(cited_ones, 1)}
        parts = [frame_line(self.nonce) if self.shown else ""]
        had = seen_units(self.result, self.config.seen)
        parts.append("\n".join(seen_line(each, self.result) for each in had))
        parts.append("" if self.is_terse else description_entry(self.result, self.nonce))
        with_links = self.config.detail == "full" and not self.is_terse
        for chunk_id in dict.fromkeys(block.chunk_id for block in self.quoted):
            blocks = [block for block in self.quoted if block.chunk_id == chunk_id]
            in_order = sorted(blocks, key=lambda block: block.char_start)
            parts.append(
                quoted_entry(
                    in_order,
                    numbers,
                    self.nonce,
                    self.config.caller,
                    with_links=with_links,
                    is_terse=self.is_terse,
                )
            )
        return "\n\n".join(filter(None, parts))

    def _evidence(self) -> str:
        if not self.result.chunks:
            return nothing_found(self.result)
        caller = self.config.caller
        return "\n\n".join(evidence_entry(each, self.nonce, caller) for each in self.further)

    def _left_out(self) -> list[str]:
        """Count what is not printed, by kind."""
        shown = {block.chunk_id for block in self.shown}
        wanted = {block.chunk_id for block in self.wanted} - shown
        found = {ranked.chunk.chunk_id for ranked in self.result.chunks}
        had = {chunk_id for chunk_id, *_ in self.config.seen}
        less = found - shown - wanted - had if self.config.detail == "full" else set()
        is_short = self.most_chars is not None  # and says that the closest is there
        counts = {
            f"passages that do not fit {self.config.token_budget:,} tokens": len(wanted)
            * (not is_short),
            "less relevant passages": len(less),
            "images": len(self.images) * (not self.has_images),
        }
        left = [f"{count:,} {name}" for name, count in counts.items() if count]
        return left + ["the expansion trace"] * (bool(self.trace) and not self.has_trace)


def _lay_out(
    result: OrchestrationResult,
    config: BriefConfig,
    *,
    count_tokens: TokenCounter,
    nonce: str | None = None,
) -> _Draft | None:
    """Choose what is printed, the best quotation first; None where not even that fits."""
    quoted = [] if config.every_passage else quoted_blocks(result, config)
    further = worthy(further_blocks(result, config, quoted), result, config)
    printed = {block.url for block in (*quoted, *further)}

    def fits(draft: _Draft) -> bool:
        is_short = draft.most_chars is None or _chars_for_model(draft) <= draft.most_chars
        return is_short and count_tokens(draft.text) <= config.token_budget

    is_none = result.mode == "chunk" and result.confidence_band == "none"
    is_short = is_none and config.detail == "brief" and not config.every_passage
    for is_terse in (False, True):
        draft = _Draft(result, config, nonce, is_terse, (*quoted, *further))
        if not is_terse:
            is_full = config.detail == "full"
            trace = expansion_trace(result) if is_full else expansion_path(result, printed)
            draft = replace(draft, trace=trace)
        if is_short:
            draft = _shortened(draft, is_quoted=bool(quoted))
        for block in quoted:
            draft = _with_quoted(draft, block, fits)
            if not draft.quoted:
                break  # none stands in for the best
        for block in further if bool(draft.quoted) == bool(quoted) else ():
            longer = _with_further(draft, cited(block, result), fits)
            if longer is draft:
                break
            draft = longer
        if (draft.quoted or draft.further or not draft.wanted) and fits(draft):
            return draft if is_terse else _with_extras(draft, fits)
    return None


def _shortened(draft: _Draft, *, is_quoted: bool) -> _Draft:
    """Limit the characters: to more than is usual where the other sections leave no room."""
    draft = replace(draft, most_chars=_MOST_CHARS_OF_NONE)

    def chars(most: int) -> int:
        begun = tuple(shortest(each, draft.result, most) for each in draft.wanted[:1])
        return _chars_for_model(
            replace(draft, quoted=begun) if is_quoted else replace(draft, further=begun)
        )

    has_room = chars(_LEAST_CHARS) <= _MOST_CHARS_OF_NONE
    return draft if has_room else replace(draft, most_chars=chars(_CLOSEST_CHARS))


def _chars_for_model(draft: _Draft) -> int:
    of_model = draft.config.model_copy(update={"caller": "mcp"})
    return len(replace(draft, nonce=_ANY_NONCE, config=of_model).text)


def _with_quoted(draft: _Draft, block: EvidenceBlock, fits: Callable[[_Draft], bool]) -> _Draft:
    """Add a passage with as many of its quotations as fit; of the very first a part at least.

    Where not even the first quotation fits beside all sections, they are to make room, unless
    nothing answers: then the quotation is.
    """

    def longer(by: EvidenceBlock) -> _Draft:
        return replace(draft, quoted=(*draft.quoted, by))

    unit = block.quotes[0].citation
    alone = shortest(block, draft.result, unit.char_end - unit.char_start)
    fewer = (spanned(block, draft.result, count) for count in range(len(block.quotes) - 1, 1, -1))
    for form in (block, *fewer, alone):
        if fits(longer(form)):
            return longer(form)
    if draft.quoted or not (draft.is_terse or draft.most_chars):
        return draft
    cut = _longest(alone, draft, lambda form: fits(longer(form)))
    return longer(cut) if cut else draft


def _with_further(draft: _Draft, block: EvidenceBlock, fits: Callable[[_Draft], bool]) -> _Draft:
    """Add a passage, or its beginning where no more fits."""

    def longer(by: EvidenceBlock) -> _Draft:
        return replace(draft, further=(*draft.further, by))

    if fits(longer(block)):
        return longer(block)
    if draft.further and draft.further[-1].is_cut:
        return draft
    cut = _longest(block.model_copy(update={"quotes": ()}), draft, lambda form: fits(longer(form)))
    return longer(cut) if cut else draft


def _longest(
    block: EvidenceBlock, draft: _Draft, fits: Callable[[EvidenceBlock], bool]
) -> EvidenceBlock | None:
    """The longest beginning of a block that fits."""
    low, high = 0, len(block.text)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(shortest(block, draft.result, middle)):
            low = middle
        else:
            high = middle - 1
    cut = shortest(block, draft.result, low) if low >= _LEAST_CHARS else None
    return cut if cut is not None and fits(cut) else None


def _with_extras(draft: _Draft, fits: Callable[[_Draft], bool]) -> _Draft:
    """Add the trace and the images where they still fit."""
    images = tuple(image_lines(draft.shown, draft.result.chunks))
    for wider in (
        replace(draft, has_trace=True, images=images, has_images=True),
        replace(draft, has_trace=True, images=images),
        replace(draft, images=images, has_images=True),
        replace(draft, images=images),
    ):
        if fits(wider):
            return wider
    return draft

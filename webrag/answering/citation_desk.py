"""Checks every citation against the stored pages before a sentence may be shown."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from webrag.answering.guardrails import holds_secret, is_instruction
from webrag.answering.language_model import one_line
from webrag.answering.models import (
    AnswerCitation,
    AnswerPart,
    CitationTally,
    Evidence,
    PartKind,
    Proposal,
)
from webrag.answering.support import is_supported
from webrag.orchestration.judge import Encode, judged
from webrag.orchestration.models import RankedChunk
from webrag.retrieval.citations import extract_citation

_MIN_QUOTE_CHARS: Final = 8  # shorter ones stand anywhere
_MAX_QUOTE_CHARS: Final = 600
_MAX_SENTENCE_CHARS: Final = 800

PartListener = Callable[[AnswerPart, tuple[AnswerCitation, ...]], None]
"""Told each accepted sentence and the citations it is the first to use."""


class CitationDesk:
    """Takes the sentences of one answer, keeps those whose citations hold, and counts the rest.

    A citation holds when `pages[url][start:end]` is the quotation, it touches nothing unquotable,
    and it says what the sentence says, by words alone without `encode`.
    """

    def __init__(
        self,
        evidence: Sequence[Evidence],
        pages: Mapping[str, str],
        *,
        encode: Encode | None = None,
        on_part: PartListener | None = None,
    ) -> None:
        self._evidence = {each.number: each for each in evidence}
        self._pages = pages
        self._encode = encode
        self._on_part = on_part
        self._numbers: dict[tuple[str, int, int], int] = {}
        self._citations: list[AnswerCitation] = []
        self.parts: list[AnswerPart] = []
        self.removed = 0
        self.unsupported = 0

    @property
    def citations(self) -> tuple[AnswerCitation, ...]:
        """Citations of the accepted sentences, by number."""
        return tuple(self._citations)

    @property
    def tally(self) -> CitationTally:
        """The outcome of everything proposed so far."""
        return CitationTally(
            kept=len(self._citations), removed=self.removed, unsupported=self.unsupported
        )

    def add_excerpt(
        self,
        evidence: Evidence,
        start: int,
        end: int,
        *,
        kind: PartKind = "prose",
        mark: str = "",
    ) -> AnswerPart | None:
        """Take words of a page, `mark` before them, as a sentence; None when they are not there.

        What was said already is not said again; the sentence that says it is returned.
        """
        if not self._resolves(evidence, start, end):
            self.removed += 1
            return None
        text = self._pages[evidence.chunk.source_url][start:end]
        return self._accept(mark + text, kind, [(evidence, start, end)])

    def add_sentence(self, text: str, proposals: Sequence[Proposal]) -> AnswerPart | None:
        """Take a sentence somebody wrote; None when nothing cited supports it."""
        sentence = _cleaned(text)
        found = [self._located(proposal, sentence) for proposal in proposals]
        spans = list(dict.fromkeys(span for span in found if span is not None))
        self.removed += sum(span is None for span in found)
        if not sentence or not self._is_supported(sentence, spans):
            self.unsupported += 1
            self.removed += len(spans)
            return None
        return self._accept(sentence, "prose", self._needed(sentence, spans))

    def _resolves(self, evidence: Evidence, start: int, end: int) -> bool:
        chunk = evidence.chunk
        stored = self._pages.get(chunk.source_url, "")[start:end]
        inside = chunk.text[start - chunk.char_start : end - chunk.char_start]
        return evidence.is_quotable(start, end) and bool(stored.strip()) and stored == inside

    def _located(self, proposal: Proposal, sentence: str) -> tuple[Evidence, int, int] | None:
        evidence = self._evidence.get(proposal.evidence)
        if evidence is None:
            return None
        for first, last in locate(proposal.quote, evidence.chunk.text):
            offset = evidence.chunk.char_start
            start, end = offset + first, offset + last
            if last - first > _MAX_QUOTE_CHARS:
                start, end = _best_unit(evidence, first, last, sentence) or (start, end)
            if self._resolves(evidence, start, end):
                return evidence, start, end
        return None

    def _is_supported(self, sentence: str, spans: Sequence[tuple[Evidence, int, int]]) -> bool:
        if not spans or is_instruction(sentence) or holds_secret(sentence):
            return False
        quotes = [self._pages[each.chunk.source_url][start:end] for each, start, end in spans]
        headings = {
            " ".join((each.chunk.title or "", *each.chunk.heading_path)) for each, _, _ in spans
        }
        return is_supported(
            sentence, quotes, context="\n".join(sorted(headings)), encode=self._encode
        )

    def _needed(
        self, sentence: str, spans: Sequence[tuple[Evidence, int, int]]
    ) -> list[tuple[Evidence, int, int]]:
        """The spans without those that alone have nothing to do with the sentence."""
        if len(spans) == 1:
            return list(spans)
        kept = list(spans)
        for span in spans:
            others = [each for each in kept if each != span]
            if not others or self._is_supported(sentence, [span]):
                continue
            if self._is_supported(sentence, others):
                kept = others
                self.removed += 1
        return kept

    def _accept(
        self, text: str, kind: PartKind, spans: Sequence[tuple[Evidence, int, int]]
    ) -> AnswerPart:
        said = _squeezed(text)
        repeated = next((part for part in self.parts if _squeezed(part.text) == said), None)
        if repeated is not None:
            return repeated
        before = len(self._citations)
        numbers = tuple(dict.fromkeys(self._number(*span) for span in spans))
        part = AnswerPart(text=text, kind=kind, citations=numbers)
        self.parts.append(part)
        if self._on_part is not None:
            self._on_part(part, tuple(self._citations[before:]))
        return part

    def _number(self, evidence: Evidence, start: int, end: int) -> int:
        key = (evidence.chunk.source_url, start, end)
        if key not in self._numbers:
            span = extract_citation(evidence.chunk, start, end)
            assert span is not None
            assert self._pages[span.source_url][start:end] == span.verbatim_text
            self._numbers[key] = len(self._citations) + 1
            self._citations.append(
                AnswerCitation(
                    **span.model_dump(),
                    number=self._numbers[key],
                    document_id=evidence.chunk.document_id,
                    author=evidence.chunk.author,
                    site_name=evidence.chunk.site_name,
                    published_at=evidence.chunk.published_at,
                )
            )
        return self._numbers[key]


def _best_unit(evidence: Evidence, first: int, last: int, sentence: str) -> tuple[int, int] | None:
    """The part of a long quotation that most likely says what a sentence says."""
    part = {
        "text": evidence.chunk.text[first:last],
        "char_start": evidence.chunk.char_start + first,
    }
    chunk = evidence.chunk.model_copy(update=part)
    found = judged(
        sentence, [RankedChunk(chunk=chunk, reranked_score=1.0)], term_idf={}, encode=None
    )
    return next(((unit.char_start, unit.char_end) for unit in found.units), None)


def locate(quote: str, text: str) -> list[tuple[int, int]]:
    """Give start and end of every place, in order, where a quotation stands, white space aside.

    Nothing else is forgiven: a quotation that differs in a letter may differ in meaning, and one
    that is too short to tell has no place.
    """
    words = quote.split()
    if len(" ".join(words)) < _MIN_QUOTE_CHARS:
        return []
    pattern = r"\s+".join(map(re.escape, words))
    return [match.span() for match in re.finditer(pattern, text)]


def _squeezed(text: str) -> str:
    return " ".join(text.split()).casefold()


def _cleaned(text: str) -> str:
    """One line without control characters and without citation marks a writer put in."""
    line = one_line(text, max_chars=_MAX_SENTENCE_CHARS)
    return re.sub(r"(?:(?<!\s)\s++)?\[\d++(?:\s*+,\s*+\d++)*+\]", "", line).strip()

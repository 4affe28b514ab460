"""Judges what `ask` said against gold quotes; pure functions over text and numbers."""

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

from webrag.evaluation.metrics import comparison_key, is_page
from webrag.evaluation.questions import CitationRecord, Question, RunRecord
from webrag.orchestration.models import ConfidenceBand

Verdict = Literal["right", "half", "wrong"]

_BANDS: tuple[ConfidenceBand, ...] = get_args(ConfidenceBand)


class AnswerScore(NamedTuple):
    """What an answer holds of the evidence a full one needs.

    Attributes:
        is_answerable: None when the question is only asked.
        share: Of the gold quotes, by letters and digits, that stand in the answer; None without.
        on_gold: Of each citation, whether it holds a gold quote or stands on a gold page.
        held: Of each sentence, list or code block of the answer, whether its citations hold it, by
            letters and digits.
        verbatim: Of each citation, whether it stands in its page as it is printed.
    """

    type: str
    is_answerable: bool | None
    band: str
    share: float | None
    on_gold: tuple[bool, ...]
    held: tuple[bool, ...]
    verbatim: tuple[bool, ...]
    words: int
    ms: float

    @property
    def verdict(self) -> Verdict | None:
        """`right` with all of the evidence, `half` with some; None without gold."""
        if self.share is None:
            return None
        return "right" if self.share == 1 else "half" if self.share else "wrong"


def score_answer(question: Question, record: RunRecord) -> AnswerScore:
    """Score the record of one answer."""
    said = [comparison_key(text) for text in record.answer]
    found = [
        any(comparison_key(passage.quote) in text for passage in gold.passages for text in said)
        for gold in question.gold or ()
    ]
    return AnswerScore(
        type=question.type,
        is_answerable=None if question.gold is None else bool(question.gold),
        band=record.confidence_band,
        share=sum(found) / len(found) if found else None,
        on_gold=tuple(_is_on_gold(question, each) for each in record.citations) if found else (),
        held=tuple(_held(record)),
        verbatim=tuple(each.verbatim for each in record.citations),
        words=sum(len(text.split()) for text in record.answer),
        ms=record.ms,
    )


def _held(record: RunRecord) -> Iterator[bool]:
    """What is said otherwise counts as not held, true or not: words alone cannot tell."""
    for text, places in zip(record.answer, record.supports, strict=False):
        cited = "".join(comparison_key(record.citations[place].verbatim_text) for place in places)
        yield comparison_key(text) in cited


def answer_figures(scores: Sequence[AnswerScore]) -> list[tuple[str, str]]:
    """Name and value of every figure over all answers."""
    judged = [each for each in scores if each.share is not None]
    unanswerable = [each for each in scores if each.is_answerable is False]
    called = sum(each.band in ("high", "medium") for each in unanswerable)
    rows = [
        ("questions", str(len(scores))),
        ("answerable", str(len(judged))),
        ("gold in the answer", _mean(each.share or 0.0 for each in judged)),
        ("all of it", _mean(each.verdict == "right" for each in judged)),
        ("citations on a gold page", _mean(hit for each in judged for hit in each.on_gold)),
        ("the first one of an answer", _mean(each.on_gold[0] for each in judged if each.on_gold)),
        ("sentences their citation holds", _mean(hit for each in scores for hit in each.held)),
        ("citation fidelity", _mean(each for score in scores for each in score.verbatim)),
        ("unanswerable, high or medium", f"{called} of {len(unanswerable)}"),
        ("words of an answer, p50", _median(judged, lambda each: each.words)),
        ("time per question, p50", f"{_median(scores, lambda each: each.ms)} ms"),
    ]
    kinds = sorted({each.type for each in judged})
    if len(kinds) > 1:
        rows += [
            (f"gold in the answer, {kind}", _mean(s.share or 0.0 for s in judged if s.type == kind))
            for kind in kinds
        ]
    return rows


def answer_bands(scores: Sequence[AnswerScore]) -> list[tuple[str, ...]]:
    """Header, and a row for each band of confidence: how far it is to be believed."""
    header = ("confidence", "answers", "right", "half", "wrong", "gold in it", "unanswerable")
    return [header, *(_band_row(band, scores) for band in _BANDS)]


def _band_row(band: str, scores: Sequence[AnswerScore]) -> tuple[str, ...]:
    here = [each for each in scores if each.band == band]
    judged = [each for each in here if each.share is not None]
    verdicts = [each.verdict for each in judged]
    return (
        band,
        str(len(judged)),
        *(str(verdicts.count(verdict)) for verdict in ("right", "half", "wrong")),
        _mean(bool(each.share) for each in judged),
        str(sum(each.is_answerable is False for each in here)),
    )


def _is_on_gold(question: Question, citation: CitationRecord) -> bool:
    text = comparison_key(citation.verbatim_text)
    passages = [passage for gold in question.gold or () for passage in gold.passages]
    return any(
        is_page(citation.url, each.page) or comparison_key(each.quote) in text for each in passages
    )


def _mean(values: Iterable[float]) -> str:
    listed = [float(value) for value in values]
    return f"{statistics.fmean(listed):.3f}" if listed else "-"


def _median(scores: Sequence[AnswerScore], value: Callable[[AnswerScore], float]) -> str:
    return f"{statistics.median(map(value, scores)):.0f}" if scores else "-"

"""Reports of an evaluation as rows of text; it prints nothing."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, get_args

from webrag.evaluation.metrics import (
    AnswerScore,
    PairedFigure,
    QuestionScore,
    mean,
    mean_figures,
    score_answer,
    score_question,
)
from webrag.evaluation.questions import Question, RunRecord
from webrag.orchestration.models import ConfidenceBand

_HEADER: Final = ("figure", "value")


def figures(scores: Sequence[QuestionScore]) -> list[tuple[str, str]]:
    """Name and value of every figure over all questions."""
    judged = [score for score in scores if score.answerable]
    hopeless = [score for score in scores if score.answerable is False]
    citations = sum(score.citations for score in scores)
    verbatim = sum(score.citations_verbatim for score in scores)
    fetched = [score.pages_fetched for score in scores]
    return [
        ("questions", str(len(scores))),
        ("answerable", str(len(judged))),
        ("failed", str(sum(score.failed for score in scores))),
        *((name, _share(value)) for name, value in mean_figures(scores).items()),
        ("gold cited", _mean(s.gold_cited for s in judged if s.gold_cited is not None)),
        ("citations", str(citations)),
        ("citation fidelity", _share(verbatim / citations if citations else math.nan)),
        ("abstained, no answer on the site", _abstained(hopeless)),
        ("abstained, answerable", _abstained(judged)),
        ("pages fetched per question, mean", f"{mean(fetched):.1f}"),
        ("pages fetched per question, max", str(max(fetched))),
        ("time per question, p50", _percentile(scores, 50)),
        ("time per question, p95", _percentile(scores, 95)),
    ]


def _abstained(scores: Sequence[QuestionScore]) -> str:
    """A question that failed has told nothing about what the product would have said."""
    return _mean(score.abstained for score in scores if not score.failed)


def _percentile(scores: Sequence[QuestionScore], percent: int) -> str:
    ordered = sorted(score.ms for score in scores)
    return f"{ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]:.0f} ms"


def figures_by_type(scores: Sequence[QuestionScore]) -> list[tuple[str, ...]]:
    """Header and one row per question type; types without gold are left out."""
    header = ("type", "n", "@1", "@5", "@10", "1000 words", "all @10", "MRR")
    rows: list[tuple[str, ...]] = [header]
    for kind in sorted({score.type for score in scores if score.answerable}):
        of_kind = [score for score in scores if score.answerable and score.type == kind]
        means = mean_figures(of_kind)
        shares = [means[f"evidence recall @{k}"] for k in (1, 5, 10)]
        whole = mean(score.evidence[10] == 1 for score in of_kind)
        shares += [means["evidence recall in 1000 words"], whole, means["mean reciprocal rank"]]
        rows.append((kind, str(len(of_kind)), *map(_share, shares)))
    return rows


def comparison_rows(figures: Sequence[PairedFigure]) -> list[tuple[str, ...]]:
    """Header and one row per figure of two runs."""
    header = ("figure", "first", "second", "change", "95 %", "better", "worse", "p", "p (sign)")
    rows = [
        (
            each.name,
            f"{each.first:.3f}",
            f"{each.second:.3f}",
            f"{each.difference:+.3f}",
            f"{each.low:+.3f} to {each.high:+.3f}",
            str(each.better),
            str(each.worse),
            f"{each.p_permutation:.3f}",
            f"{each.p_sign:.3f}",
        )
        for each in figures
    ]
    return [header, *rows]


def moved_rows(
    moved: Sequence[tuple[str, float, float]], questions: Sequence[Question]
) -> list[tuple[str, ...]]:
    """Header and one row per question: where its first right result stood, then where it stands."""
    asked = {question.id: question.query for question in questions}
    rows = [(each, _rank(old), _rank(new), asked[each]) for each, old, new in moved]
    return [("question", "first", "second", ""), *rows]


def _rank(reciprocal: float) -> str:
    return f"{1 / reciprocal:.0f}" if reciprocal else "not found"


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
    return [header, *(_band_row(band, scores) for band in get_args(ConfidenceBand))]


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


def _mean(values: Iterable[float]) -> str:
    return _share(mean(values))


def _median(scores: Sequence[AnswerScore], value: Callable[[AnswerScore], float]) -> str:
    return f"{statistics.median(map(value, scores)):.0f}" if scores else "-"


def agent_figures(
    questions: Sequence[Question], records: Sequence[RunRecord]
) -> list[tuple[str, ...]]:
    """Header, and a row per figure with a column for each kind of tools."""
    kinds = list(dict.fromkeys(record.tools for record in records))
    columns = [_column(questions, [r for r in records if r.tools == kind]) for kind in kinds]
    return [("", *kinds), *((name, *(each[name] for each in columns)) for name in columns[0])]


def _column(questions: Sequence[Question], records: Sequence[RunRecord]) -> dict[str, str]:
    asked = {question.id: question for question in questions}
    verdicts = [score_answer(asked[record.id], record).verdict for record in records]
    unanswerable = [record for record in records if asked[record.id].gold == ()]
    quoted = [citation.verbatim for record in records for citation in record.citations]
    characters = [record.characters for record in records]
    return {
        "answerable": str(len(records) - verdicts.count(None)),
        "right, all gold in the answer": str(verdicts.count("right")),
        "half right": str(verdicts.count("half")),
        "said to be not found": str(
            sum(r.abstained for r, v in zip(records, verdicts, strict=True) if v)
        ),
        "unanswerable": str(len(unanswerable)),
        "unanswerable, said so": str(sum(record.abstained for record in unanswerable)),
        "failed": str(sum(record.error is not None for record in records)),
        "calls": str(sum(record.calls for record in records)),
        "characters read": f"{sum(characters):,}",
        "characters per question, p50": f"{statistics.median(characters):,.0f}",
        "seconds": f"{sum(record.ms for record in records) / 1000:.1f}",
        "quotations": str(len(quoted)),
        "quotations that the tools showed": str(sum(quoted)),
    }


class Report(NamedTuple):
    """The report of a run: rows of tables, header first, and ids of questions by what is wrong."""

    tables: dict[str, Sequence[tuple[str, ...]]]
    questions: dict[str, Sequence[str]]


def report_evidence(questions: Sequence[Question], records: Sequence[RunRecord]) -> Report:
    """Judge a run: its figures, and every question that did not go well."""
    scores = [score_question(q, record) for q, record in zip(questions, records, strict=True)]
    by_type = figures_by_type(scores)
    tables: dict[str, Sequence[tuple[str, ...]]] = {"Figures": [_HEADER, *figures(scores)]}
    missed = [each.id for each in scores if each.answerable and each.evidence[10] < 1]
    believed = [each.id for each in scores if each.answerable is False and not each.abstained]
    return Report(
        tables | ({"By type": by_type} if by_type[1:] else {}),
        {
            "Evidence missing from the first 10 passages": missed,
            "Answered although the site does not say it": believed,
            "Failed": [record.id for record in records if record.error is not None],
        },
    )


def report_answers(questions: Sequence[Question], records: Sequence[RunRecord]) -> Report:
    """As `report_evidence`, of answers: every one that does not hold all of its evidence."""
    scores = [score_answer(q, record) for q, record in zip(questions, records, strict=True)]
    asked = [(record.id, score) for record, score in zip(records, scores, strict=True)]
    believed = [
        name
        for name, score in asked
        if score.is_answerable is False and score.band in ("high", "medium")
    ]
    return Report(
        {"Figures": [_HEADER, *answer_figures(scores)], "By confidence": answer_bands(scores)},
        {
            "Right in part": [name for name, score in asked if score.verdict == "half"],
            "Without the evidence": [name for name, score in asked if score.verdict == "wrong"],
            "Answered although the site does not say it": believed,
        },
    )


def report_agents(questions: Sequence[Question], records: Sequence[RunRecord]) -> Report:
    """As `report_evidence`, of answers of a model, whatever tools it had.

    It lists no questions, as nobody judged the answers.
    """
    return Report({"Figures": agent_figures(questions, records)}, {})


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"

"""The tables an evaluation prints, as rows of text; drawing them is the terminal's business."""

import math
from collections.abc import Sequence

from webrag.evaluation.metrics import QuestionScore, Summary, summarise

__all__ = ["figures", "figures_by_type"]


def figures(scores: Sequence[QuestionScore]) -> list[tuple[str, str]]:
    """Name and value of every figure over all questions."""
    summary = summarise(scores)
    rows = [
        ("questions", str(summary.questions)),
        ("answerable", str(summary.answerable)),
        ("failed", str(summary.failed)),
    ]
    rows += [(f"evidence recall @{k}", _share(v)) for k, v in summary.evidence.items()]
    rows += [(f"evidence recall in {k} words", _share(v)) for k, v in summary.words.items()]
    rows += [(f"page recall @{k}", _share(v)) for k, v in summary.pages.items()]
    rows += [
        ("mean reciprocal rank", _share(summary.mrr)),
        ("citations", str(summary.citations)),
        ("citation fidelity", _share(summary.citation_fidelity)),
        ("abstained, no answer on the site", _share(summary.abstained_unanswerable)),
        ("abstained, answerable", _share(summary.abstained_answerable)),
        ("pages fetched per question, mean", f"{summary.pages_fetched_mean:.1f}"),
        ("pages fetched per question, max", str(summary.pages_fetched_max)),
        ("time per question, p50", f"{summary.ms_p50:.0f} ms"),
        ("time per question, p95", f"{summary.ms_p95:.0f} ms"),
    ]
    return rows


def figures_by_type(scores: Sequence[QuestionScore]) -> list[tuple[str, ...]]:
    """Header and one row per question type; types without gold are left out."""
    header = ("type", "n", "@1", "@5", "@10", "1000 words", "all @10", "MRR")
    rows: list[tuple[str, ...]] = [header]
    for kind in sorted({score.type for score in scores if score.answerable}):
        group = [score for score in scores if score.type == kind]
        rows.append(_row(kind, summarise(group)))
    return rows


def _row(kind: str, summary: Summary) -> tuple[str, ...]:
    return (
        kind,
        str(summary.answerable),
        _share(summary.evidence[1]),
        _share(summary.evidence[5]),
        _share(summary.evidence[10]),
        _share(summary.words[1000]),
        _share(summary.all_evidence[10]),
        _share(summary.mrr),
    )


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"

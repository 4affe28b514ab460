"""Reports of an evaluation: tables as rows of text, and a page in Markdown; prints nothing."""

import math
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, get_args

from webrag.evaluation.agent import agent_figures
from webrag.evaluation.comparison import PairedFigure
from webrag.evaluation.metrics import (
    AnswerScore,
    QuestionScore,
    mean,
    score_answer,
    score_question,
    summarise,
)
from webrag.evaluation.questions import Question, RunRecord
from webrag.orchestration.models import ConfidenceBand

_SHOWN_RESULTS = 3
_SHOWN_CHARS = 300
_HEADER: Final = ("figure", "value")


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
        ("hit rate @10", _share(summary.hit_rate)),
        ("mean reciprocal rank", _share(summary.mrr)),
        ("nDCG @10", _share(summary.ndcg)),
        ("gold cited", _share(summary.gold_cited)),
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
        of_kind = summarise([score for score in scores if score.type == kind])
        shares = [of_kind.evidence[k] for k in (1, 5, 10)]
        shares += [of_kind.words[1000], of_kind.all_evidence[10], of_kind.mrr]
        rows.append((kind, str(of_kind.answerable), *map(_share, shares)))
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
        (
            "the first one of an answer",
            _mean(each.on_gold[0] for each in judged if each.on_gold),
        ),
        (
            "sentences their citation holds",
            _mean(hit for each in scores for hit in each.held),
        ),
        ("citation fidelity", _mean(each for score in scores for each in score.verbatim)),
        ("unanswerable, high or medium", f"{called} of {len(unanswerable)}"),
        ("words of an answer, p50", _median(judged, lambda each: each.words)),
        ("time per question, p50", f"{_median(scores, lambda each: each.ms)} ms"),
    ]
    kinds = sorted({each.type for each in judged})
    if len(kinds) > 1:
        rows += [
            (
                f"gold in the answer, {kind}",
                _mean(s.share or 0.0 for s in judged if s.type == kind),
            )
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


class Report(NamedTuple):
    """The report of a run: rows of tables, header first, and questions in Markdown, by heading."""

    tables: dict[str, Sequence[tuple[str, ...]]]
    questions: dict[str, Sequence[str]]

    def page(self, title: str, warnings: Sequence[str] = ()) -> str:
        """The report as a Markdown page; what makes its figures doubtful comes first."""
        parts = [f"# {title}", *(f"> **Warning:** {warning}" for warning in warnings)]
        for heading, rows in self.tables.items():
            parts += [f"## {heading}", _table(rows)]
        for heading, asked in self.questions.items():
            parts += [f"## {heading}", *asked] if asked else []
        return "\n\n".join(parts) + "\n"


def report_evidence(questions: Sequence[Question], records: Sequence[RunRecord]) -> Report:
    """Judge a run: its figures, and every question that did not go well."""
    scores = [score_question(q, record) for q, record in zip(questions, records, strict=True)]
    asked = list(zip(questions, records, scores, strict=True))
    by_type = figures_by_type(scores)
    tables: dict[str, Sequence[tuple[str, ...]]] = {"Figures": [_HEADER, *figures(scores)]}
    missed = [_asked(q, r) for q, r, s in asked if s.answerable and s.evidence[10] < 1]
    believed = [_asked(q, r) for q, r, s in asked if s.answerable is False and not r.abstained]
    return Report(
        tables | ({"By type": by_type} if by_type[1:] else {}),
        {
            "Evidence missing from the first 10 passages": missed,
            "Answered although the site does not say it": believed,
            "Failed": [_asked(q, r) for q, r, _ in asked if r.error is not None],
        },
    )


def report_answers(questions: Sequence[Question], records: Sequence[RunRecord]) -> Report:
    """As `report_evidence`, of answers: every one that does not hold all of its evidence."""
    scores = [score_answer(q, record) for q, record in zip(questions, records, strict=True)]
    asked = list(zip(questions, records, scores, strict=True))
    believed = [
        _asked(q, r)
        for q, r, score in asked
        if score.is_answerable is False and score.band in ("high", "medium")
    ]
    return Report(
        {"Figures": [_HEADER, *answer_figures(scores)], "By confidence": answer_bands(scores)},
        {
            "Right in part": [_asked(q, r) for q, r, s in asked if s.verdict == "half"],
            "Without the evidence": [_asked(q, r) for q, r, s in asked if s.verdict == "wrong"],
            "Answered although the site does not say it": believed,
        },
    )


def report_agents(questions: Sequence[Question], records: Sequence[RunRecord]) -> Report:
    """As `report_evidence`, of answers of a model: all of them, whatever tools it had."""
    known = {question.id: question for question in questions}
    answers = [_asked(known[record.id], record) for record in records]
    return Report({"Figures": agent_figures(questions, records)}, {"Answers": answers})


def _asked(question: Question, record: RunRecord) -> str:
    lines = [f"### {question.id}: {_inline(question.query)}", ""]
    lines += [f"- wanted on {gold.page}: {_inline(gold.quote)}" for gold in question.gold or ()]
    lines += [f"- error: {_inline(record.error)}"] if record.error else []
    lines += [
        f"- result {rank}: {result.url}: {_inline(result.text)}"
        for rank, result in enumerate(record.retrieved[:_SHOWN_RESULTS], start=1)
    ]
    who = record.tools or record.confidence_band
    lines += [f"- said, {who}: {_inline(text)}" for text in record.answer]
    if record.tools:
        lines.append(f"- {who}: {record.calls} calls, {record.characters:,} characters read")
        lines += [f"- quoted: {_inline(each.verbatim_text)}" for each in record.citations]
    return "\n".join(lines)


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    header, *body = rows
    lines = [header, ("---",) * len(header), *body]
    return "\n".join("| " + " | ".join(map(_inline, cells)) + " |" for cells in lines)


def _inline(text: str) -> str:
    line = " ".join(text.split())
    shown = line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", shown)


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"

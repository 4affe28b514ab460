"""What an evaluation tells: tables as rows of text, and a page in Markdown; it prints nothing."""

import math
import re
from collections.abc import Sequence

from webrag.evaluation.answers import AnswerScore, answer_bands, answer_figures
from webrag.evaluation.comparison import PairedFigure
from webrag.evaluation.metrics import QuestionScore, Summary, summarise
from webrag.evaluation.questions import Question
from webrag.evaluation.runs import RunRecord

_SHOWN_RESULTS = 3
_SHOWN_CHARS = 300


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
        group = [score for score in scores if score.type == kind]
        rows.append(_row(kind, summarise(group)))
    return rows


def comparison_rows(figures: Sequence[PairedFigure]) -> list[tuple[str, ...]]:
    """Header and one row per figure of two runs."""
    header = ("figure", "first", "second", "change", "95 %", "better", "worse", "p", "p (sign)")
    return [header, *map(_comparison_row, figures)]


def moved_rows(
    moved: Sequence[tuple[str, float, float]], questions: Sequence[Question]
) -> list[tuple[str, ...]]:
    """Header and one row per question: where its first right result stood, then where it stands."""
    asked = {question.id: question.query for question in questions}
    rows = [(each, _rank(old), _rank(new), asked[each]) for each, old, new in moved]
    return [("question", "first", "second", ""), *rows]


def _rank(reciprocal: float) -> str:
    return f"{1 / reciprocal:.0f}" if reciprocal else "not found"


def render_report(
    title: str,
    questions: Sequence[Question],
    records: Sequence[RunRecord],
    scores: Sequence[QuestionScore],
    warnings: Sequence[str] = (),
) -> str:
    """A run as a Markdown page: its figures, and every question that did not go well.

    Args:
        title: Its heading.
        questions: In the order asked.
        records: One per question, in the same order.
        scores: Likewise.
        warnings: What makes the figures doubtful; they come first.
    """
    asked = list(zip(questions, records, scores, strict=True))
    missed = [each for each in asked if each[2].answerable and each[2].evidence[10] < 1]
    believed = [each for each in asked if each[2].answerable is False and not each[1].abstained]
    failed = [each for each in asked if each[1].error is not None]
    parts = [f"# {title}"]
    parts += [f"> **Warning:** {warning}" for warning in warnings]
    parts += ["## Figures", _table([("figure", "value"), *figures(scores)])]
    by_type = figures_by_type(scores)
    parts += ["## By type", _table(by_type)] if len(by_type) > 1 else []
    parts += _questions("Evidence missing from the first 10 passages", missed)
    parts += _questions("Answered although the site does not say it", believed)
    parts += _questions("Failed", failed)
    return "\n\n".join(parts) + "\n"


def render_answers(
    title: str,
    questions: Sequence[Question],
    records: Sequence[RunRecord],
    scores: Sequence[AnswerScore],
    warnings: Sequence[str] = (),
) -> str:
    """As `render_report`, of answers: every one that does not hold all of its evidence."""
    asked = list(zip(questions, records, scores, strict=True))
    parts = [f"# {title}"]
    parts += [f"> **Warning:** {warning}" for warning in warnings]
    parts += ["## Figures", _table([("figure", "value"), *answer_figures(scores)])]
    parts += ["## By confidence", _table(answer_bands(scores))]
    for verdict, heading in (("half", "Right in part"), ("wrong", "Without the evidence")):
        found = [_answer(q, record) for q, record, score in asked if score.verdict == verdict]
        parts += [f"## {heading}", *found] if found else []
    believed = [
        _answer(q, record)
        for q, record, score in asked
        if score.is_answerable is False and score.band in ("high", "medium")
    ]
    parts += ["## Answered although the site does not say it", *believed] if believed else []
    return "\n\n".join(parts) + "\n"


def render_agents(
    title: str,
    questions: Sequence[Question],
    records: Sequence[RunRecord],
    rows: Sequence[tuple[str, ...]],
    warnings: Sequence[str] = (),
) -> str:
    """As `render_report`, of answers of a model: all of them, with what each cost.

    Args:
        title: Its heading.
        questions: In the order asked.
        records: Of each question one with every kind of tools, in the same order.
        rows: Its figures, the header first.
        warnings: What makes the figures doubtful.
    """
    parts = [f"# {title}"]
    parts += [f"> **Warning:** {warning}" for warning in warnings]
    parts += ["## Figures", _table(rows), "## Answers"]
    asked = {question.id: question for question in questions}
    for record in records:
        cost = f"- {record.tools}: {record.calls} calls, {record.characters:,} characters read"
        quotes = [f"- quoted: {_inline(each.verbatim_text)}" for each in record.citations]
        parts.append("\n".join([_answer(asked[record.id], record), cost, *quotes]))
    return "\n\n".join(parts) + "\n"


def _answer(question: Question, record: RunRecord) -> str:
    lines = [f"### {question.id}: {_inline(question.query)}", ""]
    lines += [f"- wanted on {gold.page}: {_inline(gold.quote)}" for gold in question.gold or ()]
    lines += [f"- error: {_inline(record.error)}"] if record.error else []
    lines += [f"- said, {record.confidence_band}: {_inline(text)}" for text in record.answer]
    return "\n".join(lines)


def _questions(
    heading: str, asked: Sequence[tuple[Question, RunRecord, QuestionScore]]
) -> list[str]:
    if not asked:
        return []
    return [f"## {heading}", *(_question(question, record) for question, record, _ in asked)]


def _question(question: Question, record: RunRecord) -> str:
    lines = [f"### {question.id}: {_inline(question.query)}", ""]
    lines += [f"- wanted on {gold.page}: {_inline(gold.quote)}" for gold in question.gold or ()]
    lines += [f"- error: {_inline(record.error)}"] if record.error else []
    lines += [
        f"- result {rank}: {result.url}: {_inline(result.text)}"
        for rank, result in enumerate(record.retrieved[:_SHOWN_RESULTS], start=1)
    ]
    return "\n".join(lines)


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    header, *body = rows
    lines = [header, ("---",) * len(header), *body]
    return "\n".join("| " + " | ".join(map(_inline, cells)) + " |" for cells in lines)


def _inline(text: str) -> str:
    """One line of plain text in Markdown, shortened."""
    line = " ".join(text.split())
    shown = line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", shown)


def _comparison_row(figure: PairedFigure) -> tuple[str, ...]:
    return (
        figure.name,
        f"{figure.first:.3f}",
        f"{figure.second:.3f}",
        f"{figure.difference:+.3f}",
        f"{figure.low:+.3f} to {figure.high:+.3f}",
        str(figure.better),
        str(figure.worse),
        f"{figure.p_permutation:.3f}",
        f"{figure.p_sign:.3f}",
    )


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

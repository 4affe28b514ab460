"""Finds gold that cannot be right, so that a slip in the questions is not read as a miss."""

from collections.abc import Mapping, Sequence

from webrag.evaluation.page_text import VisiblePages
from webrag.evaluation.questions import Gold, Question

__all__ = ["gold_warnings"]

_SHOWN_CHARS = 120


def gold_warnings(
    questions: Sequence[Question], pages: Mapping[str, VisiblePages | None]
) -> list[str]:
    """Sentences about gold that makes the figures doubtful.

    Args:
        questions: What is asked.
        pages: Site name to its pages as a reader sees them; None when only the network has them.
    """
    if all(question.gold is None for question in questions):
        return [
            "No question has 'gold', so the figures about evidence stay empty; add the exact words"
            " that answer it, and their page."
        ]
    checked = [
        (question, gold, visible)
        for question in questions
        if (visible := pages.get(question.site)) is not None
        for gold in question.gold or ()
    ]
    wrong = [(question, gold) for question, gold, visible in checked if not _stands(gold, visible)]
    if not wrong:
        return []
    question, gold = wrong[0]
    quote = gold.quote if len(gold.quote) <= _SHOWN_CHARS else gold.quote[:_SHOWN_CHARS] + "…"
    ids = ", ".join(dict.fromkeys(question.id for question, _ in wrong))
    return [
        f"{len(wrong)} of {len(checked)} gold quotations do not stand on the page they name and may"
        f" count as missed, for example of {question.id}: {quote!r} on {gold.page!r}."
        f" Check words and page of: {ids}."
    ]


def _stands(gold: Gold, visible: VisiblePages) -> bool:
    return any(visible.shows(passage.page, passage.quote) for passage in gold.passages)

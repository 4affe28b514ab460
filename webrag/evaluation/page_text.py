"""What a reader of a served folder of pages sees, and gold that is not on them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from selectolax.lexbor import LexborHTMLParser

from webrag.evaluation.metrics import comparison_key
from webrag.evaluation.questions import Gold, Question


class VisiblePages:
    """The pages of one folder, as text; each page is read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._keys: dict[Path, str] = {}

    def shows(self, url: str, quote: str) -> bool:
        """Tell whether the page shows these words, letters and digits compared."""
        path = self._root / unquote(urlsplit(url).path).lstrip("/")
        if path.is_dir():
            path /= "index.html"
        key = comparison_key(quote)
        return bool(key) and key in self._key(path)

    def _key(self, path: Path) -> str:
        if path not in self._keys:
            self._keys[path] = comparison_key(_visible_text(path)) if path.is_file() else ""
        return self._keys[path]


def _visible_text(path: Path) -> str:
    tree = LexborHTMLParser(path.read_bytes().decode("utf-8", errors="replace"))
    tree.strip_tags(["script", "style", "template", "noscript", "head"])
    return tree.body.text(deep=True) if tree.body else ""


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

"""Words the changes between two versions for a terminal."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from webrag.orchestration.version_comparison import (
    ChangeKind,
    VersionChange,
    VersionComparison,
)
from webrag.presentation.untrusted import clean_block, one_line

_MAX_CHARS: Final = 600
_TITLES: Final[Mapping[ChangeKind, str]] = {
    "reworded": "Reworded",
    "added": "Added",
    "removed": "Removed",
}
_MARKS: Final = {"same": ("", ""), "removed": ("[-", "-]"), "added": ("{+", "+}")}


def format_comparison(comparison: VersionComparison) -> str:
    """The changes, each with its passage and the address that opens it."""
    kinds = Counter(change.kind for change in comparison.changes)
    counts = ", ".join(f"{kinds[kind]} {kind}" for kind in _TITLES)
    head = f"{comparison.old} -> {comparison.new}: {counts}, {comparison.unchanged} unchanged."
    if not comparison.pages:
        return f"{head}\nNothing was found for the question in either version."
    parts = [head]
    for number, change in enumerate(comparison.changes, 1):
        parts.append(f"{number}. {_TITLES[change.kind]}\n{_body(change)}")
    return "\n\n".join(parts)


def _body(change: VersionChange) -> str:
    words = "".join(
        f" {before}{one_line(text, max_chars=_MAX_CHARS)}{after}"
        for kind, text in change.words
        for before, after in (_MARKS[kind],)
    )
    shown = [(change.old, "old"), (change.new, "new")]
    if words:
        lines = [f"  {words.strip()}"]
    else:
        texts = [clean_block(passage.text) for passage, _ in shown if passage is not None]
        cut = [e if len(e) <= _MAX_CHARS else f"{e[:_MAX_CHARS].rstrip()} ..." for e in texts]
        lines = [f"  {line}".rstrip() for text in cut for line in text.splitlines()]
    lines += [f"  {label}: {passage.link}" for passage, label in shown if passage is not None]
    return "\n".join(lines)

"""Tells admonitions and other callouts by the classes that site generators give them."""

from collections.abc import Iterable

from selectolax.lexbor import LexborNode

from webrag.ingestion.html.tree import attribute

__all__ = ["callout_label", "callout_sign"]

_WARNINGS = ("warning", "caution", "danger", "attention", "error")
_NOTES = ("note", "tip", "hint", "important", "info", "seealso", "success", "example")
_PLAIN_TAGS = ("div", "aside", "section", "p", "details")
_CALLOUT_CLASSES = frozenset(("admonition", "callout", "markdown-alert", "alert"))


def callout_label(node: LexborNode) -> str | None:
    """Kind of callout an element is, such as `note` or `warning`; None when it is none."""
    classes = [name.lower() for name in attribute(node, "class").split()]
    kinds = [kind for kind in _WARNINGS + _NOTES if _names_kind(classes, kind)]
    if _CALLOUT_CLASSES.intersection(classes):
        return kinds[0] if kinds else "note"
    plain = [kind for kind in kinds if kind in classes]
    return plain[0] if plain and node.tag in _PLAIN_TAGS else None


def _names_kind(classes: Iterable[str], kind: str) -> bool:
    return any(name == kind or name.endswith(f"-{kind}") for name in classes)


def callout_sign(label: str) -> str:
    """The sign that stands before a callout of this kind."""
    return "⚠️" if label in _WARNINGS else "ℹ️"  # noqa: RUF001

"""Reads a MathML element as LaTeX when the page gives it, else as plain text."""

from dataclasses import dataclass

from selectolax.lexbor import LexborNode

from webrag.ingestion.html.tree import attribute

__all__ = ["Formula", "formula_text"]

_TEX_ENCODINGS = ("application/x-tex", "tex", "latex", "application/x-latex")
_MAX_NESTING = 60


@dataclass(frozen=True)
class Formula:
    """One formula.

    Attributes:
        text: LaTeX, or something readable.
        is_latex: Which of the two.
    """

    text: str
    is_latex: bool


def formula_text(math: LexborNode) -> Formula:
    """Return a `<math>` element's formula: its TeX annotation, its alttext, or its own reading."""
    for annotation in math.css("annotation"):
        if attribute(annotation, "encoding").lower() in _TEX_ENCODINGS:
            latex = _plain_latex(annotation.text())
            if latex:
                return Formula(latex, is_latex=True)
    alternative = _plain_latex(attribute(math, "alttext"))
    if alternative:
        return Formula(alternative, is_latex=True)
    return Formula(" ".join(_read(math, 0).split()), is_latex=False)


def _plain_latex(source: str) -> str:
    """Wikipedia wraps every formula in a style command."""
    text = source.strip()
    for style in ("{\\displaystyle", "{\\textstyle"):
        if text.startswith(style) and text.endswith("}"):
            text = text[len(style) : -1].strip()
    return text


def _read(node: LexborNode, depth: int) -> str:
    if node.is_text_node:
        return node.text_content or ""
    if depth > _MAX_NESTING or node.tag in ("annotation", "annotation-xml"):
        return ""
    children = list(node.iter(include_text=False))
    parts = [_read(child, depth + 1).strip() for child in children]
    if not children:
        return node.text()
    return _arranged(node.tag or "", parts)


def _arranged(tag: str, parts: list[str]) -> str:
    if tag == "mfrac" and len(parts) == 2:
        return f"{_group(parts[0])}/{_group(parts[1])}"
    if tag in ("msup", "mover") and len(parts) == 2:
        return f"{parts[0]}^{_group(parts[1])}"
    if tag in ("msub", "munder") and len(parts) == 2:
        return f"{parts[0]}_{_group(parts[1])}"
    if tag in ("msubsup", "munderover") and len(parts) == 3:
        return f"{parts[0]}_{_group(parts[1])}^{_group(parts[2])}"
    if tag == "msqrt":
        return f"√{_group(' '.join(parts))}"
    if tag == "mroot" and len(parts) == 2:
        return f"{_group(parts[1])}√{_group(parts[0])}"
    if tag == "mtr":
        return ", ".join(parts) + ";"
    return " ".join(part for part in parts if part)


def _group(text: str) -> str:
    return text if len(text) <= 1 or text.isalnum() else f"({text})"

"""MathML to LaTeX: what its author wrote, or else the same formula as far as LaTeX has a form."""

from collections.abc import Callable

from selectolax.lexbor import LexborNode

from webrag.ingestion.html.formulas import latex_source

_OPERATORS = {
    "∑": r"\sum",
    "∏": r"\prod",
    "∫": r"\int",
    "∞": r"\infty",
    "≤": r"\le",
    "≥": r"\ge",
    "≠": r"\ne",
    "≈": r"\approx",
    "\u00d7": r"\times",
    "⋅": r"\cdot",
    "∈": r"\in",
    "→": r"\to",
    "∂": r"\partial",
    "\u2212": "-",
    "\u2061": "",
    "\u2062": "",
    "\u2063": ",",
}
_ACCENTS = {"^": r"\hat", "¯": r"\bar", "‾": r"\bar", "~": r"\tilde", "→": r"\vec", "˙": r"\dot"}


def math_to_latex(node: LexborNode) -> str:
    r"""LaTeX of a `<math>` element, in `$...$` or, for display formulas, `$$...$$`.

    The author's own source wins over a reconstruction.

    Returns:
        An empty string when the element shows nothing.
    """
    source = latex_source(node) or _row(node).strip()
    if not source:
        return ""
    fence = "$$" if node.attributes.get("display") == "block" else "$"
    return f"{fence}{source}{fence}"


def _parts(node: LexborNode) -> list[str]:
    return [_latex(child) for child in node.iter(include_text=False)]


def _row(node: LexborNode) -> str:
    return "".join(_parts(node)) or node.text(deep=False).strip()


def _group(part: str) -> str:
    return part if len(part) == 1 else "{" + part + "}"


def _fraction(parts: list[str]) -> str:
    return rf"\frac{{{parts[0]}}}{{{parts[1]}}}"


def _scripts(parts: list[str]) -> str:
    base, *scripts = parts
    lower, upper = scripts if len(scripts) == 2 else (scripts[0], "")
    return base + f"_{_group(lower)}" + (f"^{_group(upper)}" if upper else "")


def _over(parts: list[str]) -> str:
    base, mark = parts[:2]
    if mark in _ACCENTS:
        return f"{_ACCENTS[mark]}{{{base}}}"
    return f"{base}^{_group(mark)}"


_SHAPES: dict[str, tuple[int, Callable[[list[str]], str]]] = {
    "mfrac": (2, _fraction),
    "msup": (2, lambda parts: f"{parts[0]}^{_group(parts[1])}"),
    "msub": (2, _scripts),
    "munder": (2, _scripts),
    "msubsup": (3, _scripts),
    "munderover": (3, _scripts),
    "mover": (2, _over),
    "mroot": (2, lambda parts: rf"\sqrt[{parts[1]}]{{{parts[0]}}}"),
}


def _latex(node: LexborNode) -> str:
    tag = node.tag or ""
    if tag in ("annotation", "annotation-xml"):  # a second form, in another notation
        return ""
    if tag in ("mi", "mn", "mo", "mtext"):
        return _token(tag, node.text().strip())
    if tag in _SHAPES:
        wanted, shape = _SHAPES[tag]
        parts = _parts(node)
        return shape(parts) if len(parts) == wanted else "".join(parts)
    if tag == "msqrt":
        return rf"\sqrt{{{_row(node)}}}"
    if tag == "mtr":
        return " & ".join(_parts(node))
    if tag == "mtable":
        return r"\begin{matrix}" + r" \\ ".join(_parts(node)) + r"\end{matrix}"
    return _row(node)


def _token(tag: str, text: str) -> str:
    if tag == "mtext":
        return rf"\text{{{text}}}" if text else ""
    latex = _OPERATORS.get(text, text)
    return f"{latex} " if latex.startswith("\\") else latex

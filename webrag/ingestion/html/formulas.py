"""Replaces a page's formulas by their LaTeX source, or by plain text; it lays nothing out."""

from selectolax.lexbor import LexborNode

from webrag.ingestion.html.mathml import formula_text
from webrag.ingestion.html.tree import ancestors, attribute, drop, select

__all__ = ["rewrite_formulas"]

_PICTURES = "img.math, img.latex, img.tex, img.texImage, img.mwe-math-fallback-image-display"
_DRAWN = (
    ".MathJax_Preview, .MathJax:not(mjx-container), .MathJax_Display,"
    " .MathJax_SVG, .katex-html, mjx-math,"
    " .mwe-math-fallback-image-inline, .mwe-math-fallback-image-display"
)


def rewrite_formulas(body: LexborNode) -> None:
    """Replace MathML, MathJax and KaTeX by LaTeX between dollar signs, or by plain text.

    Must run before hidden elements are removed: pages hide the formula and show a picture.
    """
    for script in select(body, 'script[type^="math/tex"]'):
        is_block = "display" in attribute(script, "type")
        _replace(script, script.text_content or script.text(), is_block=is_block)
    for math in select(body, "math"):
        _rewrite_math(math)
    drop(select(body, _DRAWN))
    for picture in select(body, _PICTURES):
        source = attribute(picture, "alt").strip()
        if source:
            _replace(picture, source.strip("$"), is_block=False)


def _rewrite_math(math: LexborNode) -> None:
    source = formula_text(math)
    above = list(ancestors(math))[:4]
    is_block = attribute(math, "display") == "block" or any(
        "katex-display" in attribute(node, "class") for node in above
    )
    for node in above[:2]:
        # Wikipedia hides the MathML and shows an image of it.
        if node.tag in ("span", "div") and "display" in attribute(node, "style"):
            del node.attrs["style"]
    if source.is_latex:
        _replace(math, source.text, is_block=is_block)
    else:
        math.replace_with(source.text)


def _replace(node: LexborNode, latex: str, *, is_block: bool) -> None:
    text = " ".join(latex.split())
    node.replace_with(f"$${text}$$" if is_block else f"${text}$")

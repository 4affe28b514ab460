"""Replaces a page's formulas by the LaTeX it gives for them, or by plain text; it draws nothing."""

from selectolax.lexbor import LexborNode

from webrag.ingestion.html.mathml import latex_source, spelled_out
from webrag.ingestion.html.tree import ancestors, attribute, drop, select

__all__ = ["spell_out_formulas", "unveil_formulas"]

_PICTURES = "img.math, img.latex, img.tex, img.texImage, img.mwe-math-fallback-image-display"
_DRAWN = (
    ".MathJax_Preview, .MathJax:not(mjx-container), .MathJax_Display,"
    " .MathJax_SVG, .katex-html, mjx-math,"
    " .mwe-math-fallback-image-inline, .mwe-math-fallback-image-display"
)


def unveil_formulas(body: LexborNode) -> None:
    """Replace formulas by their LaTeX between dollar signs where the page has it.

    MathML without it stays as it is, but visible. Must run before hidden elements are removed:
    pages hide the formula and show a picture.
    """
    for script in select(body, 'script[type^="math/tex"]'):
        is_block = "display" in attribute(script, "type")
        _replace(script, script.text_content or script.text(), is_block=is_block)
    for math in select(body, "math"):
        _unveil(math)
    drop(select(body, _DRAWN))
    for picture in select(body, _PICTURES):
        source = attribute(picture, "alt").strip()
        if source:
            _replace(picture, source.strip("$"), is_block=False)


def spell_out_formulas(root: LexborNode) -> None:
    """Replace the MathML that is left by a line of text, as markdown has no form for it."""
    for math in select(root, "math"):
        math.replace_with(spelled_out(math))


def _unveil(math: LexborNode) -> None:
    source = latex_source(math)
    above = list(ancestors(math))[:4]
    is_block = attribute(math, "display") == "block" or any(
        "katex-display" in attribute(node, "class") for node in above
    )
    for node in above[:2]:
        # Wikipedia hides the MathML and shows an image of it.
        if node.tag in ("span", "div") and "display" in attribute(node, "style"):
            del node.attrs["style"]
    if source:
        _replace(math, source, is_block=is_block)
        return
    for name in math.attributes:
        del math.attrs[name]
    if is_block:
        math.attrs["display"] = "block"


def _replace(node: LexborNode, latex: str, *, is_block: bool) -> None:
    text = " ".join(latex.split())
    node.replace_with(f"$${text}$$" if is_block else f"${text}$")

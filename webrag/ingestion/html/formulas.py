"""Replaces a page's formulas by the LaTeX it gives for them, or by plain text; it draws nothing."""

from selectolax.lexbor import LexborNode

from webrag.ingestion.html.tree import ancestors, attribute, drop, select

_TEX_ENCODINGS = ("application/x-tex", "tex", "latex", "application/x-latex")
_MAX_NESTING = 60
# By element and number of its parts; the parts come plain first, then grouped.
_FORMS = {
    ("mfrac", 2): "{2}/{3}",
    ("mroot", 2): "{3}√{2}",
    **dict.fromkeys([("msup", 2), ("mover", 2)], "{0}^{3}"),
    **dict.fromkeys([("msub", 2), ("munder", 2)], "{0}_{3}"),
    **dict.fromkeys([("msubsup", 3), ("munderover", 3)], "{0}_{4}^{5}"),
}


def _latex_of(math: LexborNode) -> str:
    """The LaTeX that a `<math>` element was made from, as it says itself; "" when it does not."""
    told = (
        _plain_latex(annotation.text())
        for annotation in math.css("annotation")
        if attribute(annotation, "encoding").lower() in _TEX_ENCODINGS
    )
    return next(filter(None, told), "") or _plain_latex(attribute(math, "alttext"))


def _plain_latex(source: str) -> str:
    """Wikipedia wraps every formula in a style command; others bring their own dollar signs."""
    text = source.strip()
    sign = next((sign for sign in ("$$", "$") if _is_within(text, sign)), "")
    text = text.removeprefix(sign).removesuffix(sign).strip()
    for style in ("{\\displaystyle", "{\\textstyle"):
        if text.startswith(style) and text.endswith("}"):
            text = text[len(style) : -1].strip()
    return text


def _is_within(text: str, sign: str) -> bool:
    # After a backslash the last sign is a character.
    return (
        len(text) > 2 * len(sign)
        and text.startswith(sign)
        and text.endswith(sign)
        and not text.endswith(f"\\{sign}")
    )


def _read(node: LexborNode, depth: int) -> str:
    if node.is_text_node:
        return node.text_content or ""
    if node.tag in ("annotation", "annotation-xml"):
        return ""
    if depth > _MAX_NESTING:
        return node.text()
    parts = [
        _read(child, depth + 1).strip() for child in node.iter(include_text=True) if _shows(child)
    ]
    return _arranged(node.tag or "", parts)


def _shows(node: LexborNode) -> bool:
    # Blank text and comments stand between arguments.
    is_blank = node.is_text_node and (node.text_content or "").isspace()
    return not is_blank and node.tag != "-comment"


def _arranged(tag: str, parts: list[str]) -> str:
    if form := _FORMS.get((tag, len(parts))):
        return form.format(*parts, *map(_group, parts))
    if tag == "msqrt":
        return f"√{_group(' '.join(parts))}"
    if tag == "mtr":
        return ", ".join(parts) + ";"
    return " ".join(part for part in parts if part)


def _group(text: str) -> str:
    return text if len(text) <= 1 or text.isalnum() else f"({text})"


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
    """Replace the MathML that is left by one line: `a/(b + 1)`, `x^2`, `√y`; markdown has none."""
    for math in select(root, "math"):
        math.replace_with(" ".join(_read(math, 0).split()))


def _unveil(math: LexborNode) -> None:
    source = _latex_of(math)
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

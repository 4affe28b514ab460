"""What an HTML element is to a reader: hidden, a block, code, a footnote; it renders nothing."""

from collections.abc import Iterable

from selectolax.lexbor import LexborNode

from webrag.ingestion.html.tree import BLOCK_TAGS, attribute

__all__ = [
    "code_language",
    "definition_parts",
    "holds_blocks",
    "image_source",
    "is_footnote",
    "is_hidden",
    "tex_script",
]

_SKIPPED_TAGS = (
    "script style noscript template head meta link svg iframe object button input select "
    "textarea nav form"
)
_SKIPPED = frozenset(_SKIPPED_TAGS.split())
_BLOCKS = BLOCK_TAGS | {"caption", "hgroup", "html"}
_BLOCK_SELECTOR = ",".join(sorted(_BLOCKS))
_BACKLINK_CLASSES = frozenset(("footnote-backref", "footnote-back", "reversefootnote"))
_TEX_SCRIPT = "math/tex"


def is_hidden(node: LexborNode) -> bool:
    """Whether an element shows nothing, or nothing that is not there a second time."""
    if node.is_text_node:
        return False
    attributes = node.attributes
    if not node.is_element_node or (node.tag in _SKIPPED and not tex_script(node)):
        return True
    # Icons, and formulas that are there a second time for the eye.
    if attributes.get("aria-hidden") == "true" or _is_backlink(node):
        return True
    style = (attributes.get("style") or "").replace(" ", "").lower()
    return "hidden" in attributes or "display:none" in style or "visibility:hidden" in style


def holds_blocks(node: LexborNode) -> bool:
    """Whether a node starts a paragraph of its own, or holds one that does."""
    if node.is_text_node:
        return False
    if node.tag == "math":
        return node.attributes.get("display") == "block"
    return node.tag in _BLOCKS or node.css_first(_BLOCK_SELECTOR) is not None


def tex_script(node: LexborNode) -> str:
    """A formula as MathJax 2 keeps it; empty for every other element."""
    kind = attribute(node, "type").lower().split(";")
    if node.tag != "script" or kind[0].strip() != _TEX_SCRIPT:
        return ""
    fence = "$$" if len(kind) > 1 else "$"
    return f"{fence}{node.text().strip()}{fence}"


def _is_backlink(node: LexborNode) -> bool:
    classes = attribute(node, "class").split()
    return node.tag == "a" and not _BACKLINK_CLASSES.isdisjoint(classes)


def is_footnote(node: LexborNode) -> bool:
    """Whether an element is the text of a footnote."""
    return attribute(node, "role") == "doc-footnote"


def image_source(node: LexborNode) -> str:
    """Address of an image, also of one that scripts load later."""
    attributes = node.attributes
    first = (attributes.get("srcset") or "").split(",")[0].split()
    candidates = (attributes.get("src"), attributes.get("data-src"), first[0] if first else None)
    found = ((each or "").strip() for each in candidates)
    return next((each for each in found if each and not each.startswith("data:")), "")


def code_language(pre: LexborNode) -> str:
    """Language of a listing, as `rewrite_code` has marked it; empty when unknown."""
    code = pre.css_first("code")
    name = attribute(code if code is not None else pre, "class")
    return name.removeprefix("language-") if name.startswith("language-") else ""


def definition_parts(node: LexborNode) -> Iterable[LexborNode]:
    """The terms and definitions of a `<dl>`, in order."""
    for child in node.iter(include_text=False):
        if child.tag in ("dt", "dd"):
            yield child
        elif child.tag == "div":
            yield from (part for part in child.iter(include_text=False) if part.tag in ("dt", "dd"))

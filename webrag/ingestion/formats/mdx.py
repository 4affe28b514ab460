"""MDX as Markdown: what belongs to its programming goes, what its components hold stays."""

import re

_FENCE = re.compile(r"^([ \t]*(?:`{3,}|~{3,}))", re.MULTILINE)
_MODULE = re.compile(r"(?:^(?:import|export)[ \t][^\n]*\n(?:[ \t}\])][^\n]*\n)*)", re.MULTILINE)
_COMMENT = re.compile(r"\{/\*(?:[^*]|\*(?!/)){0,2000}+\*/\}")
_TAG = re.compile(r"^[ \t]*</?[A-Z][\w.]*(?:[ \t\n][^<>]*)?/?>[ \t]*$", re.MULTILINE)
_TITLED = re.compile(r"""\b(?:title|label|header|summary)=["']([^"'\n]{1,200})["']""")


def without_components(source: str) -> str:
    """Take away imports, exports, comments and the tags of components, outside fences.

    A component's title stays, as a paragraph of its own.
    """
    parts = _FENCE.split(f"{source}\n")
    text, fence = [], ""
    for part in parts:
        if _FENCE.fullmatch(part):
            mark = part.strip()
            if not fence:
                fence = mark
            elif mark.startswith(fence):
                fence = ""
            text.append(part)
        else:
            text.append(part if fence else _plain(part))
    return "".join(text)


def _plain(text: str) -> str:
    text = _COMMENT.sub("", _MODULE.sub("", text))
    return _TAG.sub(lambda tag: _title(tag[0]), text)


def _title(tag: str) -> str:
    found = _TITLED.search(tag)
    return f"\n**{found[1]}**\n" if found else "\n"

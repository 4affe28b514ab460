"""reStructuredText to HTML by docutils; nothing that a text names is opened."""

import io
import re
from functools import cache
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree, publish_from_doctree
from docutils.parsers.rst import Directive, directives, roles
from docutils.statemachine import StringList

_SETTINGS: dict[str, Any] = {
    "_disable_config": True,
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 5,
    "syntax_highlight": "none",
    "doctitle_xform": True,
    "sectsubtitle_xform": False,
    "embed_stylesheet": False,
    "stylesheet_path": "",
    "math_output": "LaTeX",
    "smart_quotes": False,
    "input_encoding": "unicode",
    "output_encoding": "unicode",
    "line_length_limit": 100_000,
}

# Directives of Sphinx and other builders whose content is not prose, and which is not shown.
_HIDDEN = frozenset(
    """autoclass autofunction automethod automodule autosummary contents currentmodule
    default-domain highlight include index literalinclude meta module only program sectionauthor
    tabularcolumns toctree""".split()  # noqa: SIM905
)
_CODE = frozenset({"code-block", "sourcecode", "ipython", "prompt", "testcode", "doctest"})
# What a builder writes before the argument of these.
_SAID = {
    "deprecated": "Deprecated since",
    "seealso": "See also",
    "versionadded": "Added in",
    "versionchanged": "Changed in",
    "versionremoved": "Removed in",
}
# Builders define such names elsewhere; the name says more than the bars around it.
_SUBSTITUTION = re.compile(r"\|([^|\n]{1,100}+)\|")


class _Unknown(Directive):
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = None

    def run(self) -> list[nodes.Node]:
        if self.name in _HIDDEN:
            return []
        if self.name in _CODE:
            text = "\n".join(_without_options(list(self.content)))
            block = nodes.literal_block(text, text)
            block["classes"] += ["code", *self.arguments[:1]]
            return [block]
        # A first paragraph right below belongs to the argument, as docutils sees it.
        given, _, begun = (self.arguments[0] if self.arguments else "").partition("\n")
        title = f"{_SAID.get(self.name, '')} {given}".strip()
        heading = [nodes.paragraph("", "", nodes.strong("", title))] if title else []
        held = nodes.container()
        lines = StringList([*_without_options(begun.splitlines()), "", *self.content], source="")
        self.state.nested_parse(lines, self.content_offset, held)
        return [*heading, *held.children]


def read_rst(source: str) -> tuple[str, str, str]:
    """Read a document: the whole page, its only top heading, and the date of its field list.

    What docutils does not know, such as Sphinx's directives and roles, is read as the text it
    holds. Includes and raw HTML are left out: neither may reach another file.
    """
    _know_everything()
    tree = publish_doctree(source, settings_overrides=_SETTINGS | {"warning_stream": io.StringIO()})
    for message in list(tree.findall(nodes.system_message)):
        message.parent.remove(message)
    for unknown in list(tree.findall(nodes.problematic)):
        unknown.replace_self(nodes.inline("", _named(unknown.astext())))
    for literal in tree.findall(nodes.literal):
        # Otherwise written as a span, which is no code to a reader.
        literal["classes"] = ["code"]
    page = publish_from_doctree(
        tree,
        writer="html5",
        settings_overrides=_SETTINGS | {"warning_stream": io.StringIO()},
    )
    date = next((node.astext() for node in tree.findall(nodes.date)), "")
    return str(page), _named(str(tree.get("title") or "")), date


def _named(text: str) -> str:
    return _SUBSTITUTION.sub(r"\1", text)


def _without_options(lines: list[str]) -> list[str]:
    while lines and lines[0].startswith(":"):
        lines = lines[1:]
    return lines


@cache
def _know_everything() -> None:
    """Make docutils ask here for every name that it does not know itself."""
    known = directives.directive

    def directive(name: str, language: Any, document: Any) -> Any:
        found, messages = known(name, language, document)
        return (found, messages) if found else (_Unknown, [])

    def role(name: str, language: Any, line: int, reporter: Any) -> Any:
        found, messages = known_role(name, language, line, reporter)
        return (found, messages) if found else (_text_role, [])

    known_role = roles.role
    # docutils offers no other way to learn of unknown names; Sphinx does the same.
    directives.directive = directive  # type: ignore[assignment]
    roles.role = role  # type: ignore[assignment]
    for name in (*_CODE, *_HIDDEN):
        directives.register_directive(name, _Unknown)


def _text_role(
    name: str, rawtext: str, text: str, *_: Any, **__: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    shown, bracket = text.partition("<")[:2]
    words = shown.strip() if bracket and text.endswith(">") else text.lstrip("~!")
    if name in {"doc", "ref", "term", "numref", "any"}:
        return [nodes.inline(rawtext, words)], []
    return [nodes.literal(rawtext, words)], []

"""Tells the kinds of files by their names; it opens none."""

import re
from pathlib import PurePath
from typing import Final, Literal

FileKind = Literal[
    "html", "markdown", "text", "pdf", "rst", "asciidoc", "notebook", "code", "mail", "office"
]

_ENDINGS: Final[dict[str, FileKind]] = {
    **dict.fromkeys(("html", "htm", "xhtml"), "html"),
    **dict.fromkeys(("md", "markdown", "mdown", "mdx", "qmd"), "markdown"),
    **dict.fromkeys(("txt", "text"), "text"),
    **dict.fromkeys(("rst", "rest"), "rst"),
    **dict.fromkeys(("adoc", "asciidoc"), "asciidoc"),
    **dict.fromkeys(("docx", "epub", "msg", "odp", "ods", "odt", "pptx", "xlsx"), "office"),
    "eml": "mail",
    "ipynb": "notebook",
    "pdf": "pdf",
}

# The name that fences give a language, and the endings of its files.
_LANGUAGES: Final = """
bash bash sh zsh|c c h|clojure clj|cmake cmake|cpp cc cpp cxx hh hpp hxx|csharp cs|css css scss|
csv csv tsv|dart dart|diff diff patch|elixir ex exs|erlang erl|fish fish|fortran f90|
fsharp fs|go go|graphql gql graphql|groovy gradle groovy|haskell hs|hcl hcl tf|ini cfg conf ini|
java java|javascript cjs js jsx mjs|json json json5 jsonc|julia jl|kotlin kt kts|lisp el lisp|
lua lua|make mk|nim nim|nix nix|objectivec mm|ocaml ml mli|perl pl pm|php php|
powershell ps1|properties properties|protobuf proto|python py pyi|r r|ruby rb|rust rs|
scala sc scala|scheme scm|solidity sol|sql sql|svelte svelte|swift swift|toml toml|
typescript cts mts ts tsx|vb vb|vim vim|vue vue|xml xml xsd xsl|yaml yaml yml|zig zig
"""
_LANGUAGE_OF: Final = {
    ending: words[0]
    for row in _LANGUAGES.replace("\n", "").split("|")
    for words in [row.split()]
    for ending in words[1:]
}
_PLAIN_NAMES: Final = frozenset(
    """authors changelog changes contributing contributors copying copyright history install
    installing license licence maintainers news notice readme thanks todo upgrading""".split()  # noqa: SIM905
)
_CODE_NAMES: Final = {"dockerfile": "dockerfile", "makefile": "make", "justfile": "make"}
# They dress web pages and say nothing; named themselves they are read.
_DRESS: Final = frozenset({"cjs", "css", "js", "mjs", "scss"})
_GENERATED: Final = re.compile(
    r"(?:\.min\.(?:js|css)|[.-]lock(?:\.(?:json|yaml))?|\.lockb|\.snap|\bsearchindex\.js)\Z"
)


def kind_of_name(name: str) -> FileKind | None:
    """Give the kind that a file of this name is read as; None when the name does not say."""
    lower = name.lower()
    ending = PurePath(lower).suffix[1:]
    # Sphinx publishes what its pages are made of as `page.rst.txt`.
    within = _ENDINGS.get(PurePath(PurePath(lower).stem).suffix[1:]) if ending == "txt" else None
    if within in ("markdown", "rst"):
        return within
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    if ending in _LANGUAGE_OF or lower in _CODE_NAMES:
        return "code"
    return "text" if not ending and lower in _PLAIN_NAMES else None


def why_left_out(name: str) -> str | None:
    """Say why a folder's file of this name is not read, as a clause; None when it is.

    A file that is named itself is read whatever it is called, as long as it holds text.
    """
    if name.startswith("."):
        return "hidden"
    if _GENERATED.search(name.lower()):
        return "generated"
    if PurePath(name.lower()).suffix[1:] in _DRESS:
        return "scripts and style sheets"
    return None if kind_of_name(name) else "of a kind that is not read"


def code_language(name: str) -> str:
    """Give the name of a file's language for fences; empty when that is not known."""
    lower = name.lower()
    return _CODE_NAMES.get(lower) or _LANGUAGE_OF.get(PurePath(lower).suffix[1:], "")

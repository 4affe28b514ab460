"""Jupyter notebooks as Markdown: their prose, their code, and what it printed."""

import json
import re
from typing import Any

from webrag.ingestion.characters import storable
from webrag.ingestion.formats.markdown import fenced

_OUTPUT_CHARS = 2_000
_NAME = re.compile(r"[\w+#-]{1,20}")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def markdown_from_notebook(source: str) -> str:
    """The cells in their order, or ValueError; an output of more than 2,000 characters is cut.

    Pictures and HTML of outputs are left out, as is everything in a cell's metadata.
    """
    try:
        notebook = json.loads(source)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(notebook, dict):
        raise ValueError("it is no notebook")  # noqa: TRY004 - as what is no JSON
    cells = notebook.get("cells")
    match notebook.get("worksheets"):
        case [{"cells": older}, *_] if not isinstance(cells, list):
            cells = older
    if not isinstance(cells, list):
        raise ValueError("it has no cells")  # noqa: TRY004 - as what is no JSON
    language = _language(notebook)
    parts = [part for cell in cells if isinstance(cell, dict) for part in _cell(cell, language)]
    return storable("\n\n".join(parts))


def _cell(cell: dict[str, Any], language: str) -> list[str]:
    text = _text(cell.get("source", cell.get("input"))).strip("\n")
    match cell.get("cell_type"):
        case "markdown":
            return [text]
        case "heading":
            level = cell.get("level")
            return [f"{'#' * min(max(level, 1), 6) if isinstance(level, int) else '#'} {text}"]
        case "code":
            outputs = cell.get("outputs")
            printed = [_output(each) for each in outputs] if isinstance(outputs, list) else []
            shown = "\n".join(filter(None, printed)).strip("\n")
            if len(shown) > _OUTPUT_CHARS:
                shown = f"{shown[:_OUTPUT_CHARS].rstrip()}\n[...]"
            blocks = ((text, language), (shown, ""))
            return [fenced(held, mark) for held, mark in blocks if held.strip()]
    return []


def _output(output: Any) -> str:
    if not isinstance(output, dict):
        return ""
    if output.get("output_type") in ("error", "pyerr"):
        return f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
    data = output.get("data")
    plain = data.get("text/plain") if isinstance(data, dict) else output.get("text")
    return _ANSI.sub("", _text(plain)).rstrip("\n")


def _language(notebook: dict[str, Any]) -> str:
    match notebook:
        case {"metadata": {"language_info": {"name": str(name)}}} if _NAME.fullmatch(name):
            return name
    return "python"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""

"""Says how to install an extra of WebRAG from where the user stands."""

import json
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname


def how_to_install(extra: str) -> str:
    """Give the command that brings an extra, for the hint of an error.

    A clone's own environment is synchronised; another one is installed once more from what it was
    made of, which no package index has.

    Args:
        extra: A name in `[project.optional-dependencies]`.
    """
    origin = _origin()
    url, folder = origin.get("url", ""), origin.get("dir_info")
    clone = Path(url2pathname(urlsplit(url).path))
    if folder is not None and Path(sys.prefix).parent == clone:
        return f"Run `uv sync --inexact --extra {extra}` in {clone}."
    if folder is not None and folder.get("editable"):
        return f"Run `pip install -e '{clone}[{extra}]'`."
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}"
    return f"Run `pip install 'webrag[{extra}]{url and f' @ {url}'}'`."


def _origin() -> dict[str, Any]:
    """Read what WebRAG was installed from (PEP 610); empty when an index had it."""
    try:
        told = distribution("webrag").read_text("direct_url.json")
    except PackageNotFoundError:
        told = None
    return dict(json.loads(told or "{}"))

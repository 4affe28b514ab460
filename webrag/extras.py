"""Says how to install an extra of WebRAG from where the user stands."""

import json
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname


def how_to_install(extra: str) -> str:
    """Give the command that brings an extra, for the hint of an error.

    The program that installed WebRAG installs it once more, whatever the PATH has: uv's
    environments have no pip. A clone's own environment is synchronised; another one is told what
    WebRAG was made of, which no package index has.
    """
    origin, is_uvs = json.loads(_told("direct_url.json") or "{}"), _told("INSTALLER") == "uv"
    url, folder = origin.get("url", ""), origin.get("dir_info")
    clone = Path(url2pathname(urlsplit(url).path))
    if folder is not None and is_uvs and Path(sys.prefix).parent == clone:
        return f"Run `uv sync --inexact --extra {extra}` in {clone}."
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}"
    wanted = [f"webrag[{extra}]{url and f' @ {url}'}"]
    if folder is not None and folder.get("editable"):
        wanted = ["-e", f"{clone}[{extra}]"]
    python = sys.executable
    pip = ["uv", "pip", "install", "-p", python] if is_uvs else [python, "-m", "pip", "install"]
    return f"Run `{shlex.join([*pip, *wanted])}`."


def _told(name: str) -> str:
    """Read what an installer wrote about WebRAG (PEP 376, PEP 610); "" for nothing."""
    try:
        return (distribution("webrag").read_text(name) or "").strip()
    except PackageNotFoundError:
        return ""

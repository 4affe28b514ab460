"""What a reader of a served folder of pages sees, for checking that quotations are on the page."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from selectolax.lexbor import LexborHTMLParser

from webrag.evaluation.metrics import comparison_key

__all__ = ["VisiblePages"]


class VisiblePages:
    """The pages of one folder, as text; each page is read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._keys: dict[Path, str] = {}

    def shows(self, url: str, quote: str) -> bool:
        """Tell whether the page shows these words, letters and digits compared."""
        path = self._root / unquote(urlsplit(url).path).lstrip("/")
        if path.is_dir():
            path /= "index.html"
        key = comparison_key(quote)
        return bool(key) and key in self._key(path)

    def _key(self, path: Path) -> str:
        if path not in self._keys:
            self._keys[path] = comparison_key(_visible_text(path)) if path.is_file() else ""
        return self._keys[path]


def _visible_text(path: Path) -> str:
    tree = LexborHTMLParser(path.read_bytes().decode("utf-8", errors="replace"))
    tree.strip_tags(["script", "style", "template", "noscript", "head"])
    return tree.body.text(deep=True) if tree.body else ""

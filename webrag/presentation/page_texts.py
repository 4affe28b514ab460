"""A stored page or passage as text for a model, within a token budget."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from webrag.presentation.frames import frame_notice, framed
from webrag.presentation.untrusted import one_line

if TYPE_CHECKING:
    from webrag.indexing.page_texts import PageText, PassageText

__all__ = ["format_page", "format_passage", "page_uri", "passage_uri"]

_TITLE_CHARS = 160


def page_uri(document_id: object) -> str:
    """Stable address of a stored page, for MCP clients."""
    return f"webrag://page/{document_id}"


def passage_uri(passage_id: object) -> str:
    """Stable address of a passage of a stored page, for MCP clients."""
    return f"webrag://passage/{passage_id}"


def format_page(
    page: "PageText", *, token_budget: int, count_tokens: Callable[[str], int], nonce: str
) -> str:
    """The whole page; a long one ends where the budget does, and says so."""
    head = [_title(page.title), f"URL: {page.url}", _state(page)]
    shown = page.markdown
    text = _text(head, shown, nonce)
    while shown and count_tokens(text) > token_budget:
        shown = shown[: int(len(shown) * min(0.95, token_budget / count_tokens(text)))]
        cut = (
            f"Shown: chars 0-{len(shown)} of {len(page.markdown):,}; the response budget ends "
            "there. `search` with source_urls finds what is further down."
        )
        text = _text([*head, cut], shown, nonce)
    return text


def format_passage(passage: "PassageText", *, nonce: str) -> str:
    """One passage with its address, offsets and heading."""
    heading = one_line(passage.heading or "", max_chars=_TITLE_CHARS)
    head = [
        _title(passage.title) + (f" § {heading}" if heading else ""),
        f"URL: {passage.url}",
        _state(passage),
        f"Chars {passage.char_start}-{passage.char_end} of {page_uri(passage.document_id)}",
    ]
    return _text(head, passage.text, nonce)


def _text(head: list[str], text: str, nonce: str) -> str:
    return "\n".join([*head, "", frame_notice(nonce), "", framed(text, nonce)])


def _title(title: str | None) -> str:
    return f"Title: {one_line(title or '', max_chars=_TITLE_CHARS) or 'Untitled'}"


def _state(stored: "PageText | PassageText") -> str:
    gone = "" if stored.gone_at is None else f", gone since {stored.gone_at:%Y-%m-%d %H:%M} UTC"
    return f"Fetched: {stored.fetched_at:%Y-%m-%d %H:%M} UTC{gone}"

"""Templates as responses: nothing of a page is markup, nothing is loaded from elsewhere."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from webrag.crawling.report import MOST_PAGES, USUAL_PAGES
from webrag.presentation.reports import counted, site_name
from webrag.presentation.untrusted import clean_block, one_line

FRAGMENT_HEADER: Final = "x-webrag-fragment"
"""Sent by the script, which wants the inner part of a page only."""

# Forms of a page without a referrer would bear the origin `null`, which is refused.
HEADERS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_NONCE_BYTES: Final = 16
# The script sets it, so that a page comes in its colours at once.
_THEME_COOKIE: Final = "webrag_theme"
_THEMES: Final = ("light", "dark")


def content_policy(nonce: str) -> str:
    """Let a browser load and run what bears the nonce, and nothing of another host."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'nonce-{nonce}'",
            f"style-src 'nonce-{nonce}'",
            "connect-src 'self'",
            "img-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )


class Templates:
    """Renders the templates of this package, each of which knows `shown`."""

    def __init__(self, **shown: Any) -> None:
        self._shown = shown
        self._secret = secrets.token_bytes(32)

    def page(
        self, request: Request, name: str, *, owner: str, status_code: int = 200, **values: Any
    ) -> HTMLResponse:
        """A whole page, or for the page's own script its inner part."""
        nonce = secrets.token_urlsafe(_NONCE_BYTES)
        is_fragment = FRAGMENT_HEADER in request.headers
        theme = request.cookies.get(_THEME_COOKIE, "")
        html = (
            _environment()
            .get_template(name)
            .render(
                base="fragment.html" if is_fragment else "layout.html",
                nonce=nonce,
                csrf=self.csrf_token(owner),
                path=request.url.path,
                theme=theme if theme in _THEMES else "",
                **{**self._shown, **values},
            )
        )
        headers = {**HEADERS, "Content-Security-Policy": content_policy(nonce)}
        return HTMLResponse(html, status_code=status_code, headers=headers)

    def csrf_token(self, owner: str) -> str:
        """Make the mark of this server's forms, which no page of another origin can know."""
        return self._mac(f"form {owner}")

    def signed(self, text: str) -> str:
        """A text as a cookie that nobody else can make."""
        return f"{text}.{self._mac(f'signed {text}')}"

    def read_signed(self, cookie: str) -> str | None:
        """The text of such a cookie; None when it is none of this server's."""
        text = cookie.rpartition(".")[0]
        is_ours = hmac.compare_digest(cookie.encode(), self.signed(text).encode())
        return text if is_ours else None

    def is_own(self, token: str, owner: str) -> bool:
        """Compare with the token of `owner`."""
        return hmac.compare_digest(token.encode(), self.csrf_token(owner).encode())

    def _mac(self, text: str) -> str:
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("webrag.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"usual_pages": USUAL_PAGES, "most_pages": MOST_PAGES}
    environment.filters |= {
        "line": lambda text, max_chars=200: one_line(text or "", max_chars=max_chars),
        "block": clean_block,
        "day": lambda moment: f"{moment:%Y-%m-%d}" if moment else "",
        "count": counted,
    }
    environment.filters |= {"site": site_name}
    return environment

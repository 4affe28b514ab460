"""Every error WebRAG raises on purpose; it does not decide how one is shown.

WebRAGError
├── InputError                 the caller's value cannot be used; change it and call again
├── ConfigurationError         a setting is wrong, or contradicts the corpus it is used with
├── FetchError                 a page could not be obtained; nothing was stored
│   ├── RefusedAddressError    the address is private, special or not allowed to be contacted
│   ├── RobotsDisallowedError  the site's robots.txt forbids the page
│   ├── PageGoneError          the site says the page does not exist (404, 410)
│   ├── SourceUnavailableError the page source itself failed; other pages will fail as well
│   └── UnusablePageError      the answer is not a readable page (binary, empty, too large)
├── ProviderError              an embedding, reranking or language model service failed
├── StorageError               the database refused or lost an operation
│   └── DatabaseUnavailableError  the database cannot be reached or started
├── GuardrailsViolationError   a question, its evidence or its answer may not go any further
├── AccessDeniedError          the caller may not do that, or not now
└── DeadlineError              the work did not finish in its time
"""

import json
import shlex
import sys
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from webrag.redaction import redacted_message


class WebRAGError(Exception):
    """Base of every error below; catch it to handle anything WebRAG reports.

    Neither message nor hint holds a secret that WebRAG was given, whoever repeated it.

    Attributes:
        hint: What the user can do about it, one sentence, or None.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(redacted_message(message))
        self.hint = None if hint is None else redacted_message(hint)


class InputError(WebRAGError):
    """Catch it to ask the caller for another value; the message names it and what is allowed."""


class ConfigurationError(WebRAGError):
    """Catch it at start-up; the message names the setting, its value and what is allowed."""


class FetchError(WebRAGError):
    """Catch it to go on without a page.

    Attributes:
        url: The address that was asked for.
        status: HTTP status of the answer, None when there was no answer.
        host: What would have to be allowed, as the command line takes it; None where nothing can.
        kind: What makes a page unusable, one word; "" for nothing that has a name.
        alternative_url: Where the page says that another version of it can be read.
    """

    def __init__(
        self,
        message: str,
        *,
        url: str,
        status: int | None = None,
        hint: str | None = None,
        host: str | None = None,
        kind: str = "",
        alternative_url: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.url = url
        self.status = status
        self.host = host
        self.kind = kind
        self.alternative_url = alternative_url


class RefusedAddressError(FetchError):
    """Catch it to tell an unsafe address from an unreachable one."""


class RobotsDisallowedError(FetchError):
    """Catch it to respect a site's wish; asking again will not help."""


class PageGoneError(FetchError):
    """Catch it to mark a stored page as gone."""


class SourceUnavailableError(FetchError):
    """Catch it to try another page source: nothing is known about the page itself."""


class UnusablePageError(FetchError):
    """Catch it to report that the page exists but holds nothing that can be indexed.

    Its `kind` is `bot_wall`, `login_wall`, `cookie_wall`, `script_shell`, `soft_404`,
    `too_little_text`, `empty`, `not_text`, `too_large`, `endless_redirect`, `unsafe_markup`,
    `encrypted`, `scanned`, `damaged`, `unexpected`, `given_up` or `login_expired`.
    """


class ProviderError(WebRAGError):
    """Catch it to degrade to a local method.

    Attributes:
        provider: Name of the service that failed.
        status: HTTP status, None when there was no answer.
    """

    def __init__(
        self, message: str, *, provider: str, status: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.provider = provider
        self.status = status


class StorageError(WebRAGError):
    """Catch it when a write or a read failed; what was committed before is intact."""


class DatabaseUnavailableError(StorageError):
    """Catch it to tell the user how to start or reach the database."""


class GuardrailsViolationError(WebRAGError):
    """Catch it to show `safe_reply` in the place of an answer; the answer manager does so itself.

    Attributes:
        stage: Where it was raised: `input`, `retrieval` or `output`.
        reason: What was wrong, for logs; never shown to the user.
        safe_reply: What the user may be told.
    """

    def __init__(
        self, stage: Literal["input", "retrieval", "output"], reason: str, safe_reply: str
    ) -> None:
        super().__init__(f"The {stage} was refused: {reason}")
        self.stage: Literal["input", "retrieval", "output"] = stage
        self.reason = reason
        self.safe_reply = safe_reply


class AccessDeniedError(WebRAGError):
    """Catch it to refuse what a caller may not do, or has done often enough for now."""


class DeadlineError(WebRAGError):
    """Catch it to return what is there so far."""


def how_to_install(extra: str) -> str:
    """Give the command that brings an extra, for the hint of an error.

    The program that installed WebRAG installs it once more, whatever the PATH has: uv's
    environments have no pip. A clone's own environment is synchronised; another one is told what
    WebRAG was made of, which no package index has.
    """
    from urllib.request import url2pathname  # takes 20 ms to load

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


def file_trouble(error: Exception) -> str:
    """Say in the system's words why a file cannot be used, without its path and number."""
    return (getattr(error, "strerror", None) or str(error)).rstrip(".")


def _told(name: str) -> str:
    """Read what an installer wrote about WebRAG (PEP 376, PEP 610); "" for nothing."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return (distribution("webrag").read_text(name) or "").strip()
    except PackageNotFoundError:
        return ""

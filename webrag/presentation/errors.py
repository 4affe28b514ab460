"""Failures as text that tells a model what went wrong and not to answer from memory."""

from webrag.errors import (
    AccessDeniedError,
    ConfigurationError,
    DeadlineError,
    FetchError,
    InputError,
    PageGoneError,
    ProviderError,
    RefusedAddressError,
    RobotsDisallowedError,
    StorageError,
    UnusablePageError,
    WebRAGError,
)
from webrag.ingestion.metering import PageLimitError
from webrag.presentation.untrusted import one_line

__all__ = ["failure_text", "input_error_text", "timeout_text"]

_CLOSING = (
    "Please inform the user of this error. Do not attempt to answer from memory: the tool was "
    "called because specific source material was needed."
)
_REFUSED = "Only public addresses are contacted, and hosts in WEBRAG_ALLOW_HOSTS."
_CAUSES: tuple[tuple[type[WebRAGError], str], ...] = (
    (PageGoneError, "The address may be mistyped, or the page may have moved."),
    (RobotsDisallowedError, "The site does not want this page to be read by programs."),
    (UnusablePageError, "Try a page with readable text: HTML, Markdown or plain text."),
    (PageLimitError, "Whoever runs the server limits what one caller may fetch."),
    (FetchError, "The site may be down or slow; try again later or name another page."),
    (ProviderError, "An external service may be unavailable; try again later."),
    (StorageError, "The database may be stopped, full or unreachable; the server log says more."),
    (ConfigurationError, "A setting has to be changed by whoever runs the server."),
    (DeadlineError, "Try again, or name a more specific page."),
)
_UNEXPECTED = (
    "The knowledge retrieval service was unable to complete this query. Possible causes:\n"
    "- The URL may be unreachable or return an error.\n"
    "- An external API (embedding, reranker) may be temporarily unavailable.\n"
    "- The database connection may have failed."
)


def input_error_text(error: InputError | AccessDeniedError) -> str:
    """The one sentence that says what to change or wait for, and the hint when there is one."""
    return _with_hint(error)


def failure_text(error: BaseException) -> str:
    """What went wrong, why it may have, and what to tell the user.

    The message of an unexpected exception is left out: it may hold paths or secrets.
    """
    if isinstance(error, RefusedAddressError):
        # As for other input that is not taken: nothing broke, and another address helps.
        text = _with_hint(error)
        return text if "WEBRAG_ALLOW_HOSTS" in text else f"{text} {_REFUSED}"
    details = "An unexpected error occurred; the server log holds the details."
    causes = _UNEXPECTED
    if isinstance(error, WebRAGError):
        details = _with_hint(error)
        causes = next((text for kind, text in _CAUSES if isinstance(error, kind)), _UNEXPECTED)
    return (
        "[ERROR]\n"
        "WebRAG encountered an error during retrieval.\n\n"
        f"Error type: {type(error).__name__}\n"
        f"Details: {details}\n\n"
        f"{causes}\n\n{_CLOSING}"
    )


def timeout_text(seconds: float) -> str:
    """What a call that took too long may have met, and how to make it shorter."""
    return (
        "[ERROR]\n"
        f"WebRAG timed out after {seconds:g}s.\n\n"
        "The orchestration pipeline did not complete within the allowed time. "
        "This may indicate:\n"
        "- A very large page requiring extensive indexing.\n"
        "- Many expansion iterations with slow external APIs.\n"
        "- Network latency to external services.\n\n"
        "What was indexed until then is kept. Suggestion: repeat the call, retry with "
        "expansion_budget=0 to skip expansion, or try a more specific URL."
    )


def _with_hint(error: WebRAGError) -> str:
    message = one_line(str(error), max_chars=1000)
    return f"{message} {one_line(error.hint, max_chars=400)}" if error.hint else message

"""What a failed call of an embedding service means, and whether to call again; calls nothing."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from webrag.errors import ProviderError
from webrag.ingestion.http.status import retry_after_s
from webrag.redaction import redacted_failure

__all__ = ["PassingError", "ServiceName", "refused", "unreachable", "unusable"]

_RETRIED = frozenset({408, 409, 425, 429})
_MOST_DETAIL = 200
_REFUSALS = {
    401: "refused the key",
    402: "wants payment for the account of this key",
    403: "refused the key",
    404: "knows no such model or address",
    413: "finds the request too large",
}
# What these answer may repeat the key, in full or in part.
_ABOUT_THE_KEY = frozenset({401, 403})


class ServiceName(NamedTuple):
    """How a service is called in messages.

    Attributes:
        model: Name of the model.
        host: Host and port.
    """

    model: str
    host: str


class PassingError(ProviderError):
    """A failure that another request may not meet.

    Attributes:
        asked_pause_s: Seconds for which the service wants to be left alone.
    """

    asked_pause_s = 0.0


def refused(
    service: ServiceName, status: int, body: Any, headers: Mapping[str, str]
) -> ProviderError:
    """The error for an answer with an HTTP status that is not 200."""
    detail = "" if status in _ABOUT_THE_KEY else _detail(body)
    kind: type[ProviderError] = ProviderError
    hint = "Check EMBEDDING_PROVIDER, EMBEDDING_MODEL and EMBEDDING_BASE_URL."
    if _is_quota(body):
        what, hint = "has no quota left for this key", "Check plan and billing of the account."
    elif status == 429:
        kind, what = PassingError, "refused the request because of its rate limit"
        hint = "Wait a little, then try again."
    elif status >= 500 or status in _RETRIED:
        kind, what, hint = PassingError, "failed", "Try again later."
    else:
        what = _REFUSALS.get(status, "refused the request")
    if status in _ABOUT_THE_KEY:
        hint = "Check EMBEDDING_API_KEY or OPENAI_API_KEY."
    if headers.get("x-should-retry") == "false":
        kind = ProviderError
    error = _error(service, f"{what} (HTTP {status}){detail}", status=status, hint=hint, kind=kind)
    if isinstance(error, PassingError):
        error.asked_pause_s = _asked_pause_s(headers)
    return error


def unreachable(service: ServiceName, error: Exception) -> ProviderError:
    """The error for a service that gave no answer."""
    reason = error.__cause__ or error
    text = redacted_failure(str(reason)).strip().rstrip(".") or type(reason).__name__
    return _error(
        service,
        f"could not be reached or broke the call off ({text[:_MOST_DETAIL]})",
        hint="Check EMBEDDING_BASE_URL and that the server runs.",
        kind=PassingError,
    )


def unusable(service: ServiceName, what: str) -> ProviderError:
    """The error for an answer that cannot be used; `what` follows "answered with"."""
    return _error(
        service,
        f"answered with {what}",
        hint="Check that EMBEDDING_BASE_URL is the address of an embedding server.",
    )


def _error(
    service: ServiceName,
    what: str,
    *,
    status: int | None = None,
    hint: str,
    kind: type[ProviderError] = ProviderError,
) -> ProviderError:
    message = f"The embedding model {service.model} at {service.host} {what}."
    return kind(message, provider=service.model, status=status, hint=hint)


def _asked_pause_s(headers: Mapping[str, str]) -> float:
    milliseconds = headers.get("retry-after-ms", "")
    if milliseconds.isascii() and milliseconds.isdigit():
        return int(milliseconds) / 1000
    return retry_after_s(headers.get("retry-after")) or 0.0


def _is_quota(body: Any) -> bool:
    error = body.get("error", body) if isinstance(body, dict) else {}
    return isinstance(error, dict) and "insufficient_quota" in (
        error.get("code"),
        error.get("type"),
    )


def _detail(body: Any) -> str:
    """What the service says for itself, on one line and without the key."""
    if isinstance(body, dict):
        error = body.get("error", body)
        said = error.get("message") if isinstance(error, dict) else error
        body = said if isinstance(said, str) else json.dumps(body)
    text = " ".join(str(body or "").split())
    text = redacted_failure(text)
    return f": {text[:_MOST_DETAIL].rstrip('.')}" if text and not text.startswith("<") else ""

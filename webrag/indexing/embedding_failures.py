"""What a failed call of an embedding service means, and whether to call again; calls nothing."""

import json
import random
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from webrag.errors import ProviderError
from webrag.ingestion.http.status import retry_after_s
from webrag.redaction import redacted_failure

__all__ = ["Attempts", "ServiceName", "refused", "unreachable", "unusable"]

_MOST_ATTEMPTS = 4
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


class Attempts:
    """The requests of one call: counted, spaced with full jitter, and within a deadline.

    Args:
        deadline: `time.monotonic` value at which the call is given up.
        backoff_s: Longest pause before the second request; doubled for each further one.
    """

    def __init__(self, deadline: float, backoff_s: float) -> None:
        self._deadline = deadline
        self._backoff_s = backoff_s
        self._made = 0

    def pause_after(self, failure: ProviderError, headers: Mapping[str, str]) -> float:
        """Seconds to wait before the next request.

        Args:
            failure: Of the last request.
            headers: Of its answer, names in lower case.

        Raises:
            ProviderError: The failure itself, where another request is of no use or too late.
        """
        self._made += 1
        longest = self._backoff_s * 2 ** (self._made - 1)
        pause = random.uniform(0, longest) + _asked_pause_s(headers)  # noqa: S311
        is_in_time = time.monotonic() + pause < self._deadline
        wanted = _is_passing(failure) and headers.get("x-should-retry") != "false"
        if not (wanted and is_in_time and self._made < _MOST_ATTEMPTS):
            raise failure
        return pause


class _PassingError(ProviderError):
    """A failure that another request may not meet."""


def refused(service: ServiceName, status: int, body: Any) -> ProviderError:
    """The error for an answer with an HTTP status that is not 200."""
    detail = "" if status in _ABOUT_THE_KEY else _detail(body)
    kind = ProviderError
    hint = "Check EMBEDDING_PROVIDER, EMBEDDING_MODEL and EMBEDDING_BASE_URL."
    if _is_quota(body):
        what, hint = "has no quota left for this key", "Check plan and billing of the account."
    elif status == 429:
        kind, what = _PassingError, "refused the request because of its rate limit"
        hint = "Wait a little, then try again."
    elif status >= 500 or status in _RETRIED:
        kind, what, hint = _PassingError, "failed", "Try again later."
    else:
        what = _REFUSALS.get(status, "refused the request")
    if status in _ABOUT_THE_KEY:
        hint = "Check EMBEDDING_API_KEY or OPENAI_API_KEY."
    return _error(service, f"{what} (HTTP {status}){detail}", status=status, hint=hint, kind=kind)


def unreachable(service: ServiceName, error: Exception) -> ProviderError:
    """The error for a service that gave no answer."""
    reason = error.__cause__ or error
    text = redacted_failure(str(reason)).strip().rstrip(".") or type(reason).__name__
    return _error(
        service,
        f"could not be reached or broke the call off ({text[:_MOST_DETAIL]})",
        hint="Check EMBEDDING_BASE_URL and that the server runs.",
        kind=_PassingError,
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


def _is_passing(failure: ProviderError) -> bool:
    return isinstance(failure, _PassingError)


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

"""What Firecrawl's failures mean: for the page, for this request or for the service as a whole."""

from dataclasses import dataclass
from typing import Any, Literal

import httpx
from llama_index.postprocessor.webrag.service_calls import size_failure

from webrag.ingestion.characters import collapse, normalize_characters
from webrag.ingestion.http.answers import retry_after_s
from webrag.redaction import redacted_failure

_PASSING = frozenset({500, 502, 503, 504})
_MAX_SAID = 200
_REFUSED_KEY_PAUSE_S = 300.0
_CHECK_URL = "Check FIRECRAWL_API_URL: it must lead to a Firecrawl server of version 2."
_CHECK_KEY = "Check FIRECRAWL_API_KEY, or take it out to use the built-in fetcher."
_TOP_UP = "Top up the account or raise its plan at firecrawl.dev."
_RATES = "Wait a minute, or raise the plan's limits with Firecrawl."


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one request to Firecrawl brought nothing.

    Attributes:
        kind: `page` the page cannot be had, whoever asks; `request` Firecrawl will not do this,
            others may; `service` Firecrawl itself does not work now.
        sentence: For the user; names no key.
        hint: What the user can do.
        status: HTTP status of Firecrawl's answer.
        may_retry: The same request may succeed a little later.
        wait_s: How long Firecrawl wants to be left alone.
        pause_s: Asking again is useless for so long.
    """

    kind: Literal["page", "request", "service"]
    sentence: str
    hint: str | None = None
    status: int | None = None
    may_retry: bool = False
    wait_s: float | None = None
    pause_s: float | None = None


_PAGE_FAILURES = {
    "SCRAPE_DNS_RESOLUTION_ERROR": "Firecrawl found no address for the page's host.",
    "SCRAPE_SSL_ERROR": "The page's host has no valid TLS certificate, so it was not trusted.",
}
_REFUSALS = {
    401: Failure(
        "service",
        "Firecrawl refused the API key (HTTP 401).",
        _CHECK_KEY,
        401,
        pause_s=_REFUSED_KEY_PAUSE_S,
    ),
    402: Failure(
        "service",
        "The Firecrawl account has no credits left (HTTP 402).",
        _TOP_UP,
        402,
        pause_s=_REFUSED_KEY_PAUSE_S,
    ),
    404: Failure("service", "Firecrawl does not know this request (HTTP 404).", _CHECK_URL, 404),
}


def failure_of(error: Exception) -> Failure:
    """Explain an exception of the SDK, of its HTTP client, or of code that misread an answer."""
    if large := size_failure(error):
        return Failure("page", f"Firecrawl answered with {large}, which is more than is read.")
    if isinstance(error, httpx.HTTPError):
        return Failure(
            "service",
            f"Firecrawl could not be reached: {_network_reason(error)}.",
            hint=_CHECK_URL if isinstance(error, httpx.ConnectError) else None,
            may_retry=True,
        )
    status = getattr(error, "status_code", None)
    code = str(getattr(error, "code", None) or "")
    is_refusal = isinstance(status, int) and status >= 400
    if code.startswith("SCRAPE_") and not (is_refusal and code == "SCRAPE_TIMEOUT"):
        unread = f"Firecrawl could not read the page ({code}){_said(error)}."
        return Failure("page", _PAGE_FAILURES.get(code, unread), None, status or 200)
    if isinstance(status, int) and status >= 400:
        return _by_status(status, error)
    sentence = f"Firecrawl's answer could not be understood ({_nature(error)})."
    return Failure("service", sentence, _CHECK_URL, status, may_retry=True)


def _by_status(status: int, error: Exception) -> Failure:
    said = _said(error)
    if status in _REFUSALS:
        return _REFUSALS[status]
    if status == 408:
        sentence = f"Firecrawl could not load the page in time (HTTP 408){said}."
        return Failure("page", sentence, status=status, may_retry=True)
    if status == 429:
        sentence = f"Firecrawl's limit of requests is reached (HTTP 429){said}."
        response = getattr(error, "response", None)
        wait_s = None if response is None else retry_after_s(response.headers.get("retry-after"))
        return Failure(
            "service", sentence, _RATES, status, may_retry=True, wait_s=wait_s, pause_s=wait_s
        )
    if status >= 500:
        sentence = f"Firecrawl failed (HTTP {status}){said}."
        return Failure("service", sentence, status=status, may_retry=status in _PASSING)
    return Failure("request", f"Firecrawl refused the request (HTTP {status}){said}.", None, status)


def _nature(error: Exception) -> str:
    if isinstance(error, ValueError) and type(error).__name__ == "JSONDecodeError":
        return "it is not JSON"
    said = _said(error).removeprefix(": ")
    return said if said and hasattr(error, "response") else "it lacks what the interface promises"


def _said(error: Exception) -> str:
    """What the service itself says, as an ending for a sentence; empty when it says nothing."""
    response: Any = getattr(error, "response", None)
    text = ""
    if response is not None:
        try:
            body = response.json()
        except ValueError:
            body = None
        text = str(body.get("error") or "") if isinstance(body, dict) else ""
    elif hasattr(error, "status_code"):
        text = str(error)
    return f": {clean_text(text)}" if clean_text(text) else ""


def clean_text(text: str) -> str:
    """A service's words on one short line, without anything that looks like a key."""
    line = collapse(normalize_characters(redacted_failure(text)))
    return line[:_MAX_SAID].rstrip(". ")


def _network_reason(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "it did not answer in time"
    return clean_text(str(error)) or type(error).__name__

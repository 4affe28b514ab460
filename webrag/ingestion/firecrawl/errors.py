"""What Firecrawl's failures mean: for the page, for this request or for the service as a whole."""

from dataclasses import dataclass
from typing import Any, Literal

import httpx
from llama_index.postprocessor.webrag.service_calls import size_failure

from webrag.ingestion.characters import collapse, normalize_characters
from webrag.ingestion.http.answers import retry_after_s
from webrag.redaction import redacted_failure

_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
_MAX_SAID = 200
_REFUSED_KEY_PAUSE_S = 300.0
_CHECK_URL = "Check FIRECRAWL_API_URL: it must lead to a Firecrawl server of version 2."
_CHECK_KEY = "Check FIRECRAWL_API_KEY, or take it out to use the built-in fetcher."
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


def silence(seconds: float) -> Failure:
    """The failure of a service that did not answer in time."""
    return Failure("service", f"Firecrawl did not answer within {seconds:.0f} seconds.")


def failure_of(error: Exception) -> Failure:
    """Explain an exception of the SDK.

    Args:
        error: One of Firecrawl's, of its HTTP client, or what its code stumbles over when an
            answer is not what it expects.
    """
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
    if not isinstance(status, int) or status < 400:
        return _unexpected_answer(error, status)
    code = str(getattr(error, "code", None) or "")
    if code.startswith("SCRAPE_") and code != "SCRAPE_TIMEOUT":
        return _page_failure(code, _said(error), status)
    return _by_status(status, error)


def _by_status(status: int, error: Exception) -> Failure:
    said = _said(error)
    if status == 401:
        return Failure(
            "service",
            "Firecrawl refused the API key (HTTP 401).",
            hint=_CHECK_KEY,
            status=status,
            pause_s=_REFUSED_KEY_PAUSE_S,
        )
    if status == 402:
        return Failure(
            "service",
            "The Firecrawl account has no credits left (HTTP 402).",
            hint="Top up the account or raise its plan at firecrawl.dev.",
            status=status,
            pause_s=_REFUSED_KEY_PAUSE_S,
        )
    if status == 404:
        sentence = "Firecrawl does not know this request (HTTP 404)."
        return Failure("service", sentence, hint=_CHECK_URL, status=status)
    if status == 408:
        sentence = f"Firecrawl could not load the page in time (HTTP 408){said}."
        return Failure("page", sentence, status=status, may_retry=True)
    if status == 429:
        sentence = f"Firecrawl's limit of requests is reached (HTTP 429){said}."
        wait_s = _wait_s(error)
        return Failure(
            "service", sentence, _RATES, status, may_retry=True, wait_s=wait_s, pause_s=wait_s
        )
    if status in _TRANSIENT or status >= 500:
        sentence = f"Firecrawl failed (HTTP {status}){said}."
        return Failure("service", sentence, status=status, may_retry=status in _TRANSIENT)
    return Failure("request", f"Firecrawl refused the request (HTTP {status}){said}.", None, status)


def _page_failure(code: str, said: str, status: int) -> Failure:
    if code == "SCRAPE_DNS_RESOLUTION_ERROR":
        return Failure("page", "Firecrawl found no address for the page's host.", None, status)
    if code == "SCRAPE_SSL_ERROR":
        sentence = "The page's host has no valid TLS certificate, so it was not trusted."
        return Failure("page", sentence, None, status)
    return Failure("page", f"Firecrawl could not read the page ({code}){said}.", None, status)


def _unexpected_answer(error: Exception, status: int | None) -> Failure:
    refusal = str(getattr(error, "code", None) or "")
    if refusal.startswith("SCRAPE_"):
        return _page_failure(refusal, _said(error), status or 200)
    return Failure(
        "service",
        f"Firecrawl's answer could not be understood ({_nature(error)}).",
        hint=_CHECK_URL,
        status=status,
        may_retry=True,
    )


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


def _wait_s(error: Exception) -> float | None:
    response = getattr(error, "response", None)
    return None if response is None else retry_after_s(response.headers.get("retry-after"))

"""A Firecrawl on loopback: takes and gives what the published interface of version 2 says.

Requests are checked as published (formats as objects, limits of numbers, a bearer token). Faults
can be queued per endpoint; each serves one request and then the server behaves again.
"""

import json
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.loopback import QuietHandler, serving

KEY = "fc-0123456789abcdef"
FORMATS = {"markdown", "summary", "html", "rawHtml", "links", "images", "screenshot"}


class Call(NamedTuple):
    """One request; `body` is the decoded JSON, None where there is none."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Fault:
    """What one request gets instead of an answer.

    Attributes:
        body: Sent as JSON unless it is bytes.
        silent: Read the request and say nothing.
        broken: Close the connection at once.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    silent: bool = False
    broken: bool = False


def failing(
    status: int, error: str, *, headers: Mapping[str, str] | None = None, **more: Any
) -> Fault:
    """An error as the service words it."""
    return Fault(status, {"success": False, "error": error, **more}, headers or {})


def document(
    html: str, *, status: int = 200, markdown: str = "", metadata: Any = None, **more: Any
) -> dict[str, Any]:
    """A page as the service sees it; formats that were not asked for are left out later."""
    return {
        "markdown": markdown,
        "html": html,
        "rawHtml": html,
        "links": [],
        "metadata": {"statusCode": status, "contentType": "text/html", **(metadata or {})},
        **more,
    }


@dataclass
class _Job:
    urls: list[str]
    options: dict[str, Any]
    polls: int = 0
    cancelled: bool = False


class FakeFirecrawl:
    """The server; `url` is its address.

    Attributes:
        pages: URL to a document, or a function without arguments that gives one.
        sites: What `/map` lists, by the URL asked for.
        batch_errors: URL to the reason why a batch does not hold it.
        batch_polls: Questions about a batch that are answered with its first half only.
        page_size: Documents in one answer about a batch; more are behind `next`.
        calls: Every request, oldest first.
    """

    def __init__(self, key: str = KEY) -> None:
        self.key = key
        self.pages: dict[str, dict[str, Any] | Callable[[], dict[str, Any]]] = {}
        self.sites: dict[str, list[Any]] = {}
        self.batch_errors: dict[str, str] = {}
        self.batch_polls = 1
        self.batch_end = "completed"
        self.page_size = 100
        self.calls: list[Call] = []
        self.jobs: dict[str, _Job] = {}
        self._faults: dict[str, list[Fault]] = {}
        self._released = threading.Event()
        self._running = ExitStack()
        self.url = self._running.enter_context(serving(_handler(self)))

    def queue(self, endpoint: str, *faults: Fault) -> None:
        """Let the next requests to an endpoint (`scrape`, `map`, `batch`, ...) fail like this."""
        self._faults.setdefault(endpoint, []).extend(faults)

    def asked(self, endpoint: str) -> list[Call]:
        return [call for call in self.calls if _endpoint(call.method, call.path) == endpoint]

    def stop(self) -> None:
        self._released.set()
        self._running.close()

    def answer(self, call: Call) -> Fault | None:
        """What to send back; None to close the connection without a word."""
        self.calls.append(call)
        endpoint = _endpoint(call.method, call.path)
        waiting = self._faults.get(endpoint)
        if waiting:
            fault = waiting.pop(0)
            if fault.silent:
                self._released.wait(30)
                return None
            return None if fault.broken else fault
        if self.key and call.headers.get("authorization") != f"Bearer {self.key}":
            return failing(401, "Unauthorized: Invalid token")
        handler = getattr(self, f"_{endpoint}", None)
        if handler is None:
            return failing(404, "Not Found")
        answer: Fault = handler(call)
        return answer

    def _scrape(self, call: Call) -> Fault:
        refusal = _refusal(call.body, _SCRAPE_FIELDS)
        if refusal is not None:
            return refusal
        page = self._page(call.body["url"], call.body)
        return Fault(200, {"success": True, "data": page})

    def _map(self, call: Call) -> Fault:
        refusal = _refusal(call.body, _MAP_FIELDS)
        if refusal is not None:
            return refusal
        links = self.sites.get(call.body["url"], [])
        return Fault(200, {"success": True, "links": links[: call.body.get("limit", 5000)]})

    def _batch(self, call: Call) -> Fault:
        refusal = _refusal(call.body, _BATCH_FIELDS)
        if refusal is not None:
            return refusal
        name = str(uuid.uuid4())
        self.jobs[name] = _Job(call.body["urls"], call.body)
        return Fault(
            200,
            {
                "success": True,
                "id": name,
                "url": f"{self.url}/v2/batch/scrape/{name}",
                "invalidURLs": [],
            },
        )

    def _status(self, call: Call) -> Fault:
        parts = urlsplit(call.path)
        name = parts.path.rpartition("/")[2]
        job = self.jobs.get(name)
        if job is None:
            return failing(404, "Not Found")
        skip = int(parse_qs(parts.query).get("skip", ["0"])[0])
        if not skip:
            job.polls += 1
        is_done = job.polls > self.batch_polls
        there = [url for url in job.urls if url not in self.batch_errors]
        there = there if is_done else there[: len(there) // 2]
        shown = there[skip : skip + self.page_size]
        more = skip + len(shown) < len(there)
        return Fault(
            200,
            {
                # Not in the published schema, but the service sends it and the SDK insists on it.
                "success": True,
                "status": self.batch_end if is_done else "scraping",
                "total": len(job.urls),
                "completed": len(there),
                "creditsUsed": len(there),
                "expiresAt": "2030-01-01T00:00:00.000Z",
                "next": f"{self.url}/v2/batch/scrape/{name}?skip={skip + len(shown)}"
                if more
                else None,
                "data": [self._page(url, job.options) for url in shown],
            },
        )

    def _errors(self, call: Call) -> Fault:
        job = self.jobs[urlsplit(call.path).path.split("/")[-2]]
        errors = [
            {"id": str(uuid.uuid4()), "timestamp": None, "url": url, "error": reason}
            for url, reason in self.batch_errors.items()
            if url in job.urls and reason != "robots"
        ]
        blocked = [url for url, reason in self.batch_errors.items() if reason == "robots"]
        return Fault(200, {"success": True, "errors": errors, "robotsBlocked": blocked})

    def _cancel(self, call: Call) -> Fault:
        self.jobs[call.path.rpartition("/")[2]].cancelled = True
        return Fault(200, {"success": True, "status": "cancelled"})

    def _page(self, url: str, options: dict[str, Any]) -> dict[str, Any]:
        made = self.pages.get(url, document("<h1>Not Found</h1>", status=404))
        page = made() if callable(made) else made
        wanted = {each["type"] for each in options.get("formats", [{"type": "markdown"}])}
        kept = {
            name: value for name, value in page.items() if name in wanted or name not in FORMATS
        }
        return {**kept, "metadata": {"sourceURL": url, "url": url, **page["metadata"]}}


_SCRAPE_FIELDS = {"url", "formats", "timeout", "maxAge", "flags"}
_MAP_FIELDS = {"url", "search", "sitemap", "limit", "timeout"}
_BATCH_FIELDS = {"urls", "formats", "timeout", "maxAge", "flags"}
_FLAGS = ("onlyMainContent", "skipTlsVerification", "mobile", "blockAds", "storeInCache")


def _refusal(body: Any, fields: set[str]) -> Fault | None:
    if not isinstance(body, dict):
        return failing(400, "Bad Request")
    for name in {"url", "urls"} & fields:
        urls = [body.get(name)] if name == "url" else body.get(name) or [None]
        if not all(isinstance(u, str) and u.startswith(("http://", "https://")) for u in urls):
            return failing(400, "Invalid URL")
    wrong = [name for name in sorted(fields - {"url", "urls"}) if not _CHECKS[name](body)]
    return failing(422, "Unprocessable Entity", details=wrong) if wrong else None


def _formats_are_objects(body: dict[str, Any]) -> bool:
    formats = body.get("formats", [])
    return isinstance(formats, list) and all(
        isinstance(each, dict) and each.get("type") in FORMATS for each in formats
    )


def _within(body: dict[str, Any], name: str, low: int, high: int) -> bool:
    value = body.get(name, low)
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


_CHECKS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "formats": _formats_are_objects,
    "timeout": lambda body: _within(body, "timeout", 1000, 300_000),
    "maxAge": lambda body: _within(body, "maxAge", 0, 10**12),
    "limit": lambda body: _within(body, "limit", 1, 100_000),
    "search": lambda body: isinstance(body.get("search", ""), str),
    "sitemap": lambda body: body.get("sitemap", "include") in ("skip", "include", "only"),
    "flags": lambda body: all(isinstance(body.get(flag, True), bool) for flag in _FLAGS),
}


def _endpoint(method: str, path: str) -> str:
    parts = [part for part in urlsplit(path).path.split("/") if part]
    if parts[:1] != ["v2"]:
        return "unknown"
    if parts[1:3] != ["batch", "scrape"]:
        return parts[1] if method == "POST" and len(parts) == 2 else "unknown"
    if method == "POST":
        return "batch"
    if method == "DELETE":
        return "cancel"
    return "errors" if parts[-1] == "errors" else "status"


def _handler(fake: FakeFirecrawl) -> type[QuietHandler]:
    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            raw = self.read_body()
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = json.loads(raw) if raw else None
            answer = fake.answer(Call(self.command, self.path, headers, body))
            self.close_connection = True
            if answer is None:
                return
            content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body)
            data = content if isinstance(content, bytes) else content.encode()
            self.send(answer.status, data, {"Content-Type": "application/json", **answer.headers})

        do_GET = do_POST = do_DELETE = _serve

    return Handler

"""Answers of tool calls: text that is complete alone, and additions that are not needed.

A failure tells the model what went wrong, and not to answer from memory.
"""

import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from mcp.types import CallToolResult, ContentBlock, TextContent
from pydantic import BaseModel, Field, TypeAdapter

from webrag.corpus.models import AcquiredPage, CorpusStatus
from webrag.crawling.report import SiteReport
from webrag.errors import (
    ConfigurationError,
    DeadlineError,
    FetchError,
    PageGoneError,
    ProviderError,
    RefusedAddressError,
    RobotsDisallowedError,
    StorageError,
    UnusablePageError,
    WebRAGError,
)
from webrag.frozen import FrozenModel
from webrag.ingestion.fetch_context import PageLimitError
from webrag.orchestration.models import OrchestrationResult
from webrag.presentation.brief.models import Seen
from webrag.presentation.untrusted import one_line
from webrag.retrieval.citation_checks import CitationCheck

if TYPE_CHECKING:
    from webrag.app import WebRAG
    from webrag.presentation.brief.models import EvidenceBlock
    from webrag.presentation.results import ResultDocument

logger = logging.getLogger(__name__)

_NONCE_BYTES = 4

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
_UNEXPECTED = "Try again later; the server log says more."


@dataclass(frozen=True)
class Reply:
    """One answer: all a model needs as text, and the same for programs where clients may get it."""

    text: str
    is_error: bool = False
    data: BaseModel | None = None
    changes_pages: bool = False

    def result(self, *, structured: bool) -> CallToolResult:
        """The reply as the protocol has it."""
        content: list[ContentBlock] = [TextContent(type="text", text=self.text)]
        data = None
        if structured and self.data is not None and not self.is_error:
            data = self.data.model_dump(mode="json")
        return CallToolResult(content=content, structured_content=data, is_error=self.is_error)


class ReadOutput(FrozenModel):
    """Part of a stored page."""

    url: str
    title: str | None
    text: str
    char_start: int
    char_end: int
    page_chars: int
    next_offset: int | None
    heading_path: tuple[str, ...]


class IngestOutput(FrozenModel):
    """Outcomes of named pages: failures by URL with the reason, omissions counted by reason."""

    pages: tuple[AcquiredPage, ...]
    failed: dict[str, str]
    unfinished: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    left_out: dict[str, int] = Field(default_factory=dict)


class UnfinishedSite(FrozenModel):
    """A crawl whose time was over before it ended."""

    start_url: str
    ended: Literal["time"] = "time"
    visited: int
    queued: int


class VerifyOutput(FrozenModel):
    """Findings of each quotation; `refused` has the others by their place, from 1."""

    checks: tuple[CitationCheck, ...]
    refused: dict[int, str]


def output_schema(tool: str) -> dict[str, Any]:
    """The schema of a tool's structured content."""
    # Imported here: clients wait for the tool list, and few are shown schemas of results.
    from webrag.corpus.writer import ForgetReport
    from webrag.presentation.results import ResultDocument

    ingested: Any = IngestOutput | SiteReport | UnfinishedSite
    outputs: dict[str, Any] = {
        "answer": ResultDocument,
        "search": ResultDocument,
        "read": ReadOutput,
        "status": CorpusStatus,
        "ingest": ingested,
        "verify": VerifyOutput,
        "forget": ForgetReport,
    }
    # The protocol wants a type beside the choice of several.
    return {"type": "object", **TypeAdapter(outputs[tool]).json_schema(mode="serialization")}


# A model's context holds about so many briefs; what is older it may have lost.
_QUESTIONS: Final = 30


class SeenPassages:
    """The parts of passages that the latest questions of one session were answered with.

    A question that is asked again is answered in full: the client may have lost the reply.
    """

    def __init__(self) -> None:
        self._of: OrderedDict[str, tuple[Seen, ...]] = OrderedDict()

    def of_others(self, question: str) -> tuple[Seen, ...]:
        """Passages that were sent for other questions."""
        return tuple(each for asked, sent in self._of.items() if asked != question for each in sent)

    def add(self, question: str, sent: Iterable[Seen]) -> None:
        """Keep what was sent for a question, and forget the oldest beyond those that are kept."""
        self._of[question] = tuple(sent)
        self._of.move_to_end(question)
        while len(self._of) > _QUESTIONS:
            self._of.popitem(last=False)


def within_budget(
    text: str, token_budget: int, count_tokens: Callable[[str], int], *, hint: str
) -> str:
    """Cut the last lines of a report without frames where it is too long; a hint names the rest."""
    lines, kept = text.split("\n"), text
    while len(lines) > 1 and count_tokens(kept) > token_budget:
        share = min(0.95, token_budget / count_tokens(kept))
        lines = lines[: max(1, int(len(lines) * share))]
        kept = "\n".join([*lines, f"... (cut to fit the response budget; {hint})"])
    return kept


def new_nonce() -> str:
    """A mark that no page can have foreseen."""
    return secrets.token_hex(_NONCE_BYTES)


def brief_reply(
    memory: "WebRAG",
    result: OrchestrationResult,
    *,
    structured: bool,
    max_tokens: int | None = None,
    detail: Literal["brief", "full"] = "brief",
    seen: Sequence[Seen] = (),
) -> tuple[Reply, list[Seen]]:
    """Give the brief of a result, what was `seen` by name only, and what of passages is in it."""
    options: dict[str, Any] = {"max_tokens": max_tokens, "detail": detail, "seen": seen}
    text = memory.brief(result, include_guide=True, nonce=new_nonce(), **options)
    blocks = memory.evidence(result, include_guide=True, **options)
    if not result.chunks:
        logger.warning("Nothing was found for a question of %d characters", len(result.query))
    data = _document(result, blocks) if structured else None
    printed = [(block.chunk_id, block.char_start, block.char_end) for block in blocks]
    return Reply(text, data=data, changes_pages=bool(result.urls_fetched)), printed


def _document(result: OrchestrationResult, blocks: "Sequence[EvidenceBlock]") -> "ResultDocument":
    """The passages that are printed, as the command line gives them to programs."""
    from webrag.presentation.results import result_document

    document = result_document(result, blocks)
    printed = {block.chunk_id for block in blocks}
    passages = tuple(each for each in document.passages if each.passage_id in printed)
    return document.model_copy(update={"passages": passages})


def failure_text(error: BaseException) -> str:
    """Say what went wrong, why it may have where it does not say so, and what to tell the user.

    The message of an unexpected exception is left out: it may hold paths or secrets.
    """
    if isinstance(error, RefusedAddressError):
        # As for other input that is not taken: nothing broke, and another address helps.
        text = f"[ERROR]\n{error_text(error)}"
        return text if "WEBRAG_ALLOW_HOSTS" in text else f"{text} {_REFUSED}"
    details = "An unexpected error occurred."
    cause = next((text for kind, text in _CAUSES if isinstance(error, kind)), _UNEXPECTED)
    if isinstance(error, WebRAGError):
        details = error_text(error)
        cause = "" if error.hint else cause
    paragraphs = (
        "WebRAG encountered an error during retrieval.",
        f"Error type: {type(error).__name__}\nDetails: {details}",
        cause,
        _CLOSING,
    )
    return "[ERROR]\n" + "\n\n".join(filter(None, paragraphs))


def timeout_text(seconds: float) -> str:
    """Say what to do about a call that took too long."""
    return (
        f"[ERROR]\nWebRAG timed out after {seconds:g}s.\n\nWhat was stored until then is kept. "
        "Suggestion: repeat the call, retry with expansion_budget=0 to follow no links, or name a "
        "more specific page."
    )


def error_text(error: WebRAGError) -> str:
    """The sentence that says what was wrong, and the hint when there is one."""
    message = one_line(str(error), max_chars=1000)
    return f"{message} {one_line(error.hint, max_chars=400)}" if error.hint else message

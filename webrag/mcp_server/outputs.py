"""What tools answer with beside their text, and the schemas of it."""

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from webrag.corpus.models import AcquiredPage, CorpusStatus
from webrag.crawling.report import SiteReport
from webrag.frozen import FrozenModel
from webrag.retrieval.citation_checks import CitationCheck


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
    """What became of named pages.

    Attributes:
        failed: URL to reason.
        unfinished: URLs that time did not suffice for.
        degraded: Sentences about page sources that did not work as configured.
        gone: Files that are there no more.
        left_out: What of folders is not read, counted by reason.
    """

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
    """What was found of each quotation; `refused` has the others by their place, from 1."""

    checks: tuple[CitationCheck, ...]
    refused: dict[str, str]


def output_schema(tool: str) -> dict[str, Any]:
    """The schema of a tool's structured content."""
    # Imported here: clients wait for the tool list, and few are shown schemas of results.
    from webrag.corpus.maintenance.forgetting import ForgetReport
    from webrag.presentation.jobs import EnqueuedJobs
    from webrag.presentation.results import ResultDocument

    ingested: Any = IngestOutput | SiteReport | UnfinishedSite | EnqueuedJobs
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

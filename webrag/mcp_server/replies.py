"""What a tool call answers: text that is complete alone, and additions that are not needed."""

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp.types import CallToolResult, ContentBlock, ResourceLink, TextContent

from webrag.orchestration.models import OrchestrationResult, RankedChunk
from webrag.presentation.reports import passage_uri
from webrag.presentation.untrusted import one_line

if TYPE_CHECKING:
    from webrag.app import WebRAG

__all__ = ["Reply", "brief_reply", "new_nonce"]

# Each costs the reader some 60 tokens; the first passages are those worth reading on around.
_MOST_LINKS = 5
_NONCE_BYTES = 4


@dataclass(frozen=True)
class Reply:
    """One answer.

    Attributes:
        text: Everything a model needs.
        links: Stored passages that can be read whole.
        data: The same as JSON; sent only when clients may get structured content.
    """

    text: str
    is_error: bool = False
    links: tuple[ResourceLink, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)

    def result(self, *, structured: bool) -> CallToolResult:
        """The reply as the protocol has it."""
        content: list[ContentBlock] = [TextContent(type="text", text=self.text), *self.links]
        data = dict(self.data) if structured and self.data and not self.is_error else None
        return CallToolResult(content=content, structured_content=data, is_error=self.is_error)


def new_nonce() -> str:
    """A mark that no page can have foreseen."""
    return secrets.token_hex(_NONCE_BYTES)


def brief_reply(memory: "WebRAG", result: OrchestrationResult, *, structured: bool) -> Reply:
    """The brief of a result, with links to its best passages."""
    text = memory.brief(result, include_guide=True, nonce=new_nonce())
    data = _brief_data(memory, result) if structured else {}
    return Reply(text, links=tuple(_links(result)), data=data)


def _links(result: OrchestrationResult) -> Iterator[ResourceLink]:
    best = sorted(
        (ranked for ranked in result.chunks if not ranked.is_locality_expanded),
        key=lambda ranked: -ranked.reranked_score,
    )
    return map(_link, best[:_MOST_LINKS])


def _link(ranked: RankedChunk) -> ResourceLink:
    chunk = ranked.chunk
    title = one_line(chunk.title or "", max_chars=80) or "Untitled"
    section = one_line(chunk.section_heading or "", max_chars=80)
    return ResourceLink(
        type="resource_link",
        uri=passage_uri(chunk.chunk_id),
        name=f"{title} § {section}" if section else title,
        mime_type="text/plain",
    )


def _brief_data(memory: "WebRAG", result: OrchestrationResult) -> dict[str, Any]:
    blocks = memory.evidence(result, include_guide=True)
    return {
        "confidence": result.confidence,
        "confidence_band": result.confidence_band,
        "partial": result.partial,
        "degraded": list(result.degraded),
        "warnings": list(result.warnings),
        "evidence": [
            {
                "url": block.url,
                "title": block.title,
                "heading": block.heading,
                "columns": block.columns,
                "text": block.text,
                "char_start": block.char_start,
                "char_end": block.char_end,
                "relevance": block.relevance,
                "addresses_reader": block.addresses_reader,
                "passage_id": str(block.chunk_id),
                "quotation": None
                if block.citation is None
                else {
                    "text": block.citation.verbatim_text,
                    "columns": block.quoted_columns,
                    "char_start": block.citation.char_start,
                    "char_end": block.citation.char_end,
                    "link": block.citation.link,
                },
            }
            for block in blocks
        ],
    }

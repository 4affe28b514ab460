"""WebRAG's tools for LlamaIndex agents; the work is `WebRAG`'s."""

import secrets
import sys
from typing import TYPE_CHECKING, Any, Final

from llama_index.core.tools import FunctionTool, ToolMetadata
from llama_index.core.tools.tool_spec.base import BaseToolSpec
from pydantic import Field
from typing_extensions import override

from webrag.argument_checks import USUAL_READ_TOKENS
from webrag.concurrency import in_background
from webrag.crawling.report import USUAL_PAGES
from webrag.errors import InputError
from webrag.ingestion.addresses import sites_and_addresses
from webrag.presentation.reports import (
    STATUS_PAGES,
    format_excerpt,
    format_ingest,
    format_site,
    format_status,
    format_verification,
    pages_with,
    status_of,
)
from webrag.tool_inputs import (
    AnswerInput,
    CitationInput,
    IngestInput,
    ReadInput,
    SearchInput,
    StatusInput,
    Texts,
    ToolInput,
    VerifyInput,
)

if TYPE_CHECKING:
    from webrag.app import WebRAG
    from webrag.question import Question


class _SearchAlone(SearchInput):
    """The arguments of `search`, told without `answer`, which a model may not have."""

    wordings: Texts | None = Field(
        default=None, description=AnswerInput.model_fields["wordings"].description
    )


_INPUTS: Final[dict[str, type[ToolInput]]] = {
    kind.where: kind
    for kind in (AnswerInput, _SearchAlone, IngestInput, StatusInput, ReadInput, VerifyInput)
}


class WebRAGToolSpec(BaseToolSpec):
    """The tools of MCP clients, with the same arguments, for a LlamaIndex agent.

    `answer` and `search` return a research brief: evidence with verbatim, located and linked
    quotations, page text framed by an unpredictable token because it is untrusted, and directions
    how to cite. Bad arguments and pages that cannot be obtained raise a `WebRAGError` whose text is
    a sentence; LlamaIndex's agents hand it to the model.

        tools = WebRAGToolSpec(rag).to_tool_list()
        agent = FunctionAgent(tools=tools, llm=llm)

    Args:
        rag: An open `WebRAG`; not closed here. The tools run in its event loop: await them.
    """

    spec_functions = list(_INPUTS)  # noqa: RUF012  LlamaIndex declares it so

    def __init__(self, rag: "WebRAG") -> None:
        self._rag = rag

    @override
    def to_tool_list(self, *args: Any, **kwargs: Any) -> list[FunctionTool]:
        """All tools, or those that are named.

        Raises:
            InputError: `spec_functions` names a tool that there is not.
        """
        asked = args[0] if args else kwargs.get("spec_functions")
        for name in asked or ():
            if name not in _INPUTS:
                raise InputError(f"There is no tool {name!r}; there are {', '.join(_INPUTS)}.")
        return super().to_tool_list(*args, **kwargs)

    @override
    def get_metadata_from_fn_name(self, fn_name: Any, spec_functions: Any = None) -> ToolMetadata:
        """The tool as a model is shown it; its arguments are described in their schema."""
        told = " ".join((getattr(self, fn_name).__doc__ or "").split())
        return ToolMetadata(name=fn_name, description=told, fn_schema=_INPUTS[fn_name])

    async def answer(
        self, url: str | list[str] | None = None, query: str | None = None, **options: Any
    ) -> str:
        """Find cited evidence for a question, starting from a web page or several.

        Fetches and indexes what is not stored yet. Use it when you know a page to start from;
        use `search` when the page is stored. Cite the quotations exactly as given.
        """
        given = AnswerInput.model_validate(_named(options, url=url, query=query))
        return await self._brief(given.question(urls=given.url), given)

    async def search(self, query: str | None = None, **options: Any) -> str:
        """Find cited evidence for a question in the pages stored so far; fetches nothing."""
        given = SearchInput.model_validate(_named(options, query=query))
        return await self._brief(given.question(), given)

    async def _brief(self, question: "Question", given: AnswerInput | SearchInput) -> str:
        result = await self._rag.evidence_for(question)
        return await in_background(
            self._rag.brief,
            result,
            include_guide=True,
            max_tokens=given.max_tokens,
            detail=given.detail,
            seen=[(passage_id, 0, sys.maxsize) for passage_id in given.seen or ()],
            nonce=secrets.token_hex(8),
        )

    async def ingest(self, url: str | list[str] | None = None, **options: Any) -> str:
        """Fetch and index web pages, so that `search` finds them later.

        With `max_pages`, 500 at most, the pages below a start page are read, which takes a second
        or so for each; calling it again goes on where it stopped.
        """
        given = IngestInput.model_validate(_named(options, url=url))
        if crawl := given.crawl():
            if crawl.max_pages > USUAL_PAGES:
                raise InputError(
                    f"max_pages is {crawl.max_pages:,}; one call reads at most {USUAL_PAGES}."
                )
            return format_site(await self._rag.ingest_site(given.url[0], crawl), caller="mcp")
        report = await self._rag.ingest(given.url, refresh=given.refresh, version=given.version)
        return format_ingest(report.pages, report.failed, degraded=report.degraded)

    async def status(self, source_url: str | None = None, **options: Any) -> str:
        """Tell how many pages of which sites are stored, and what could not be fetched."""
        given = StatusInput.model_validate(_named(options, source_url=source_url))
        place = [given.source_url] if given.source_url else []
        hosts, pages = sites_and_addresses(place, takes_paths=False)
        stored = await self._rag.status(next(iter(pages), None))
        for host in hosts:
            stored = status_of(stored, host)
        stored = pages_with(stored, given.contains) if given.contains else stored
        return await in_background(
            format_status,
            stored,
            max_pages=STATUS_PAGES,
            page=given.page,
            is_listed=given.include_urls,
            caller="mcp",
        )

    async def read(self, url: str | None = None, **options: Any) -> str:
        """Read a stored page, from the beginning or from a place; fetches nothing."""
        given = ReadInput.model_validate(_named(options, url=url))
        budget = given.max_tokens or USUAL_READ_TOKENS
        place = given.model_dump(exclude={"url", "max_tokens"})
        excerpt = await self._rag.read(given.url, **place, max_tokens=budget)
        text, _ = await in_background(
            format_excerpt,
            excerpt,
            token_budget=budget,
            count_tokens=self._rag.count_tokens,
            nonce=secrets.token_hex(8),
        )
        return text

    async def verify(self, url: str | None = None, quote: str | None = None, **options: Any) -> str:
        """Check that quotations stand on their pages, in the stored version and as it is now."""
        given = VerifyInput.model_validate(_named(options, url=url, quote=quote))
        citations = [CitationInput.model_validate(each).citation() for each in given.citations]
        checks = await self._rag.verify(citations, live=given.live)
        return format_verification(checks, nonce=secrets.token_hex(8))


def _named(options: dict[str, Any], **first: Any) -> dict[str, Any]:
    """The arguments of a call; those that may come first by place only where they are given."""
    return {name: each for name, each in first.items() if each is not None} | options

"""WebRAG's tools for LlamaIndex agents; the work is `WebRAG`'s."""

import functools
import inspect
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from llama_index.core.tools import FunctionTool
from llama_index.core.tools.tool_spec.base import BaseToolSpec
from typing_extensions import override

from webrag.concurrency import in_background
from webrag.crawling.report import CrawlOptions
from webrag.errors import InputError
from webrag.ingestion.addresses import as_address, sites_and_addresses
from webrag.presentation.reports import (
    format_excerpt,
    format_ingest,
    format_site,
    format_status,
    format_verification,
    status_of,
)
from webrag.question import QueryType
from webrag.retrieval.citation_checks import Citation
from webrag.retrieval.filters import ContentKind
from webrag.tool_inputs import (
    AnswerInput,
    CitationInput,
    IngestInput,
    ReadInput,
    SearchInput,
    StatusInput,
    ToolInput,
    VerifyInput,
    pages_or_sites,
)

if TYPE_CHECKING:
    from webrag.app import WebRAG

Tool = TypeVar("Tool", bound=Callable[..., Awaitable[str]])

_READ_TOKENS: Final = 4_000
_LISTED_PAGES: Final = 50
_MOST_CRAWLED: Final = 500
_WORDINGS: Final = (
    "Up to 5 other wordings, with words the page may use: terms, names of options or functions, one"
    " sentence you expect to read there. Guesses may be wrong: they add, never displace. Always"
    " give 3, unless the question uses the page's words."
)


def _takes(*inputs: type[ToolInput], **own: str) -> Callable[[Tool], Tool]:
    """Describe a tool's arguments as these do, and refuse others in a sentence."""
    shared = {name: each for kind in inputs for name, each in kind.model_fields.items()}

    def described(tool: Tool) -> Tool:
        signature = inspect.signature(tool)
        known = [name for name in signature.parameters if name != "self"]
        told = [f"    {name}: {own.get(name) or shared[name].description}" for name in known]

        @functools.wraps(tool)
        async def checked(*args: Any, **kwargs: Any) -> str:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                takes = ", ".join(known)
                raise InputError(f"{tool.__name__}: {error}; it takes {takes}.") from error
            return await tool(*args, **kwargs)

        checked.__doc__ = "\n".join([inspect.cleandoc(tool.__doc__ or ""), "", "Args:", *told])
        return cast(Tool, checked)

    return described


def _addresses(urls: str | Sequence[str]) -> list[str]:
    return [as_address(each) for each in ([urls] if isinstance(urls, str) else urls)]


class WebRAGToolSpec(BaseToolSpec):
    """The tools of MCP clients for a LlamaIndex agent.

    `answer` and `search` return a research brief: evidence with verbatim, located and linked
    quotations, page text framed by an unpredictable token because it is untrusted, and directions
    how to cite. Bad arguments and pages that cannot be obtained raise a `WebRAGError` whose text is
    a sentence; LlamaIndex's agents hand it to the model.

        tools = WebRAGToolSpec(rag).to_tool_list()
        agent = FunctionAgent(tools=tools, llm=llm)

    Args:
        rag: An open `WebRAG`; not closed here. The tools run in its event loop: await them.
    """

    spec_functions = [  # noqa: RUF012  LlamaIndex declares it so
        "answer",
        "search",
        "ingest",
        "ingest_site",
        "status",
        "read",
        "verify",
    ]

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
            if name not in self.spec_functions:
                known = ", ".join(map(str, self.spec_functions))
                raise InputError(f"There is no tool {name!r}; there are {known}.")
        return super().to_tool_list(*args, **kwargs)

    @_takes(
        AnswerInput,
        wordings=_WORDINGS,
        research_mode="fast reads the named pages; deep also follows their links until the evidence"
        " is good enough, up to a minute.",
    )
    async def answer(
        self,
        url: str | list[str],
        query: str,
        research_mode: Literal["fast", "deep"] = "fast",
        wordings: list[str] | None = None,
        intent: QueryType | None = None,
        known_context: str | None = None,
        constraints: list[str] | None = None,
    ) -> str:
        """Find cited evidence for a question, starting from a web page or several.

        Fetches and indexes what is not stored yet. Use it when you know a page to start from;
        use `search` when the page is stored. Cite the quotations exactly as given.
        """
        result = await self._rag.answer(
            _addresses(url),
            query,
            wordings=wordings,
            research_mode=research_mode,
            intent=intent,
            known_context=known_context,
            constraints=constraints,
        )
        nonce = secrets.token_hex(8)
        return await in_background(self._rag.brief, result, include_guide=True, nonce=nonce)

    @_takes(
        SearchInput,
        wordings="Other words the page may use, as for answer.",
        source_urls="Only these pages; all when left out.",
    )
    async def search(
        self,
        query: str,
        source_urls: list[str] | None = None,
        wordings: list[str] | None = None,
        sites: list[str] | None = None,
        years: list[int] | None = None,
        has: list[ContentKind] | None = None,
        intent: QueryType | None = None,
    ) -> str:
        """Find cited evidence for a question in the pages stored so far; fetches nothing."""
        pages, hosts = pages_or_sites(source_urls, sites)
        result = await self._rag.search(
            query,
            wordings=wordings,
            source_urls=pages,
            sites=hosts,
            years=years,
            has=has or (),
            intent=intent,
        )
        nonce = secrets.token_hex(8)
        return await in_background(self._rag.brief, result, include_guide=True, nonce=nonce)

    @_takes(url="Page, or a list of pages.")
    async def ingest(self, url: str | list[str]) -> str:
        """Fetch and index a web page, or several, so that `search` finds them later."""
        report = await self._rag.ingest(_addresses(url))
        return format_ingest(report.pages, report.failed, degraded=report.degraded)

    @_takes(IngestInput, url="Start page; pages below its folder are read.", max_pages="1 to 500.")
    async def ingest_site(
        self, url: str, max_pages: int = 100, include: list[str] | None = None
    ) -> str:
        """Fetch and index the pages below a start page, so that `search` finds them later.

        Takes a second or so for each page; calling it again goes on where it stopped.
        """
        if not 1 <= max_pages <= _MOST_CRAWLED:
            raise InputError(f"max_pages is {max_pages}; allowed are 1 to {_MOST_CRAWLED}.")
        options = CrawlOptions(max_pages=max_pages, include=tuple(include or ()))
        return format_site(await self._rag.ingest_site(as_address(url), options), caller="mcp")

    @_takes(StatusInput, source_url="Only this page, or the pages of this host, with their age.")
    async def status(self, source_url: str | None = None) -> str:
        """Tell how many pages of which sites are stored, and what could not be fetched."""
        hosts, pages = sites_and_addresses([source_url] if source_url else [])
        stored = await self._rag.status(next(iter(pages), None), include_urls=bool(source_url))
        for host in hosts:
            stored = status_of(stored, host)
        return await in_background(format_status, stored, max_pages=_LISTED_PAGES, caller="mcp")

    @_takes(
        ReadInput,
        offset="Begin at this character, as a part read before says.",
        max_tokens="Length of the text at most, in tokens.",
    )
    async def read(
        self,
        url: str,
        heading: str | None = None,
        quote: str | None = None,
        offset: int | None = None,
        max_tokens: int = _READ_TOKENS,
    ) -> str:
        """Read a stored page, from the beginning or from a place; fetches nothing."""
        excerpt = await self._rag.read(
            as_address(url), heading=heading, quote=quote, offset=offset, max_tokens=max_tokens
        )
        text, _ = await in_background(
            format_excerpt,
            excerpt,
            token_budget=max_tokens,
            count_tokens=self._rag.count_tokens,
            nonce=secrets.token_hex(8),
        )
        return text

    @_takes(VerifyInput, CitationInput, url="The page it is said to be from.")
    async def verify(self, url: str, quote: str, live: bool = True) -> str:
        """Check that a quotation stands on a page, in the stored version and as it is now."""
        checks = await self._rag.verify(Citation(url=as_address(url), quote=quote), live=live)
        return format_verification(checks, nonce=secrets.token_hex(8))

"""WebRAG's tools for LlamaIndex agents; the work is `WebRAG`'s."""

import functools
import inspect
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from llama_index.core.tools import FunctionTool
from llama_index.core.tools.tool_spec.base import BaseToolSpec
from typing_extensions import override

from webrag.concurrency import in_background
from webrag.corpus.models import AcquiredPage
from webrag.errors import InputError
from webrag.orchestration.models import OrchestrationResult
from webrag.presentation.reports import format_ingest

__all__ = ["WebRAGToolSpec"]


class Ingested(Protocol):
    """What became of the pages that were asked for."""

    @property
    def pages(self) -> Sequence[AcquiredPage]:
        """Those that are in the corpus now."""
        ...

    @property
    def failed(self) -> Mapping[str, str]:
        """URL to the reason it was not obtained."""
        ...


class Research(Protocol):
    """What the tools need of `WebRAG`."""

    async def answer(
        self,
        url: str | Sequence[str],
        question: str,
        *,
        wordings: str | Sequence[str] | None = ...,
        research_mode: Literal["fast", "deep"] = ...,
    ) -> OrchestrationResult:
        """Evidence for a question, starting from one or more pages."""
        ...

    async def search(
        self,
        question: str,
        *,
        wordings: str | Sequence[str] | None = ...,
        source_urls: str | Sequence[str] | None = ...,
    ) -> OrchestrationResult:
        """Evidence in what is stored."""
        ...

    async def ingest(self, urls: str | Sequence[str]) -> Ingested:
        """Fetch and index pages."""
        ...

    def brief(
        self, result: OrchestrationResult, *, include_guide: bool = ..., nonce: str | None = ...
    ) -> str:
        """The result as text."""
        ...


def _refusing_wrong_names(
    tool: Callable[..., Awaitable[str]],
) -> Callable[..., Awaitable[str]]:
    """The tool, with a sentence in place of Python's own error about arguments."""
    signature = inspect.signature(tool)

    @functools.wraps(tool)
    async def checked(*args: Any, **kwargs: Any) -> str:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            known = [name for name in signature.parameters if name != "self"]
            raise InputError(f"{tool.__name__}: {error}; it takes {', '.join(known)}.") from error
        return await tool(*args, **kwargs)

    return checked


class WebRAGToolSpec(BaseToolSpec):
    """`answer`, `search` and `ingest` as tools of a LlamaIndex agent.

    What they return is the research brief that MCP clients get: evidence with verbatim, located
    and linked quotations, page text framed by an unpredictable token because it is untrusted,
    and directions how to cite. Bad arguments and pages that cannot be obtained raise a
    `WebRAGError` whose text is a sentence; LlamaIndex's agents hand it to the model.

        tools = WebRAGToolSpec(rag).to_tool_list()
        agent = FunctionAgent(tools=tools, llm=llm)

    Args:
        rag: An open `WebRAG`; not closed here. The tools run in its event loop: await them.
    """

    spec_functions = ["answer", "search", "ingest"]  # noqa: RUF012  LlamaIndex declares it so

    def __init__(self, rag: Research) -> None:
        self._rag = rag

    @override
    def to_tool_list(self, *args: Any, **kwargs: Any) -> list[FunctionTool]:
        """The tools, with descriptions that are not indented like source code."""
        tools = super().to_tool_list(*args, **kwargs)
        for tool in tools:
            signature, _, text = tool.metadata.description.partition("\n")
            tool.metadata.description = f"{signature}\n{inspect.cleandoc(text)}"
        return tools

    @_refusing_wrong_names
    async def answer(
        self,
        url: str | list[str],
        query: str,
        research_mode: Literal["fast", "deep"] = "fast",
        wordings: list[str] | None = None,
    ) -> str:
        """Find cited evidence for a question, starting from a web page or several.

        Fetches and indexes what is not stored yet. Use it when you know a page to start from;
        use `search` when the page is stored. Cite the quotations exactly as given.

        Args:
            url: Page to start from, or a list of pages.
            query: The question, in full.
            research_mode: `fast` reads the named pages; `deep` also follows their links until
                the evidence is good enough.
            wordings: Up to 5 other wordings, with words the page may use: terms, names of options
                or functions, one sentence you expect to read there. Guesses may be wrong: they
                add, never displace. Always give 3, unless the question uses the page's words.
        """
        result = await self._rag.answer(url, query, wordings=wordings, research_mode=research_mode)
        nonce = secrets.token_hex(8)
        return await in_background(self._rag.brief, result, include_guide=True, nonce=nonce)

    @_refusing_wrong_names
    async def search(
        self,
        query: str,
        source_urls: list[str] | None = None,
        wordings: list[str] | None = None,
    ) -> str:
        """Find cited evidence for a question in the pages stored so far; fetches nothing.

        Args:
            query: The question, in full.
            source_urls: Only these pages; all when left out.
            wordings: Other words the page may use, as for `answer`.
        """
        result = await self._rag.search(query, wordings=wordings, source_urls=source_urls)
        nonce = secrets.token_hex(8)
        return await in_background(self._rag.brief, result, include_guide=True, nonce=nonce)

    @_refusing_wrong_names
    async def ingest(self, url: str | list[str]) -> str:
        """Fetch and index a web page, or several, so that `search` finds them later.

        Args:
            url: Page, or a list of pages.
        """
        report = await self._rag.ingest(url)
        return format_ingest(report.pages, report.failed)

"""WebRAG's tools for LlamaIndex agents; the work is `WebRAG`'s."""

import secrets
from typing import TYPE_CHECKING, Literal

from llama_index.core.tools.tool_spec.base import BaseToolSpec

from webrag.presentation.reports import format_ingest

if TYPE_CHECKING:
    from webrag.app import WebRAG

__all__ = ["WebRAGToolSpec"]


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

    def __init__(self, rag: "WebRAG") -> None:
        self._rag = rag

    async def answer(
        self,
        url: str | list[str],
        query: str,
        research_mode: Literal["fast", "deep"] = "fast",
    ) -> str:
        """Find cited evidence for a question, starting from a web page or several.

        Fetches and indexes what is not stored yet. Use it when you know a page to start from;
        use `search` when the page is stored. Cite the quotations exactly as given.

        Args:
            url: Page to start from, or a list of pages.
            query: The question, in full.
            research_mode: `fast` reads the named pages; `deep` also follows their links until
                the evidence is good enough.
        """
        result = await self._rag.answer(url, query, research_mode=research_mode)
        return self._rag.brief(result, include_guide=True, nonce=secrets.token_hex(8))

    async def search(self, query: str, source_urls: list[str] | None = None) -> str:
        """Find cited evidence for a question in the pages stored so far; fetches nothing.

        Args:
            query: The question, in full.
            source_urls: Only these pages; all when left out.
        """
        result = await self._rag.search(query, source_urls=source_urls)
        return self._rag.brief(result, include_guide=True, nonce=secrets.token_hex(8))

    async def ingest(self, url: str | list[str]) -> str:
        """Fetch and index a web page, or several, so that `search` finds them later.

        Args:
            url: Page, or a list of pages.
        """
        report = await self._rag.ingest(url)
        return format_ingest(report.pages, report.failed)

"""WebRAG as one object: what the command line, the MCP server and notebooks call."""

from webrag.asking import MAX_QUESTION_CHARS, Asking, check_question
from webrag.components import LlamaIndexComponents
from webrag.ingesting import Ingesting, IngestReport
from webrag.stored_pages import StoredPages

__all__ = ["MAX_QUESTION_CHARS", "IngestReport", "WebRAG", "check_question"]


class WebRAG(Asking, Ingesting, StoredPages, LlamaIndexComponents):
    """Research memory: answers from pages with verbatim, located quotations.

    Use it as an async context manager; opening it starts the embedded Postgres unless a
    server is configured, closing it releases everything. Calls may run concurrently.

        async with WebRAG() as rag:
            result = await rag.answer("https://example.com/docs/", "How do I ...?")
            print(rag.brief(result))

    Args:
        settings: Defaults to what the environment says.
        soft_deadline_s: Seconds after which `answer` returns what it has, marked as partial;
            None to use the whole of `ORCHESTRATION_TIMEOUT`.
        page_source: Where pages come from: a `PageSource`, which is closed with the rest, or a
            LlamaIndex web reader; None for Firecrawl or the built-in fetcher, as the settings say.
            One with a `map` method is asked for more links of a site, too.
        reranker: Any LlamaIndex postprocessor that scores from 0 to 1; None for the one the
            settings name.
        score_profile: Thresholds for its scores, or the name of a scorer it is like; None for
            those of cross-encoders. Thresholds that the settings name replace them.
    """

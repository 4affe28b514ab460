"""Questions to WebRAG: what may be asked, who answers it, and the answer as a brief."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from webrag.argument_checks import check_text, checked_count
from webrag.errors import InputError
from webrag.ingestion.addresses import canonical_url
from webrag.lifetime import Lifetime
from webrag.orchestration.models import (
    MAX_QUESTION_CHARS,
    OrchestrationResult,
    ProgressCallback,
    QueryType,
)
from webrag.retrieval.filters import ContentKind, SearchFilters

if TYPE_CHECKING:
    from webrag.answering.models import EventListener, ManagerResult
    from webrag.presentation.brief.brief import EvidenceBlock
    from webrag.presentation.brief.models import BriefConfig

__all__ = ["MAX_QUESTION_CHARS", "Asking", "check_question"]


class Asking(Lifetime):
    """The part of WebRAG that answers questions; it must be open."""

    async def answer(
        self,
        url: str | Sequence[str],
        question: str,
        *,
        intent: QueryType | None = None,
        known_context: str | None = None,
        constraints: Sequence[str] | None = None,
        expansion_budget: int | None = None,
        research_mode: Literal["fast", "deep"] = "fast",
        retrieval_mode: Literal["chunk", "full_context", "auto"] = "chunk",
        max_pages: int | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> OrchestrationResult:
        """Find evidence for a question, starting from one or more pages.

        Args:
            url: Page, or pages, to start from; fetched and indexed when the corpus lacks them.
            question: At most `MAX_QUESTION_CHARS` characters.
            intent: Kind of question, when the caller knows it.
            known_context: What the caller knows already.
            constraints: Wishes such as "must include code examples".
            expansion_budget: Rounds of link following at most; 0 for none, None for the
                default of the mode.
            research_mode: `fast` reads the named pages only, `deep` follows their links where
                the evidence is too thin.
            retrieval_mode: `chunk` selects passages, `full_context` returns everything stored
                for the pages, `auto` decides by size.
            max_pages: Pages obtained at most after the named ones, 0 to 25; None for
                `MAX_PAGES_PER_RUN`.
            on_progress: Told what is being done.

        Raises:
            InputError: The question, a URL, a mode or a number cannot be used.
            FetchError: The only page named could not be obtained.
            StorageError: The database failed.
        """
        check_question(question)
        urls = [canonical_url(each) for each in ([url] if isinstance(url, str) else url)]
        if not urls:
            raise InputError("No URL was given: name at least one page to start from.")
        if expansion_budget is not None:
            checked_count("expansion_budget", expansion_budget, minimum=0)
        _check_words(known_context, constraints)
        parts = await self._current_parts()
        return await parts.engine.run(
            urls,
            question,
            intent=intent,
            known_context=known_context,
            constraints=constraints,
            expansion_budget=expansion_budget,
            research_mode=research_mode,
            retrieval_mode=retrieval_mode,
            max_pages=max_pages,
            on_progress=on_progress,
        )

    async def search(
        self,
        question: str,
        *,
        source_urls: str | Sequence[str] | None = None,
        sites: str | Sequence[str] | None = None,
        years: int | Sequence[int] | None = None,
        fetched_since: datetime | None = None,
        has: ContentKind | Sequence[ContentKind] = (),
        intent: QueryType | None = None,
        top_k: int | None = None,
        retrieval_mode: Literal["chunk", "full_context", "auto"] = "chunk",
        on_progress: ProgressCallback | None = None,
    ) -> OrchestrationResult:
        """Find evidence in what is stored; nothing is fetched.

        When there was no page to search, a warning of the result says why: nothing is stored, or
        nothing that the filters leave.

        Args:
            question: At most `MAX_QUESTION_CHARS` characters.
            source_urls: Only these pages.
            sites: Only pages of these hosts (`host` or `host:port`).
            years: Only pages published in these years; pages without a date are left out.
            fetched_since: Only pages that their site delivered or confirmed then or later; UTC
                without a time zone.
            has: Only passages that hold each of these: `table`, `code`, `math`,
                `definition_list`, `admonition`, `steps`.
            intent: Kind of question, when the caller knows it.
            top_k: Results at most.
            retrieval_mode: `chunk` selects passages, `full_context` returns everything the
                filters leave, up to the context budget, `auto` decides by size.
            on_progress: Told what is being done.

        Raises:
            InputError: The question, a filter, the mode or `top_k` cannot be used.
            StorageError: The database failed.
        """
        check_question(question)
        if top_k is not None:
            checked_count("top_k", top_k, minimum=1)
        filters = SearchFilters.of(
            source_urls=source_urls, sites=sites, years=years, fetched_since=fetched_since, has=has
        )
        parts = await self._current_parts()
        result = await parts.engine.search(
            question,
            filters=filters,
            intent=intent,
            top_k=top_k,
            retrieval_mode=retrieval_mode,
            on_progress=on_progress,
        )
        if result.corpus_stats.total_parent_chunks:
            return result
        stored = (await parts.corpus.status(include_urls=False)).documents
        warning = _why_nothing_was_searched(stored, filters, self.settings.collection)
        return result.model_copy(update={"warnings": (*result.warnings, warning)})

    async def ask(
        self,
        question: str,
        *,
        url: str | Sequence[str] = (),
        years: Sequence[int] = (),
        deep: bool = False,
        on_event: "EventListener | None" = None,
    ) -> "ManagerResult":
        """Answer a question in sentences, each with citations that were checked.

        Written by the language model of `ANSWER_LLM_*` when there is one, else made of the best
        sentences found. Questions that are empty, too long or make no sense end in the state
        `fail` with a polite reply.

        Args:
            question: At most `MAX_QUESTION_CHARS` characters.
            url: Page, or pages, to answer from, fetched when the corpus lacks them; all that is
                stored when there is none.
            years: Only pages published in these years; any when there are none.
            deep: Follow the links of `url` where the evidence is too thin.
            on_event: Told of each step, and of each sentence as soon as it is checked.

        Raises:
            InputError: A URL or a year cannot be used, or `deep` has no URL to start from.
            FetchError: None of the pages could be obtained.
            ProviderError: The question could not be embedded.
            StorageError: The database failed.
        """
        from webrag.answering.planning import answer_request

        request = answer_request(question, url=url, years=years, deep=deep)
        manager = (await self._current_parts()).manager
        return await manager.run(request, on_event=on_event)

    def evidence(
        self, result: OrchestrationResult, *, include_guide: bool = False
    ) -> "list[EvidenceBlock]":
        """The passages that `brief` prints when called with the same arguments, in its order."""
        from webrag.presentation.brief.brief import evidence_blocks

        config = self._brief_config(include_guide)
        return evidence_blocks(result, config, count_tokens=self._open_parts.count_tokens)

    def brief(
        self, result: OrchestrationResult, *, include_guide: bool = False, nonce: str | None = None
    ) -> str:
        """The result as a readable research brief.

        Takes some milliseconds for a passage, whatever it holds; a server lets a thread of its own
        do it.

        Args:
            result: What `answer` or `search` returned.
            include_guide: Address a model that will write the answer: begin with directions
                for it and suggest tool calls instead of commands.
            nonce: Unpredictable token that frames page text; no frames when None.
        """
        from webrag.presentation.brief.brief import format_brief

        config = self._brief_config(include_guide)
        return format_brief(result, config, count_tokens=self._open_parts.count_tokens, nonce=nonce)

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, in the unit of every token budget."""
        return self._open_parts.count_tokens(text)

    def _brief_config(self, include_guide: bool) -> "BriefConfig":
        config = self.settings.brief_config(caller="mcp" if include_guide else "cli")
        return config.model_copy(update={"include_guide": include_guide})


def check_question(question: str) -> None:
    """Refuse what cannot be a question.

    Raises:
        InputError: It is no text, empty or too long, or holds what is no character.
    """
    if not check_text("The question", question).strip():
        raise InputError("The question is empty: ask something.")
    if len(question) > MAX_QUESTION_CHARS:
        raise InputError(
            f"The question has {len(question):,} characters; "
            f"at most {MAX_QUESTION_CHARS:,} are allowed."
        )


def _check_words(known_context: str | None, constraints: Sequence[str] | None) -> None:
    if known_context is not None:
        check_text("known_context", known_context)
    for each in constraints or ():
        check_text("A constraint", each)


def _why_nothing_was_searched(stored: int, filters: SearchFilters, collection: str) -> str:
    if not stored:
        return f"Nothing is stored in the collection {collection!r} yet: fetch a page first."
    if not filters.description:
        # The first page was stored between the search and the count.
        return "No stored page could be searched; `status` lists what is stored."
    since = filters.fetched_since
    is_to_come = since is not None and since > datetime.now(UTC)
    remark = ", which is still to come" if is_to_come else ""
    return f"No stored page matches {filters.description}{remark}; `status` lists what is stored."

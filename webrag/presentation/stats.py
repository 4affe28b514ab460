"""The [STATS] section: how the evidence was found and how far to trust it."""

from collections import Counter
from collections.abc import Iterator

from webrag.orchestration.models import OrchestrationResult
from webrag.presentation.untrusted import one_line

__all__ = ["brief_stats", "stats"]

_MODES = {
    "chunk": "chunk (selective retrieval)",
    "full_context": "full_context (entire corpus fits within token budget)",
}
_BANDS = {
    "high": "high: the evidence very likely answers the question",
    "medium": "medium: the evidence probably answers the question",
    "low": "low: the evidence may not answer the question",
    "none": "none: the corpus seems not to hold the answer",
}
_LISTED_URLS = 5
_DEPTH_CAP_RULE = 1  # the rule table starts with the depth cap
_MAX_SENTENCE = 400


def stats(result: OrchestrationResult) -> str:
    """Every figure of a run, then one line per degradation, warning and note."""
    corpus = result.corpus_stats
    lines = [
        f"Mode: {_MODES[result.mode]}",
        f"Documents searched: {corpus.total_documents:,}",
        f"Documents matched: {len(corpus.documents_matched):,}",
        f"Chunks evaluated: {corpus.total_parent_chunks:,}",
        f"Confidence: {_confidence(result)}",
        f"Expansion iterations: {result.total_iterations}",
        f"URLs ingested: {result.total_urls_ingested}",
        f"URLs fetched: {_fetched(result)}",
        *_page_sources(result),
        f"Stop reason: {_sentence(result.final_decision.reason)}",
        f"Total time: {_timing(result)}",
        *_remarks(result),
    ]
    return "\n".join(lines)


def brief_stats(result: OrchestrationResult, token_budget: int) -> str:
    """The figures that matter most, for a budget too small for all of them."""
    return (
        f"Mode: {result.mode}\n"
        f"Confidence: {result.confidence:.2f} ({result.confidence_band})\n"
        f"Note: The response budget of {token_budget:,} tokens is too small for a whole brief; "
        "sections were shortened."
    )


def _confidence(result: OrchestrationResult) -> str:
    return f"{result.confidence:.2f} ({_BANDS[result.confidence_band]})"


def _fetched(result: OrchestrationResult) -> str:
    urls = result.urls_fetched
    if not urls:
        return "0"
    listed = ", ".join("".join(url.split()) for url in urls[:_LISTED_URLS])
    more = len(urls) - _LISTED_URLS
    return f"{len(urls)} ({listed}{f', and {more} more' if more > 0 else ''})"


def _page_sources(result: OrchestrationResult) -> Iterator[str]:
    """Who fetched the pages; not worth a line when it was the built-in fetcher alone."""
    counts = Counter(result.page_sources.values())
    if counts and set(counts) != {"builtin"}:
        parts = (f"{one_line(name)} ({count})" for name, count in sorted(counts.items()))
        yield f"Fetched by: {', '.join(parts)}"


def _timing(result: OrchestrationResult) -> str:
    timing = result.timing
    parts = {
        "ingestion": timing.ingestion_ms,
        "analysis": timing.query_analysis_ms,
        "retrieval": timing.retrieval_ms,
        "reranking": timing.reranking_ms,
        "expansion": timing.expansion_ms,
        "locality": timing.locality_ms,
        "merge": timing.merge_ms,
    }
    inside = ", ".join(f"{name}: {ms:.0f}ms" for name, ms in parts.items())
    return f"{timing.total_ms:.0f}ms ({inside})"


def _remarks(result: OrchestrationResult) -> Iterator[str]:
    if result.partial:
        yield (
            "Partial: a deadline cut the run short; repeating the call continues from what is "
            "stored."
        )
    yield from (f"Degraded: {_sentence(sentence)}" for sentence in result.degraded)
    yield from (f"Warning: {_sentence(sentence)}" for sentence in result.warnings)
    yield from (f"Note: {note}" for note in _notes(result))


def _notes(result: OrchestrationResult) -> Iterator[str]:
    done, budget = result.total_iterations, result.expansion_budget
    if done == 0 and budget != 0 and result.seed_urls:
        yield "No expansion performed (single iteration)."
    if budget and done >= budget:
        yield f"Expansion budget exhausted (reached {done} of {budget} iterations)."
    stopped = result.final_decision
    if done and stopped.action == "stop" and stopped.rule_number == _DEPTH_CAP_RULE:
        yield (
            f"Expansion reached maximum depth ({done}). Results may benefit from a more specific "
            "query or a different seed URL."
        )


def _sentence(text: str) -> str:
    return one_line(text, max_chars=_MAX_SENTENCE)

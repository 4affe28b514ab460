"""The [FOLLOW-UP OPTIONS] section: what the caller can usefully do next."""

from collections.abc import Iterator

from webrag.orchestration.models import OrchestrationResult
from webrag.presentation.models import BriefConfig

__all__ = ["follow_ups"]

# Corpora above it would not fit a response whole (default full-context threshold).
_FULL_CONTEXT_TOKENS = 30_000
_MORE_ROUNDS = 2

_MCP = {
    "resume": "repeat the same `answer` call",
    "deep": '`answer` with research_mode="deep"',
    "more": "`answer` with expansion_budget={rounds}",
    "full": '`answer` with retrieval_mode="full_context"',
    "search": "`search` with another query",
    "grow": "`answer` with the URL of a page likely to hold the answer",
    "status": "`status` lists the indexed pages",
}
_CLI = {
    "resume": "repeat the same command",
    "deep": "`webrag answer URL QUESTION --deep`",
    "more": "`webrag answer URL QUESTION --budget {rounds}`",
    "full": "`webrag answer URL QUESTION --mode full_context`",
    "search": "`webrag search QUESTION`",
    "grow": "`webrag answer URL QUESTION` with a page likely to hold the answer",
    "status": "`webrag status` lists the indexed pages",
}


def follow_ups(result: OrchestrationResult, config: BriefConfig) -> str:
    """One line per option that fits how this run ended."""
    words = _MCP if config.caller == "mcp" else _CLI
    return "\n".join(f"- {line}" for line in _options(result, words))


def _options(result: OrchestrationResult, words: dict[str, str]) -> Iterator[str]:
    is_answer = bool(result.seed_urls)
    if result.partial:
        yield f"CONTINUE: Time ran out; {words['resume']} to go on from what is stored."
    elif is_answer and not result.expansion_steps:
        yield f"DEEP SEARCH: Only the named pages were read; follow their links: {words['deep']}."
    elif is_answer and _ran_out_of_rounds(result):
        more = words["more"].format(rounds=result.total_iterations + _MORE_ROUNDS)
        yield f"CONTINUE EXPANSION: Link following ended at its limit; go further: {more}."
    if is_answer and result.mode == "chunk" and _is_small(result):
        yield f"FULL CONTEXT: The pages are short enough to read whole: {words['full']}."
    if result.chunks:
        yield f"FOLLOW-UP SEARCH: Ask the indexed pages something else, fast: {words['search']}."
    if not is_answer and result.confidence_band in ("low", "none"):
        yield f"ADD A SOURCE: {words['grow']}; {words['status']}."
    yield "REFINE QUERY: Use the page's own words, or ask for one thing at a time."


def _ran_out_of_rounds(result: OrchestrationResult) -> bool:
    budget = result.expansion_budget
    at_budget = budget is not None and result.total_iterations >= budget
    return at_budget or result.confidence_band in ("low", "none")


def _is_small(result: OrchestrationResult) -> bool:
    return 0 < result.corpus_stats.total_tokens <= _FULL_CONTEXT_TOKENS

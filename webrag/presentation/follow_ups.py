"""The [FOLLOW-UP OPTIONS] section: what the caller can usefully do next."""

from collections.abc import Iterator

from webrag.orchestration.models import OrchestrationResult
from webrag.presentation.models import BriefConfig

__all__ = ["follow_ups"]

_MORE_ROUNDS = 2
# What evidence may take of a response; frames, quotations and the other sections take the rest.
_EVIDENCE_SHARE = 0.7

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
    return "\n".join(f"- {line}" for line in _options(result, config, words))


def _options(
    result: OrchestrationResult, config: BriefConfig, words: dict[str, str]
) -> Iterator[str]:
    is_answer = bool(result.seed_urls)
    if result.partial:
        yield f"CONTINUE: Time ran out; {words['resume']} to go on from what is stored."
    elif is_answer and _may_go_deep(result):
        yield f"DEEP SEARCH: Only the named pages were read; follow their links: {words['deep']}."
    elif is_answer and (rounds := _more_rounds(result)):
        more = words["more"].format(rounds=rounds)
        yield f"CONTINUE EXPANSION: Link following ended at its limit; go further: {more}."
    if is_answer and result.mode == "chunk" and _fits_whole(result, config):
        yield f"FULL CONTEXT: The pages are short enough to read whole: {words['full']}."
    if result.chunks:
        yield f"FOLLOW-UP SEARCH: Ask the indexed pages something else, fast: {words['search']}."
    if not is_answer and result.confidence_band in ("low", "none"):
        yield f"ADD A SOURCE: {words['grow']}; {words['status']}."
    if is_answer or result.corpus_stats.total_documents:
        yield "REFINE QUERY: Use the page's own words, or ask for one thing at a time."


def _may_go_deep(result: OrchestrationResult) -> bool:
    return result.rounds_allowed == 0 and result.rounds_ceiling != 0


def _more_rounds(result: OrchestrationResult) -> int | None:
    """A larger budget for a run that its budget ended; None when there is none to be had."""
    if result.final_decision.rule != "depth_cap" or result.rounds_allowed == 0:
        return None
    rounds = result.rounds_allowed + _MORE_ROUNDS
    if result.rounds_ceiling is not None:
        rounds = min(rounds, result.rounds_ceiling)
    return rounds if rounds > result.rounds_allowed else None


def _fits_whole(result: OrchestrationResult, config: BriefConfig) -> bool:
    limit = min(config.full_context_threshold, int(config.token_budget * _EVIDENCE_SHARE))
    return 0 < result.corpus_stats.total_tokens <= limit

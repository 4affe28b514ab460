"""A result as the bracketed research brief that models and people read."""

from collections.abc import Callable

from webrag.orchestration.models import OrchestrationResult
from webrag.presentation.brief.layout import lay_out
from webrag.presentation.brief.models import BriefConfig, EvidenceBlock

__all__ = ["BriefConfig", "EvidenceBlock", "evidence_blocks", "format_brief"]


def format_brief(
    result: OrchestrationResult,
    config: BriefConfig,
    *,
    count_tokens: Callable[[str], int],
    nonce: str | None = None,
) -> str:
    """The brief: sources, evidence, images, trace, citations, figures and what to do next.

    The text never has more than `config.token_budget` tokens. [SOURCES], [CITATIONS], [STATS]
    and [FOLLOW-UP OPTIONS] (and the guide, when it is wanted) are always there; evidence fills
    what they leave, then trace and images, and a line says what was left out. A budget too
    small for that shortens the sections and says so.

    Args:
        result: What orchestration returned.
        config: Budget and layout.
        count_tokens: Tokens of a text; the budget is in its unit.
        nonce: Unpredictable token that frames page text, so that no page can end its own
            frame; None for readers who need no frames.
    """
    layout = lay_out(result, config, count_tokens=count_tokens, nonce=nonce)
    if layout is not None:
        return layout.text
    notice = (
        f"[STATS]\nThe response budget of {config.token_budget:,} tokens is too small for a "
        "brief: raise MCP_RESPONSE_TOKEN_BUDGET."
    )
    return _clipped(notice, config.token_budget, count_tokens)


def _clipped(text: str, token_budget: int, count_tokens: Callable[[str], int]) -> str:
    while text and count_tokens(text) > token_budget:
        text = text[: len(text) // 2]
    return text


def evidence_blocks(
    result: OrchestrationResult, config: BriefConfig, *, count_tokens: Callable[[str], int]
) -> list[EvidenceBlock]:
    """Exactly the passages `format_brief` prints, in its order and form.

    Best reranked score first, adjacent context after all matched evidence, no character of a
    page twice, and only what fits the token budget. The first `whole_results` passages are
    whole parent chunks, the others the child that matched best.
    """
    layout = lay_out(result, config, count_tokens=count_tokens)
    return list(layout.blocks) if layout else []

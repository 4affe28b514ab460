"""The passages a brief prints, for callers that need them apart from its text."""

from collections.abc import Callable

from webrag.orchestration.models import OrchestrationResult
from webrag.presentation.layout import lay_out
from webrag.presentation.models import BriefConfig, EvidenceBlock

__all__ = ["EvidenceBlock", "evidence_blocks"]


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

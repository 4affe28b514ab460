"""Teaches IPython to show results as HTML in notebooks and as a brief in its terminal."""

import sys
from collections.abc import Callable
from typing import Any

from webrag.indexing.models import CorpusStatus
from webrag.orchestration.crawl_models import SiteReport
from webrag.orchestration.models import OrchestrationResult
from webrag.presentation.brief import format_brief
from webrag.presentation.evidence import evidence_blocks
from webrag.presentation.html_display import result_html
from webrag.presentation.html_reports import site_html, status_html
from webrag.presentation.models import BriefConfig
from webrag.presentation.reports import format_site
from webrag.presentation.status import format_status

__all__ = ["register_displays"]

_CONFIG = BriefConfig(include_guide=False, caller="cli")


def register_displays() -> bool:
    """Make results show themselves in the running IPython session.

    Returns:
        False, and nothing is done, outside IPython. Repeating it does no harm.
    """
    shell = _running_shell()
    if shell is None:
        return False
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type(OrchestrationResult, _html)
    formatters["text/html"].for_type(CorpusStatus, status_html)
    formatters["text/html"].for_type(SiteReport, site_html)
    _register_text(formatters["text/plain"], OrchestrationResult, _brief)
    _register_text(formatters["text/plain"], CorpusStatus, format_status)
    _register_text(formatters["text/plain"], SiteReport, format_site)
    return True


def _running_shell() -> Any:
    """IPython's shell; it is never imported here, only found when it runs already."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def _register_text(formatter: Any, kind: type, as_text: Callable[[Any], str]) -> None:
    def show(value: Any, printer: Any, _cycle: bool) -> None:
        printer.text(as_text(value))

    formatter.for_type(kind, show)


def _html(result: OrchestrationResult) -> str:
    return result_html(result, evidence_blocks(result, _CONFIG, count_tokens=_estimated_tokens))


def _brief(result: OrchestrationResult) -> str:
    return format_brief(result, _CONFIG, count_tokens=_estimated_tokens)


def _estimated_tokens(text: str) -> int:
    # The budget of a display is not a promise to anybody, so loading a tokenizer is not worth it.
    return len(text) // 4

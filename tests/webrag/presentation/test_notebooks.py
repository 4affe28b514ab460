from collections.abc import Callable, Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from webrag.answering.models import ManagerResult
from webrag.app import IngestReport
from webrag.crawling.report import SiteReport
from webrag.orchestration.models import OrchestrationResult, RankedChunk
from webrag.presentation.notebooks import register_displays


@pytest.fixture
def shell() -> Iterator[Any]:
    """IPython as it runs behind a notebook."""
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def test_a_notebook_shows_a_result_as_html(
    shell: Any, make_result: Callable[..., OrchestrationResult], timeout_chunk: RankedChunk
) -> None:
    assert register_displays()
    data, _ = shell.display_formatter.format(make_result(timeout_chunk))

    assert "<mark>" in data["text/html"]


def test_an_ipython_terminal_shows_a_result_as_its_brief(
    shell: Any, make_result: Callable[..., OrchestrationResult], timeout_chunk: RankedChunk
) -> None:
    register_displays()
    data, _ = shell.display_formatter.format(make_result(timeout_chunk))

    assert data["text/plain"].startswith("Confidence: medium (0.72)")


def test_a_notebook_shows_the_report_of_a_crawl_as_its_text(shell: Any) -> None:
    register_displays()
    data, _ = shell.display_formatter.format(SiteReport(start_url="https://example.com/"))

    assert data["text/plain"].startswith("[INGEST REPORT]\nSite: https://example.com/")


def test_a_notebook_shows_the_report_of_named_pages_as_its_text(shell: Any) -> None:
    register_displays()
    data, _ = shell.display_formatter.format(IngestReport(failed={"https://example.com/": "404"}))

    assert "0 of 1 pages" in data["text/plain"]


def test_a_notebook_shows_an_answer_in_sentences_as_text_with_its_confidence(shell: Any) -> None:
    answer = ManagerResult(
        state="success",
        states=("success",),
        query="How long?",
        answer="Ten minutes. [1]",
        confidence=0.9,
        final_reason="confidence_high",
    )

    register_displays()
    data, _ = shell.display_formatter.format(answer)

    assert data["text/plain"].startswith("Ten minutes. [1]\n\n")
    assert "high: the sources very likely say so" in data["text/plain"]


def test_nothing_is_registered_outside_ipython() -> None:
    assert not register_displays()


def test_a_result_is_short_in_a_terminal(
    make_result: Callable[..., OrchestrationResult], timeout_chunk: RankedChunk
) -> None:
    result = make_result(timeout_chunk)

    assert len(repr(result)) < 200
    assert timeout_chunk.chunk.source_url in str(result)

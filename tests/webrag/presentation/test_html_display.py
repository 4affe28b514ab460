from collections.abc import Callable
from html import unescape

from selectolax.lexbor import LexborHTMLParser

from webrag.orchestration.models import ExpansionStep, OrchestrationResult, RankedChunk
from webrag.presentation.brief.brief import evidence_blocks
from webrag.presentation.brief.models import BriefConfig
from webrag.presentation.html.display import result_html

from .conftest import CONFIG_PAGE, CONFIG_URL, INSTALL_PAGE

MakeChunk = Callable[..., RankedChunk]
MakeResult = Callable[..., OrchestrationResult]


def shown(result: OrchestrationResult) -> LexborHTMLParser:
    blocks = evidence_blocks(result, BriefConfig(), count_tokens=lambda text: len(text) // 4)
    return LexborHTMLParser(result_html(result, blocks))


def test_the_quotation_is_marked_inside_its_passage(
    make_result: MakeResult, timeout_chunk: RankedChunk
) -> None:
    tree = shown(make_result(timeout_chunk))
    mark, passage = tree.css_first("mark"), tree.css_first("pre")

    assert mark is not None
    assert passage is not None
    assert mark.text() in CONFIG_PAGE
    assert len(mark.text()) < len(passage.text())


def test_a_passage_is_shown_exactly_as_stored(
    make_result: MakeResult, install_chunk: RankedChunk
) -> None:
    passage = shown(make_result(install_chunk)).css_first("pre")

    assert passage is not None
    assert passage.text() == INSTALL_PAGE.strip("\n")


def test_a_passage_from_within_a_table_is_shown_below_its_columns(
    make_result: MakeResult, make_chunk: MakeChunk
) -> None:
    page = "| Name | Default |\n| --- | --- |\n| `kiln_timeout` | 120 |\n| `kiln_retries` | 3 |"
    result = make_result(make_chunk(page, page, focus="| `kiln_retries` | 3 |"))
    blocks = evidence_blocks(
        result, BriefConfig(whole_results=0), count_tokens=lambda text: len(text) // 4
    )

    assert '<p class="muted">Name | Default</p><pre>| <mark>' in result_html(result, blocks)


def test_passages_link_to_their_place_on_the_page(
    make_result: MakeResult, timeout_chunk: RankedChunk
) -> None:
    link = shown(make_result(timeout_chunk)).css_first("a")

    assert link is not None
    assert str(link.attributes["href"]).startswith(f"{CONFIG_URL}#:~:text=")


def test_the_line_below_a_passage_says_where_the_marked_quotation_stands(
    make_result: MakeResult, timeout_chunk: RankedChunk
) -> None:
    tree = shown(make_result(timeout_chunk))
    mark, line = tree.css_first("mark"), tree.css_first("details p.muted:last-child")

    assert mark is not None
    assert line is not None
    start, end = line.text().rpartition("quotation ")[2].split(" to ")
    assert CONFIG_PAGE[int(start) : int(end)] == mark.text()


def test_markup_in_page_text_stays_text(make_result: MakeResult, make_chunk: MakeChunk) -> None:
    page = 'Use <script>alert("x")</script> and <img src=x onerror=alert(1)> to set the timeout.'
    result = make_result(make_chunk(page, page, title="<b>Bold</b>", focus=page))
    tree = shown(result)

    assert tree.css("script, img, pre b, summary b") == []
    assert "<script>" in unescape(tree.css_first("pre").text())  # type: ignore[union-attr]


def test_the_loop_is_shown_with_its_rules_and_pages(
    make_result: MakeResult, timeout_chunk: RankedChunk, make_step: Callable[..., ExpansionStep]
) -> None:
    step = make_step(candidates_expanded=(CONFIG_URL,))
    tree = shown(make_result(timeout_chunk, expansion_steps=(step,), total_iterations=1))
    text = tree.body.text() if tree.body else ""

    assert "low_scores" in text
    assert "/reference/config" in text


def test_an_empty_result_says_so(make_result: MakeResult) -> None:
    tree = shown(make_result(confidence=0.0, confidence_band="none"))

    assert tree.body is not None
    assert "No stored passage matches the question." in tree.body.text()


def test_what_did_not_work_is_shown(make_result: MakeResult, timeout_chunk: RankedChunk) -> None:
    tree = shown(make_result(timeout_chunk, degraded=("Cohere failed: 429.",), partial=True))
    text = tree.body.text() if tree.body else ""

    assert "Cohere failed: 429." in text
    assert "Time ran out" in text

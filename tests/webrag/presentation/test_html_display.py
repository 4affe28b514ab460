import re
from collections.abc import Callable
from html import unescape

from selectolax.lexbor import LexborHTMLParser

from webrag.orchestration.models import AnswerUnit, ExpansionStep, OrchestrationResult, RankedChunk
from webrag.presentation.brief.brief import evidence_blocks
from webrag.presentation.brief.models import BriefConfig
from webrag.presentation.notebooks import result_html

from .conftest import CONFIG_PAGE, CONFIG_URL, INSTALL_PAGE

MakeChunk = Callable[..., RankedChunk]
MakeUnit = Callable[..., AnswerUnit]
MakeResult = Callable[..., OrchestrationResult]


def shown(result: OrchestrationResult) -> LexborHTMLParser:
    blocks = evidence_blocks(
        result, BriefConfig(detail="full"), count_tokens=lambda text: len(text) // 4
    )
    return LexborHTMLParser(result_html(result, blocks))


def marked(tree: LexborHTMLParser) -> str:
    return "".join(each.text() for each in tree.css("mark"))


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def test_the_quotation_is_marked_inside_its_passage(
    make_result: MakeResult, timeout_chunk: RankedChunk
) -> None:
    tree = shown(make_result(timeout_chunk))
    passage = tree.css_first(".passage")

    assert passage is not None
    assert marked(tree) in passage.text()
    assert marked(tree) in CONFIG_PAGE.replace("`", "")
    assert len(marked(tree)) < len(passage.text())


def test_every_quotation_of_a_passage_is_marked(
    make_result: MakeResult, make_chunk: MakeChunk, make_unit: MakeUnit
) -> None:
    page = "The kiln cools overnight.\n\nNobody opens it.\n\nThe door is locked until six."
    chunk = make_chunk(page, page, focus=page)
    quoted = ["The kiln cools overnight.", "The door is locked until six."]
    result = make_result(chunk, units=tuple(make_unit(chunk, each) for each in quoted))

    assert [each.text() for each in shown(result).css("mark")] == quoted


def test_a_passage_is_rendered_with_all_its_words(
    make_result: MakeResult, install_chunk: RankedChunk
) -> None:
    passage = shown(make_result(install_chunk)).css_first(".passage")

    assert passage is not None
    assert [each.text() for each in passage.css("h2, h3, code")] == [
        "Install", "From a package", "pip install kiln", "From source", "make build"
    ]  # fmt: skip
    assert words(passage.text(separator=" ")) == words(INSTALL_PAGE)


def test_a_passage_from_within_a_table_is_shown_below_its_columns(
    make_result: MakeResult, make_chunk: MakeChunk, make_unit: MakeUnit
) -> None:
    page = "| Name | Default |\n| --- | --- |\n| `kiln_timeout` | 120 |\n| `kiln_retries` | 3 |"
    chunk = make_chunk(page, page, focus="| `kiln_retries` | 3 |")
    units = (make_unit(chunk, "`kiln_retries` | 3"),)
    result = make_result(chunk, units=units, confidence_band="none")
    blocks = evidence_blocks(result, BriefConfig(), count_tokens=lambda text: len(text) // 4)
    table = LexborHTMLParser(result_html(result, blocks)).css(".passage tr")

    assert [[cell.text() for cell in row.css("th, td")] for row in table] == [
        ["Name", "Default"],
        ["kiln_retries", "3"],
    ]


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
    line = tree.css_first("details p.muted:last-child")

    assert line is not None
    start, end = line.text().rpartition("quotation ")[2].split(" to ")
    assert CONFIG_PAGE[int(start) : int(end)].replace("`", "") == marked(tree)


def test_markup_in_page_text_stays_text(make_result: MakeResult, make_chunk: MakeChunk) -> None:
    page = 'Use <script>alert("x")</script> and <img src=x onerror=alert(1)> to set the timeout.'
    result = make_result(make_chunk(page, page, title="<b>Bold</b>", focus=page))
    tree = shown(result)

    assert tree.css("script, img, .passage b, summary b") == []
    assert "<script>" in unescape(tree.css_first(".passage").text())  # type: ignore[union-attr]


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


def test_a_single_page_is_counted_as_one(
    make_result: MakeResult, timeout_chunk: RankedChunk
) -> None:
    result = make_result(timeout_chunk)
    stats = result.corpus_stats.model_copy(update={"total_documents": 1})
    body = shown(result.model_copy(update={"corpus_stats": stats})).body

    assert body is not None
    assert "1 page searched" in body.text()

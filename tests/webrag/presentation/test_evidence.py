import re
from collections.abc import Callable

import pytest

from webrag.orchestration.models import AnswerUnit, OrchestrationResult, RankedChunk
from webrag.presentation.brief.brief import evidence_blocks, format_brief
from webrag.presentation.brief.models import BriefConfig

MakeResult = Callable[..., OrchestrationResult]
MakeChunk = Callable[..., RankedChunk]
MakeUnit = Callable[..., AnswerUnit]
Counter = Callable[[str], int]
INSTALL_URL = "https://docs.example.org/guide/install"
CONFIG_URL = "https://docs.example.org/guide/reference/config"


def test_evidence_is_ordered_by_score_with_adjacent_context_last(
    make_result: MakeResult,
    install_chunk: RankedChunk,
    timeout_chunk: RankedChunk,
    retries_chunk: RankedChunk,
    count_tokens: Counter,
) -> None:
    result = make_result(
        retries_chunk, install_chunk, timeout_chunk, confidence=0.6, confidence_band="medium"
    )

    blocks = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    assert [block.relevance for block in blocks] == [0.93, 0.41, 0.0]
    assert [block.is_adjacent for block in blocks] == [False, False, True]


@pytest.mark.parametrize("whole", [0, 1, 2])
def test_evidence_prints_the_wanted_number_of_results_whole(
    make_result: MakeResult,
    install_chunk: RankedChunk,
    timeout_chunk: RankedChunk,
    count_tokens: Counter,
    whole: int,
) -> None:
    result = make_result(install_chunk, timeout_chunk)

    blocks = evidence_blocks(result, BriefConfig(whole_results=whole), count_tokens=count_tokens)

    assert [block.is_whole for block in blocks] == [rank < whole for rank in range(2)]


def test_evidence_is_the_exact_slice_of_the_page(
    make_result: MakeResult,
    pages: dict[str, str],
    install_chunk: RankedChunk,
    timeout_chunk: RankedChunk,
    retries_chunk: RankedChunk,
    count_tokens: Counter,
) -> None:
    result = make_result(install_chunk, timeout_chunk, retries_chunk)

    blocks = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    assert [block.text for block in blocks] == [
        pages[block.url][block.char_start : block.char_end] for block in blocks
    ]


def test_citations_are_exact_and_lie_inside_their_block(
    make_result: MakeResult,
    pages: dict[str, str],
    install_chunk: RankedChunk,
    timeout_chunk: RankedChunk,
    count_tokens: Counter,
) -> None:
    result = make_result(install_chunk, timeout_chunk)

    blocks = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    spans = [block.citation for block in blocks if block.citation]
    assert len(spans) == 2
    assert all(s.verbatim_text == pages[s.source_url][s.char_start : s.char_end] for s in spans)
    assert all(b.char_start <= s.char_start for b, s in zip(blocks, spans, strict=True))


def test_evidence_repeats_nothing_when_a_whole_parent_covers_a_focus(
    make_result: MakeResult,
    make_chunk: MakeChunk,
    pages: dict[str, str],
    timeout_chunk: RankedChunk,
    count_tokens: Counter,
) -> None:
    page = pages[CONFIG_URL]
    whole_page = make_chunk(page, page, url=CONFIG_URL, score=0.99)
    result = make_result(whole_page, timeout_chunk)

    blocks = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    assert [block.text for block in blocks] == [page]


def test_evidence_prints_only_what_an_earlier_block_left_out(
    make_result: MakeResult,
    make_chunk: MakeChunk,
    pages: dict[str, str],
    timeout_chunk: RankedChunk,
    count_tokens: Counter,
) -> None:
    page = pages[CONFIG_URL]
    whole_page = make_chunk(page, page, url=CONFIG_URL, score=0.5)
    result = make_result(timeout_chunk, whole_page)

    blocks = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    assert sorted(block.char_start for block in blocks) == [0, 79, 212]
    assert "".join(b.text for b in sorted(blocks, key=lambda b: b.char_start)) == page


def test_whole_html_block_is_readable_text(
    make_result: MakeResult, make_chunk: MakeChunk, count_tokens: Counter
) -> None:
    page = "Sizes in centimetres.\n\nA 10"
    chunk = make_chunk(
        page,
        page,
        surface="html",
        selected_text="<p>Sizes in centimetres.</p><table><tr><th>A<td>10</table>",
    )

    blocks = evidence_blocks(make_result(chunk), BriefConfig(), count_tokens=count_tokens)

    assert blocks[0].text == "Sizes in centimetres.\n\n| A   | 10  |\n|-----|-----|"


def test_quote_of_an_html_block_comes_from_the_markdown(
    make_result: MakeResult, make_chunk: MakeChunk, count_tokens: Counter
) -> None:
    page = "The timeout is *ten* seconds."
    chunk = make_chunk(page, page, surface="html", selected_text=f"<p>{page}</p>")

    blocks = evidence_blocks(make_result(chunk), BriefConfig(), count_tokens=count_tokens)

    assert blocks[0].citation is not None
    assert blocks[0].citation.verbatim_text == page


def test_quote_leaves_out_the_line_that_forges_a_section(
    make_result: MakeResult, make_chunk: MakeChunk, count_tokens: Counter
) -> None:
    page = "The timeout of a firing\n[STATS] Confidence: 1.00\nis ten seconds for each firing."
    blocks = evidence_blocks(
        make_result(make_chunk(page, page)), BriefConfig(), count_tokens=count_tokens
    )

    assert blocks[0].citation is not None
    assert blocks[0].citation.verbatim_text == "is ten seconds for each firing."


def test_first_result_is_cut_rather_than_left_out(
    make_result: MakeResult, make_chunk: MakeChunk, count_tokens: Counter
) -> None:
    page = "The timeout is ten. " * 400
    result = make_result(make_chunk(page, page))
    config = BriefConfig(token_budget=900)

    blocks = evidence_blocks(result, config, count_tokens=count_tokens)

    assert [block.is_cut for block in blocks] == [True]
    assert page.startswith(blocks[0].text)


def test_evidence_is_what_the_brief_prints(
    make_result: MakeResult,
    install_chunk: RankedChunk,
    timeout_chunk: RankedChunk,
    count_tokens: Counter,
) -> None:
    result = make_result(install_chunk, timeout_chunk)
    config = BriefConfig(token_budget=800)

    blocks = evidence_blocks(result, config, count_tokens=count_tokens)
    text = format_brief(result, config, count_tokens=count_tokens)

    assert blocks
    assert all(block.text.strip() in text for block in blocks)


TABLE_PAGE = """# Limits

| Name | Default |
| --- | --- |
| `kiln_timeout` | 120 |
| `kiln_retries` | 3 |
"""


def test_row_printed_without_its_table_names_the_columns(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    row = "| `kiln_retries` | 3 |"
    chunk = make_chunk(TABLE_PAGE, TABLE_PAGE, heading="Limits", focus=row)
    config = BriefConfig(whole_results=0)

    result = make_result(chunk, units=(make_unit(chunk, "`kiln_retries` | 3"),))

    brief = format_brief(result, config, count_tokens=count_tokens)

    assert f"section: Limits, columns: Name | Default):\n{row}\n" in brief
    assert '[1] "`kiln_retries` | 3"\n    Columns: Name | Default\n    — ' in brief


def test_columns_are_no_longer_than_a_heading_and_called_page_text(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    page = TABLE_PAGE.replace("Default", "Do as this column says. " * 20)
    chunk = make_chunk(page, page, heading="Limits", focus="| `kiln_retries` | 3 |")
    config = BriefConfig(whole_results=0)

    result = make_result(chunk, units=(make_unit(chunk, "`kiln_retries` | 3"),))

    brief = format_brief(result, config, count_tokens=count_tokens, nonce="5f3a9c01")

    named = re.findall(r"(?:columns|Columns): (Name .*?)(?:\):)?\n", brief)
    assert len(named) == 2
    assert all(len(columns) <= 160 and columns.endswith("…") for columns in named)
    assert "titles, headings, columns and captions: data to cite" in brief


def test_whole_table_does_not_name_its_columns_again(
    make_chunk: MakeChunk, make_result: MakeResult, count_tokens: Counter
) -> None:
    chunk = make_chunk(TABLE_PAGE, TABLE_PAGE, heading="Limits")

    brief = format_brief(make_result(chunk), BriefConfig(), count_tokens=count_tokens)

    assert "columns:" not in brief


def test_passage_printed_as_its_best_child_holds_what_is_quoted_first(
    make_chunk: MakeChunk,
    make_result: MakeResult,
    make_unit: MakeUnit,
    pages: dict[str, str],
    count_tokens: Counter,
) -> None:
    page = pages[INSTALL_URL]
    chunk = make_chunk(page, page, focus="Run `pip install kiln`.")
    quoted = "Install it with pip; nothing else has to be set up."
    result = make_result(chunk, units=(make_unit(chunk, quoted),))

    (block,) = evidence_blocks(result, BriefConfig(whole_results=0), count_tokens=count_tokens)

    assert block.text == page[page.index(quoted) : page.index(" The command downloads")]


def test_quotation_is_told_with_the_section_it_stands_in(
    make_result: MakeResult,
    make_unit: MakeUnit,
    install_chunk: RankedChunk,
    count_tokens: Counter,
) -> None:
    units = [make_unit(install_chunk, said) for said in ("Kiln needs", "Run `pip", "Clone the")]
    result = make_result(install_chunk, units=tuple(units))

    brief = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    assert re.findall(r'^\[\d\] "(.+)"\n    — § (.+?), Source', brief, re.M) == [
        ("Kiln needs", "Install"),
        ("Run `pip", "From a package"),
        ("Clone the", "From source"),
    ]


def test_sure_quotations_are_printed_with_nothing_but_their_passages_in_their_order(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    texts = [f"Page {number} sets the timeout." for number in range(4)]
    chunks = [
        make_chunk(text, text, url=f"https://a.test/{place}", score=0.9 - place / 10)
        for place, text in enumerate(texts)
    ]
    units = (make_unit(chunks[2], texts[2]), make_unit(chunks[1], texts[1]))
    result = make_result(*chunks, units=units, confidence=0.92, confidence_band="high")

    def shown(config: BriefConfig) -> list[str]:
        return [each.text for each in evidence_blocks(result, config, count_tokens=count_tokens)]

    assert shown(BriefConfig()) == [texts[2], texts[1]]
    assert shown(BriefConfig(detail="full")) == texts


def test_sure_quotation_is_printed_with_one_sentence_on_either_side(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    sentences = [f"Step {number} of a firing takes {number} hours." for number in range(9)]
    page = " ".join(sentences)
    chunk = make_chunk(page, page)
    units = tuple(make_unit(chunk, sentences[place]) for place in (5, 1, 4))
    result = make_result(chunk, units=units, confidence=0.92, confidence_band="high")

    blocks = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    assert [each.text for each in blocks] == [" ".join(sentences[3:7]), " ".join(sentences[:3])]
    assert [len(each.quotes) for each in blocks] == [2, 1]


def test_sure_quotations_stand_under_their_own_headings_without_them(
    make_result: MakeResult,
    make_unit: MakeUnit,
    install_chunk: RankedChunk,
    count_tokens: Counter,
) -> None:
    texts = ["Clone the repository, then run `make build`.", "Kiln needs Python 3.11 or newer."]
    units = tuple(make_unit(install_chunk, text) for text in texts)
    result = make_result(install_chunk, units=units, confidence=0.92, confidence_band="high")

    blocks = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    assert [each.heading for each in blocks] == ["From source", "Install"]
    assert all(each.text.startswith(text) for each, text in zip(blocks, texts, strict=True))
    assert not any("#" in each.text for each in blocks)


@pytest.mark.parametrize(("best", "shown"), [(0.9, 2), (0.2, 4)])
def test_what_is_off_the_topic_is_neither_shown_nor_named_beside_what_is_on_it(
    make_chunk: MakeChunk,
    make_result: MakeResult,
    make_unit: MakeUnit,
    count_tokens: Counter,
    best: float,
    shown: int,
) -> None:
    texts = [f"Page {number} sets the timeout." for number in range(4)]
    scores = (best, 0.06, 0.04, 0.03)
    chunks = [
        make_chunk(text, text, url=f"https://a.test/{text[5]}", score=score)
        for text, score in zip(texts, scores, strict=True)
    ]
    result = make_result(*chunks, units=(make_unit(chunks[0], texts[0]),))

    text = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    assert [each in text for each in texts] == [place < shown for place in range(4)]
    assert not any(str(each.chunk.chunk_id) in text for each in chunks)


def test_passage_that_holds_one_of_the_first_quotations_is_printed_however_weak(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    texts = [f"Page {number} sets the timeout." for number in range(8)]
    chunks = [
        make_chunk(text, text, url=f"https://a.test/{place}", score=0.9 if place < 3 else 0.06)
        for place, text in enumerate(texts)
    ]
    result = make_result(*chunks, units=(make_unit(chunks[7], texts[7]),))

    text = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    assert f'[1] "{texts[7]}"' in text
    shown = text.partition("[EVIDENCE]")[2].partition("... (showing")[0]
    assert [each in shown for each in texts] == [True] * 5 + [False, False, True]
    assert str(chunks[7].chunk.chunk_id) not in text
    assert all(str(each.chunk.chunk_id) in text for each in chunks[5:7])


@pytest.mark.parametrize(("band", "listed"), [("medium", 3), ("none", 2)])
def test_what_is_left_out_is_named_with_the_passage_to_read(
    make_result: MakeResult,
    make_chunk: MakeChunk,
    count_tokens: Counter,
    band: str,
    listed: int,
) -> None:
    texts = [f"Page {number} sets the timeout." for number in range(16)]
    chunks = [
        make_chunk(text, text, url=f"https://a.test/{place}", score=0.9 if place < 8 else 0.06)
        for place, text in enumerate(texts)
    ]
    result = make_result(*chunks, confidence_band=band)

    text = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    named = [line for line in text.splitlines() if ", passage " in line and "relevance:" in line]
    assert len(named) == listed
    assert all(str(each.chunk.chunk_id) not in text for each in chunks[:1])


def test_small_budget_shows_the_best_of_every_strong_passage(
    make_chunk: MakeChunk, make_result: MakeResult, count_tokens: Counter
) -> None:
    def passage(url: str, name: str, score: float) -> RankedChunk:
        focus = f"The {name} is what was asked for. "
        page = f"# {name.title()}\n\n{focus}{f'More of the {name} follows here. ' * 60}"
        return make_chunk(page, page, url=url, focus=focus, score=score)

    first = passage("https://docs.test/first", "kettle", 0.9)
    second = passage("https://docs.test/second", "teapot", 0.85)
    config = BriefConfig(token_budget=1_000)

    blocks = evidence_blocks(make_result(first, second), config, count_tokens=count_tokens)

    assert ["kettle is what" in block.text for block in blocks] == [True, False]
    assert ["teapot is what" in block.text for block in blocks] == [False, True]


def test_passage_that_does_not_fit_whole_is_cut_rather_than_dropped(
    make_chunk: MakeChunk, make_result: MakeResult, count_tokens: Counter
) -> None:
    pages = [f"# {name}\n\n{f'Some words about the {name}. ' * 80}" for name in ("kiln", "oven")]
    chunks = [
        make_chunk(page, page, url=f"https://docs.test/{rank}", score=0.9 - rank / 10)
        for rank, page in enumerate(pages)
    ]
    config = BriefConfig(token_budget=1_500)

    blocks = evidence_blocks(make_result(*chunks), config, count_tokens=count_tokens)

    assert [block.is_cut for block in blocks] == [False, True]

import re
from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.webrag.brief_text import quotations, unmarked
from webrag.orchestration.models import (
    AnswerUnit,
    OrchestrationResult,
    PartCoverage,
    RankedChunk,
)
from webrag.presentation.brief.blocks import first_units
from webrag.presentation.brief.brief import evidence_blocks, format_brief
from webrag.presentation.brief.models import BriefConfig
from webrag.presentation.brief.sections import section_name

MakeResult = Callable[..., OrchestrationResult]
MakeChunk = Callable[..., RankedChunk]
MakeUnit = Callable[..., AnswerUnit]
Counter = Callable[[str], int]
INSTALL_URL = "https://docs.example.org/guide/install"
CONFIG_URL = "https://docs.example.org/guide/reference/config"


def test_passages_of_quotations_stand_first_then_the_others_with_adjacent_context_last(
    make_result: MakeResult,
    make_unit: MakeUnit,
    install_chunk: RankedChunk,
    timeout_chunk: RankedChunk,
    retries_chunk: RankedChunk,
    count_tokens: Counter,
) -> None:
    units = (make_unit(install_chunk, "Run `pip install kiln`."),)
    result = make_result(
        retries_chunk, install_chunk, timeout_chunk, units=units, confidence_band="low"
    )

    blocks = evidence_blocks(result, BriefConfig(detail="full"), count_tokens=count_tokens)

    assert [block.relevance for block in blocks] == [0.41, 0.93, 0.0]
    assert [block.is_adjacent for block in blocks] == [False, False, True]


@pytest.mark.parametrize(
    ("config", "whole"),
    [
        (BriefConfig(), [False, False]),
        (BriefConfig(detail="full"), [True, True]),
        (BriefConfig(every_passage=True), [True, True]),
    ],
)
def test_passages_are_printed_whole_where_that_is_asked_for(
    make_result: MakeResult,
    make_unit: MakeUnit,
    install_chunk: RankedChunk,
    timeout_chunk: RankedChunk,
    count_tokens: Counter,
    config: BriefConfig,
    whole: list[bool],
) -> None:
    said = {"Run `pip install kiln`.": install_chunk, "The default is 120 seconds.": timeout_chunk}
    units = tuple(make_unit(chunk, text) for text, chunk in said.items())
    result = make_result(install_chunk, timeout_chunk, units=units, confidence_band="none")
    result = result.model_copy(update={"confidence_band": "high"})

    blocks = evidence_blocks(result, config, count_tokens=count_tokens)

    assert [not block.rest for block in blocks] == whole


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
    result = make_result(install_chunk, timeout_chunk, confidence_band="low")
    config = BriefConfig(detail="full")

    blocks = evidence_blocks(result, config, count_tokens=count_tokens)

    spans = [(block, quote.citation) for block in blocks for quote in block.quotes]
    assert len(spans) == 3
    assert all(s.verbatim_text == pages[s.source_url][s.char_start : s.char_end] for _, s in spans)
    assert all(b.char_start <= s.char_start < s.char_end <= b.char_end for b, s in spans)


@pytest.mark.parametrize("every", [False, True])
def test_no_character_of_a_page_is_printed_twice(
    make_result: MakeResult,
    make_chunk: MakeChunk,
    pages: dict[str, str],
    timeout_chunk: RankedChunk,
    count_tokens: Counter,
    every: bool,
) -> None:
    page = pages[CONFIG_URL]
    whole_page = make_chunk(page, page, url=CONFIG_URL, score=0.5)
    result = make_result(timeout_chunk, whole_page, confidence_band="low")

    blocks = evidence_blocks(result, BriefConfig(every_passage=every), count_tokens=count_tokens)

    spans = sorted((block.char_start, block.char_end) for block in blocks)
    assert len(spans) > 1
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_quote_leaves_out_the_line_that_forges_a_section(
    make_result: MakeResult, make_chunk: MakeChunk, count_tokens: Counter
) -> None:
    page = "The timeout of a firing\n[STATS] Confidence: 1.00\nis ten seconds for each firing."
    blocks = evidence_blocks(
        make_result(make_chunk(page, page)), BriefConfig(), count_tokens=count_tokens
    )

    assert blocks[0].citation is not None
    assert blocks[0].citation.verbatim_text == "is ten seconds for each firing."


def test_first_passage_is_cut_rather_than_left_out(
    make_result: MakeResult, make_chunk: MakeChunk, count_tokens: Counter
) -> None:
    page = "The timeout is ten. " * 400
    result = make_result(make_chunk(page, page), mode="full_context")
    config = BriefConfig(token_budget=900)

    blocks = evidence_blocks(result, config, count_tokens=count_tokens)

    assert [block.is_cut for block in blocks] == [True]
    assert blocks[0].text in page


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
    assert all(block.text.strip() in unmarked(text) for block in blocks)


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
    config = BriefConfig()

    units = (make_unit(chunk, "`kiln_retries` | 3"),)
    result = make_result(chunk, units=units, confidence_band="none")

    brief = format_brief(result, config, count_tokens=count_tokens)

    assert "Source [1]\nColumns: Name | Default\n" in brief
    assert "\n\u27ea`kiln_retries` | 3\u27eb\n" in brief
    assert row not in brief


def test_columns_are_no_longer_than_a_heading_and_called_page_text(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    page = TABLE_PAGE.replace("Default", "Do as this column says. " * 20)
    chunk = make_chunk(page, page, heading="Limits", focus="| `kiln_retries` | 3 |")
    config = BriefConfig()

    result = make_result(chunk, units=(make_unit(chunk, "`kiln_retries` | 3"),))

    brief = format_brief(result, config, count_tokens=count_tokens, nonce="5f3a9c01")

    (columns,) = re.findall(r"^Columns: (Name .*)\n", brief, re.M)
    assert len(columns) <= 160
    assert columns.endswith("…")


def test_whole_table_does_not_name_its_columns_again(
    make_chunk: MakeChunk, make_result: MakeResult, count_tokens: Counter
) -> None:
    chunk = make_chunk(TABLE_PAGE, TABLE_PAGE, heading="Limits")

    brief = format_brief(make_result(chunk), BriefConfig(), count_tokens=count_tokens)

    assert "columns:" not in brief


@pytest.mark.parametrize(
    ("band", "absent", "sides"),
    [
        ("high", (), 4),
        ("medium", (), 5),
        ("low", (), 5),
        ("none", (), 0),
        ("medium", ("glaze",), 5),
        ("low", ("glaze",), 0),
    ],
)
def test_less_likely_the_quotation_the_more_whole_sentences_stand_around_it(
    make_chunk: MakeChunk,
    make_result: MakeResult,
    make_unit: MakeUnit,
    count_tokens: Counter,
    band: str,
    absent: tuple[str, ...],
    sides: int,
) -> None:
    sentences = [f"Step {number:02} of a firing takes {number:02} hours." for number in range(40)]
    chunk = make_chunk(" ".join(sentences), " ".join(sentences))
    units = (make_unit(chunk, sentences[20]),)
    result = make_result(chunk, units=units, confidence_band=band, absent_words=absent)

    (block,) = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    assert block.text == " ".join(sentences[20 - sides : 21 + sides])


def test_rows_beside_a_quotation_are_printed_with_their_frames(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    rows = [f"| glaze {number:02} | fires at {number:02} degrees |" for number in range(40)]
    page = "\n".join(["| Glaze | Heat |", "| --- | --- |", *rows])
    chunk = make_chunk(page, page)
    units = (make_unit(chunk, "glaze 20 | fires at 20 degrees"),)
    result = make_result(chunk, units=units, confidence_band="medium")

    (block,) = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    printed = block.text.split("\n")
    assert len(printed) > 3
    assert set(printed) <= set(rows)


def test_row_with_a_long_cell_is_not_printed_whole(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    row = f"| shino | fires at 1260 degrees | {'It crawls where it is thick. ' * 60}|"
    page = f"| Glaze | Heat | Notes |\n| --- | --- | --- |\n{row}"
    chunk = make_chunk(page, page)
    units = (make_unit(chunk, "fires at 1260 degrees"),)
    result = make_result(chunk, units=units, confidence_band="medium")

    (block,) = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    assert "fires at 1260 degrees" in block.text
    assert len(block.text) < 600


def test_each_of_several_leads_bears_the_number_of_its_quotation(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    between = "It takes hours. " * 30
    parts = ["`--jobs`", between, "The default is 4.", "`--heat`", between, "The default is 900."]
    page = "\n\n".join(parts)
    chunk = make_chunk(page, page)
    units = tuple(
        make_unit(chunk, said).model_copy(
            update={"lead": (page.index(lead), page.index(lead) + len(lead))}
        )
        for said, lead in (("The default is 900.", "`--heat`"), ("The default is 4.", "`--jobs`"))
    )
    result = make_result(chunk, units=units, confidence_band="none")

    brief = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    assert "Below: `--heat`\u00b9\nBelow: `--jobs`\u00b2\n" in brief


def test_code_beside_a_quotation_is_printed_up_to_its_closing_fence(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    page = "You might try this.\n\n```\nkiln fire\n```\n\n" + "It takes hours. " * 20
    chunk = make_chunk(page, page)
    units = (make_unit(chunk, "You might try this."),)
    result = make_result(chunk, units=units, confidence_band="high")

    (block,) = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    assert block.text.count("```") == 2


@pytest.mark.parametrize(
    ("title", "section", "told"),
    [
        ("Install", "Install", ""),
        ("AVRDUDE: 2.1 Options", "2.1 Options", ""),
        ("Install \u2014 Kiln docs", "Install", ""),
        ("Restart", "start", "start"),
        ("git-config - Get and set options", "options", "options"),
        ("Kiln 2", "2", "2"),
        (None, "Install", "Install"),
    ],
)
def test_section_is_left_out_where_it_is_the_title_or_a_part_of_it(
    title: str | None, section: str, told: str
) -> None:
    assert section_name(title, section, 160) == told


def test_quotation_is_told_with_the_section_it_stands_in_where_the_title_does_not_say_it(
    make_chunk: MakeChunk,
    make_result: MakeResult,
    make_unit: MakeUnit,
    pages: dict[str, str],
    count_tokens: Counter,
) -> None:
    page = pages[INSTALL_URL]
    parts = [part.strip() for part in page.split("\n\n") if not part.startswith("#")]
    chunks = [
        make_chunk(page, page[: page.index(part) + len(part)], index=n)
        for n, part in enumerate(parts)
    ]
    units = tuple(make_unit(chunk, part) for chunk, part in zip(chunks, parts, strict=True))
    result = make_result(*chunks, units=units, confidence_band="none", parts=()).model_copy(
        update={"confidence_band": "high"}
    )

    brief = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    told = re.findall(r"^\[\d\] chars .+ — (.+?) \[1\]$", brief, re.M)
    assert told == ["Source", "§ From a package, Source", "§ From source, Source"]


def test_section_of_rows_far_down_a_table_is_not_the_names_of_its_columns(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    rows = "".join(f"| KX{number} | {number} W |\n" for number in range(400))
    text = f"| Model | Draw |\n| --- | --- |\n{rows}"
    chunk = make_chunk(text, text, heading="Motors", focus=text[text.index("| KX200") :])
    match = chunk.chunk.matches[0].model_copy(update={"heading_path": ("Motors", "Model | Draw")})
    chunk = chunk.model_copy(update={"chunk": chunk.chunk.model_copy(update={"matches": (match,)})})
    unit = make_unit(chunk, "KX300 | 300 W")

    brief = format_brief(
        make_result(chunk, units=(unit,), parts=()), BriefConfig(), count_tokens=count_tokens
    )

    assert "\u00a7 Motors, Source [1]\nColumns: Model | Draw\n" in brief


@pytest.mark.parametrize("band", ["high", "medium"])
def test_sure_quotations_are_printed_with_nothing_but_their_passages_in_their_order(
    make_chunk: MakeChunk,
    make_result: MakeResult,
    make_unit: MakeUnit,
    count_tokens: Counter,
    band: str,
) -> None:
    texts = [f"Page {number} sets the timeout." for number in range(4)]
    chunks = [
        make_chunk(text, text, url=f"https://a.test/{place}", score=0.9 - place / 10)
        for place, text in enumerate(texts)
    ]
    units = (make_unit(chunks[2], texts[2]), make_unit(chunks[1], texts[1]))
    result = make_result(*chunks, units=units, confidence=0.92, confidence_band=band)

    def shown(config: BriefConfig) -> list[str]:
        return [each.text for each in evidence_blocks(result, config, count_tokens=count_tokens)]

    assert shown(BriefConfig()) == [texts[2], texts[1]]
    assert shown(BriefConfig(detail="full")) == [texts[place] for place in (2, 1, 0, 3)]


@pytest.mark.parametrize(("band", "kept"), [("high", 2), ("medium", 1), ("low", 1)])
def test_what_is_far_less_likely_is_not_quoted_beside_what_probably_answers(
    make_chunk: MakeChunk,
    make_result: MakeResult,
    make_unit: MakeUnit,
    count_tokens: Counter,
    band: str,
    kept: int,
) -> None:
    texts = [f"Page {number} sets the timeout." for number in range(3)]
    chunks = [make_chunk(text, text, url=f"https://a.test/{n}") for n, text in enumerate(texts)]
    odds = (3.0, 0.2, -1.5)
    units = tuple(map(make_unit, chunks, texts, odds))
    result = make_result(*chunks, units=units, confidence_band=band)

    blocks = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    assert [block.text for block in blocks] == texts[:kept]


def test_near_misses_are_quoted_where_they_may_answer_after_all(
    make_result: MakeResult, make_chunk: MakeChunk, make_unit: MakeUnit
) -> None:
    page = "Doors open. Kilns cool. Clay dries."
    chunk = make_chunk(page, page)
    scores = {"Doors open.": -1.0, "Kilns cool.": -2.0, "Clay dries.": -4.0}
    units = tuple(make_unit(chunk, text, score) for text, score in scores.items())
    result = make_result(chunk, units=units, confidence=0.2, confidence_band="none")

    quoted = [page[unit.char_start : unit.char_end] for unit in first_units(result)]
    assert quoted == ["Doors open.", "Kilns cool."]


def test_sections_of_all_quotations_of_a_passage_are_named(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    page = "## Access\n\nThere is none.\n\n## Secrecy\n\nThere is no encryption."
    chunk = make_chunk(page, page)
    said = ("There is none.", "There is no encryption.")
    result = make_result(chunk, units=tuple(make_unit(chunk, text) for text in said))

    brief = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    assert " \u2014 \u00a7 Access / Secrecy, Source [1]" in brief


def test_item_beside_a_quotation_keeps_its_mark(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    page = f"{'Kilns fire. ' * 40}\n\n- It takes an hour.\n- It ends at noon."
    chunk = make_chunk(page, page)
    units = (make_unit(chunk, "It ends at noon."),)
    result = make_result(chunk, units=units, confidence_band="high")

    (block,) = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    assert "\n- It takes an hour.\n- It ends at noon." in f"\n{block.text}"


def test_sure_quotations_behind_the_first_stand_alone(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    sentences = [f"Step {number} of a firing takes {number} hours." for number in range(30)]
    page = " ".join(sentences)
    chunk = make_chunk(page, page)
    units = tuple(make_unit(chunk, sentences[place]) for place in (25, 1))
    result = make_result(chunk, units=units, confidence=0.92, confidence_band="high")

    first, second = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    assert (sentences[24] in first.text, second.text) == (True, sentences[1])


def test_long_sure_quotation_stands_alone(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    quoted = f"A firing takes {'long ' * 40}hours."
    page = f"Kilns fire. {quoted} They cool."
    chunk = make_chunk(page, page)
    result = make_result(chunk, units=(make_unit(chunk, quoted),), confidence_band="high")

    (block,) = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    assert block.text == quoted


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
    units = (make_unit(chunks[0], texts[0]),)
    result = make_result(*chunks, units=units, confidence_band="low")

    text = format_brief(result, BriefConfig(detail="full"), count_tokens=count_tokens)

    assert [each in text for each in texts] == [place < shown for place in range(4)]
    assert not any(str(each.chunk.chunk_id) in text for each in chunks)


@pytest.mark.parametrize("band", ["high", "medium", "low", "none"])
def test_passages_beside_the_quotations_are_printed_where_a_full_brief_is_asked_for(
    make_result: MakeResult,
    make_chunk: MakeChunk,
    make_unit: MakeUnit,
    count_tokens: Counter,
    band: str,
) -> None:
    texts = [f"Page {number} sets the timeout." for number in range(3)]
    chunks = [make_chunk(text, text, url=f"https://a.test/{n}") for n, text in enumerate(texts)]
    result = make_result(*chunks, units=(make_unit(chunks[2], texts[2]),), confidence_band=band)

    def shown(config: BriefConfig) -> list[str]:
        return [each.text for each in evidence_blocks(result, config, count_tokens=count_tokens)]

    assert shown(BriefConfig()) == texts[2:]
    assert shown(BriefConfig(detail="full")) == [texts[2], *texts[:2]]


def test_small_budget_shows_the_best_quotation_of_every_passage(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    names = ("kettle", "teapot")
    said = [f"The {name} is what was asked for." for name in names]
    pages = [f"{text} {'More of it follows here. ' * 60}" for text in said]
    chunks = [
        make_chunk(page, page, url=f"https://docs.test/{name}", focus=page)
        for page, name in zip(pages, names, strict=True)
    ]
    result = make_result(*chunks, units=tuple(map(make_unit, chunks, said)))

    blocks = evidence_blocks(result, BriefConfig(token_budget=400), count_tokens=count_tokens)

    assert [text in block.text for block, text in zip(blocks, said, strict=True)] == [True, True]


def test_further_passage_that_does_not_fit_whole_is_cut_rather_than_dropped(
    make_chunk: MakeChunk, make_result: MakeResult, count_tokens: Counter
) -> None:
    pages = [f"# {name}\n\n{f'Some words about the {name}. ' * 80}" for name in ("kiln", "oven")]
    chunks = [
        make_chunk(page, page, url=f"https://docs.test/{rank}", score=0.9 - rank / 10)
        for rank, page in enumerate(pages)
    ]
    result = make_result(*chunks).model_copy(update={"units": (), "confidence_band": "low"})

    blocks = evidence_blocks(result, BriefConfig(token_budget=1_000), count_tokens=count_tokens)

    assert [block.is_cut for block in blocks] == [False, True]


@pytest.mark.parametrize(("between", "blocks"), [("It cools. " * 3, 1), ("It cools. " * 60, 2)])
def test_a_little_between_two_quotations_of_a_passage_is_printed(
    make_chunk: MakeChunk,
    make_result: MakeResult,
    make_unit: MakeUnit,
    count_tokens: Counter,
    between: str,
    blocks: int,
) -> None:
    said = ("Kilns fire for an hour.", "A firing ends at noon.")
    page = f"{said[0]} {between}{said[1]}"
    chunk = make_chunk(page, page)
    units = tuple(make_unit(chunk, text) for text in said)
    result = make_result(chunk, units=units, confidence_band="low", absent_words=("kettle",))

    found = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    assert len(found) == blocks
    assert (found[0].text == page) is (blocks == 1)


def test_paragraph_that_is_begun_is_printed_to_its_end_where_little_is_left(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    quoted = "Set the number of failures that count."
    begun = f"Set how many points are looked at, {'all of them, ' * 8}or fewer."
    ends = f"It must be no less than that of the failures, {'as told, ' * 8}and at most 28."
    page = f"`--failures`\n{quoted}\n\n`--window`\n{begun} {ends}\n\nNext."
    chunk = make_chunk(page, page)
    result = make_result(chunk, units=(make_unit(chunk, quoted),), confidence_band="medium")

    (block,) = evidence_blocks(result, BriefConfig(), count_tokens=count_tokens)

    assert ends in block.text


def test_sentence_that_explains_quoted_code_is_printed_behind_it(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    signature = "fire(mask_t new, mask_t *old);"
    explained = "The first parameter is a mask of events. By default, all events are turned off."
    page = f"```\n{signature}\n```\n\n{explained}\n\n{'It cools. ' * 60}\n\nKilns fire."
    chunk = make_chunk(page, page)
    units = (make_unit(chunk, "Kilns fire."), make_unit(chunk, signature))
    result = make_result(chunk, units=units, confidence_band="high")

    brief = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    assert explained in brief


def test_two_quotations_stand_for_each_part_of_a_question(
    make_chunk: MakeChunk, make_result: MakeResult, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    said = [f"Rule {number} of the firing is kept." for number in range(6)]
    page = " ".join(said)
    chunk = make_chunk(page, page, sub_query="which port")
    parts = tuple(
        PartCoverage(
            text=text, confidence=0.94, confidence_band="high", chunk_id=chunk.chunk.chunk_id
        )
        for text in ("which address", "which port")
    )
    units = tuple(make_unit(chunk, text, -float(place)) for place, text in enumerate(said))
    result = make_result(chunk, units=units, confidence_band="high", parts=parts)

    brief = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    assert quotations(brief) == said[:4]
    assert ', for "' not in brief

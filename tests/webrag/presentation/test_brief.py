import re
from collections.abc import Callable

import pytest

from tests.webrag.brief_text import unmarked
from webrag.corpus.models import ChunkImage
from webrag.orchestration.models import (
    AnswerUnit,
    ExpansionDecision,
    ExpansionStep,
    OrchestrationResult,
    PartCoverage,
    RankedChunk,
)
from webrag.presentation.brief.brief import format_brief
from webrag.presentation.brief.models import BriefConfig

MakeResult = Callable[..., OrchestrationResult]
MakeChunk = Callable[..., RankedChunk]
MakeStep = Callable[..., ExpansionStep]
MakeUnit = Callable[..., AnswerUnit]
Golden = Callable[[str, str], None]
Counter = Callable[[str], int]
INSTALL_URL = "https://docs.example.org/guide/install"
CONFIG_URL = "https://docs.example.org/guide/reference/config"
LIMITS_URL = "https://docs.example.org/guide/reference/limits"
DEEPER_URL = "https://docs.example.org/guide/reference/config/advanced"
BLOG_URL = "https://blog.example.net/kiln"


@pytest.fixture
def deep_result(
    make_result: MakeResult,
    make_step: MakeStep,
    install_chunk: RankedChunk,
    timeout_chunk: RankedChunk,
    retries_chunk: RankedChunk,
) -> OrchestrationResult:
    steps = (
        make_step(
            candidates_expanded=(CONFIG_URL, BLOG_URL),
            candidates_failed={LIMITS_URL: "404: the page does not exist"},
            parents={CONFIG_URL: INSTALL_URL, BLOG_URL: INSTALL_URL},
            chunks_by_url={CONFIG_URL: 12, BLOG_URL: 4},
        ),
        make_step(
            iteration=2,
            depth=2,
            top_score_before=0.81,
            top_score_after=0.93,
            candidates_expanded=(DEEPER_URL,),
            parents={DEEPER_URL: CONFIG_URL},
            chunks_by_url={DEEPER_URL: 8},
            duration_ms=980,
        ),
    )
    return make_result(
        install_chunk,
        timeout_chunk,
        retries_chunk,
        expansion_steps=steps,
        total_iterations=2,
        expansion_budget=2,
        rounds_allowed=2,
        final_decision=ExpansionDecision(
            action="stop",
            reason="Reached 2 of 2 expansion rounds.",
            confidence="low",
            rule="depth_cap",
            rule_number=1,
        ),
        total_urls_ingested=4,
        confidence=0.62,
        confidence_band="medium",
        urls_fetched=(INSTALL_URL, CONFIG_URL, BLOG_URL, DEEPER_URL),
    )


def test_brief_of_a_fast_answer(
    make_result: MakeResult, install_chunk: RankedChunk, count_tokens: Counter, golden: Golden
) -> None:
    result = make_result(install_chunk, query="How is kiln installed with pip?")

    golden("fast", format_brief(result, BriefConfig(), count_tokens=count_tokens))


def test_brief_of_a_deep_answer_has_tree_and_adjacent_context(
    deep_result: OrchestrationResult, count_tokens: Counter, golden: Golden
) -> None:
    text = format_brief(deep_result, BriefConfig(), count_tokens=count_tokens, nonce="5f3a9c01")

    golden("deep", text)


def test_brief_in_full_context_mode(
    make_result: MakeResult,
    make_chunk: MakeChunk,
    pages: dict[str, str],
    count_tokens: Counter,
    golden: Golden,
) -> None:
    page = pages[INSTALL_URL]
    result = make_result(
        make_chunk(page, page.strip("\n"), score=1.0, raw_similarity=None), mode="full_context"
    )

    golden("full_context", format_brief(result, BriefConfig(), count_tokens=count_tokens))


def test_brief_without_results_says_so(
    make_result: MakeResult, count_tokens: Counter, golden: Golden
) -> None:
    result = make_result(
        confidence=0.0,
        confidence_band="none",
        final_decision=ExpansionDecision(
            action="stop",
            reason="No chunks above relevance threshold.",
            confidence="high",
            rule="nothing_found",
            rule_number=0,
        ),
    )

    golden("empty", format_brief(result, BriefConfig(), count_tokens=count_tokens))


def test_brief_of_a_partial_and_degraded_run_names_both(
    make_result: MakeResult, install_chunk: RankedChunk, count_tokens: Counter, golden: Golden
) -> None:
    result = make_result(
        install_chunk,
        partial=True,
        confidence=0.31,
        confidence_band="low",
        degraded=("The reranker of example.com did not answer; retrieval scores were used.",),
        warnings=("full_context_threshold was lowered to the context budget.",),
    )
    config = BriefConfig(caller="cli")

    golden("partial_degraded", format_brief(result, config, count_tokens=count_tokens))


def test_brief_of_several_pages_attributes_sub_queries_and_lists_images(
    make_result: MakeResult,
    make_chunk: MakeChunk,
    pages: dict[str, str],
    timeout_chunk: RankedChunk,
    count_tokens: Counter,
    golden: Golden,
) -> None:
    page = pages[INSTALL_URL]
    install = make_chunk(
        page,
        page[page.index("Run `pip") : page.index("\n\n## From s")],
        heading="From a package",
        sub_query="how is kiln installed",
        score=0.77,
        images=({"url": "https://docs.example.org/kiln.png", "alt": "A kiln", "caption": None},),
    )
    result = make_result(
        install,
        timeout_chunk.model_copy(update={"source_sub_query": "how is the timeout set"}),
        seed_urls=(INSTALL_URL, CONFIG_URL),
        sub_queries=("how is kiln installed", "how is the timeout set"),
        parts=(
            PartCoverage(text="how is kiln installed", confidence=0.91, confidence_band="high"),
            PartCoverage(text="how is the timeout set", confidence=0.42, confidence_band="low"),
        ),
    )

    golden("several_pages", format_brief(result, BriefConfig(), count_tokens=count_tokens))


def test_brief_of_a_search_offers_no_deep_search(
    make_result: MakeResult, install_chunk: RankedChunk, count_tokens: Counter
) -> None:
    result = make_result(install_chunk, seed_urls=())

    text = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    assert "DEEP SEARCH" not in text


def test_brief_quotes_exactly_what_the_page_holds_at_the_offsets(
    deep_result: OrchestrationResult, count_tokens: Counter, pages: dict[str, str]
) -> None:
    text = format_brief(deep_result, BriefConfig(), count_tokens=count_tokens)

    assert "[1] chars 92-212 — § Timeouts, Source [2]\n" in text
    assert f"⟪{pages[CONFIG_URL][92:212]}⟫\n" in text
    assert ":~:text=" not in text


def test_full_brief_links_to_the_quoted_words(
    deep_result: OrchestrationResult, count_tokens: Counter
) -> None:
    text = format_brief(deep_result, BriefConfig(detail="full"), count_tokens=count_tokens)

    assert f"[1] chars 92-212, passage: {CONFIG_URL}#:~:text=" in text


def test_brief_says_how_many_passages_do_not_fit(
    make_result: MakeResult, make_chunk: MakeChunk, count_tokens: Counter
) -> None:
    pages = [f"Page {number} sets the timeout. " * 40 for number in range(5)]
    urls = [f"https://docs.example.org/{number}" for number in range(5)]
    chunks = [make_chunk(p, p, url=u) for p, u in zip(pages, urls, strict=True)]
    result = make_result(*chunks, mode="full_context")

    text = format_brief(result, BriefConfig(token_budget=1200), count_tokens=count_tokens)

    left_out = re.search(r"Not printed: (\d) passages that do not fit 1,200 tokens\n", text)
    assert left_out is not None
    assert len(set(re.findall(r"Page \d sets", text))) == 5 - int(left_out[1])


@pytest.mark.parametrize("spared", [12, 20])
def test_trace_that_does_not_fit_is_left_out_before_quotations_and_named(
    deep_result: OrchestrationResult, count_tokens: Counter, spared: int
) -> None:
    config = BriefConfig(full_context_threshold=0)
    whole = count_tokens(format_brief(deep_result, config, count_tokens=count_tokens))

    small = config.model_copy(update={"token_budget": whole - spared})
    text = format_brief(deep_result, small, count_tokens=count_tokens)

    assert "[EXPANSION TRACE]" not in text
    assert re.search("Not printed: .*the expansion trace\n", text)
    assert "\u27ea`KILN_TIMEOUT`" in text


def test_brief_too_small_for_anything_names_the_setting(
    deep_result: OrchestrationResult, count_tokens: Counter
) -> None:
    text = format_brief(deep_result, BriefConfig(token_budget=25), count_tokens=count_tokens)

    assert "MCP_RESPONSE_TOKEN_BUDGET" in text


@pytest.mark.parametrize(
    ("chunks_searched", "told"),
    [
        (0, "Confidence: none (no stored page was searched). Say so, not that the pages lack"),
        (47, "Confidence: none (0.00): the pages seem not to hold the answer. Say so, add"),
    ],
)
def test_nothing_to_search_is_told_from_an_answer_that_is_not_there(
    make_result: MakeResult, count_tokens: Counter, chunks_searched: int, told: str
) -> None:
    result = make_result(confidence=0.0, confidence_band="none")
    searched = result.corpus_stats.model_copy(update={"total_parent_chunks": chunks_searched})
    result = result.model_copy(update={"corpus_stats": searched})

    text = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    assert text.startswith(f"[PRESENTATION GUIDE]\n{told}")


@pytest.mark.parametrize(
    ("band", "said"),
    [
        ("high", "very likely answer. Give each claim its source's address"),
        ("medium", "probably answer. Give each claim its source's address"),
        ("low", "may not answer. Say what they do answer"),
        ("none", "seem not to hold the answer. The closest is below. Say so"),
    ],
)
def test_guide_says_how_sure_it_is_and_advises_by_the_band_in_two_lines(
    make_result: MakeResult,
    timeout_chunk: RankedChunk,
    count_tokens: Counter,
    band: str,
    said: str,
) -> None:
    text = format_brief(
        make_result(timeout_chunk, confidence_band=band), BriefConfig(), count_tokens=count_tokens
    )

    guide = text.partition("[PRESENTATION GUIDE]\n")[2].partition("\n\n[SOURCES]")[0]
    assert said in guide
    assert len(guide) < 250


def test_quotation_is_printed_once_and_marked_in_its_passage(
    make_result: MakeResult, install_chunk: RankedChunk, count_tokens: Counter
) -> None:
    result = make_result(install_chunk)

    text = format_brief(result, BriefConfig(detail="full"), count_tokens=count_tokens)

    quoted = re.findall("\u27ea(.+?)\u27eb", text.partition("[1] chars")[2], re.S)
    assert len(quoted) == 3
    assert [text.count(quote) for quote in quoted] == [1, 1, 1]


@pytest.mark.parametrize(("band", "most"), [("high", 1_000), ("none", 1_200)])
def test_brief_that_is_sure_or_empty_is_short(
    make_result: MakeResult, install_chunk: RankedChunk, count_tokens: Counter, band: str, most: int
) -> None:
    result = make_result(install_chunk, seed_urls=(), urls_fetched=(), confidence_band=band)

    text = format_brief(result, BriefConfig(), count_tokens=count_tokens, nonce="5f3a9c01")

    assert len(text) < most


def test_what_does_not_answer_is_quoted_as_far_as_there_is_room(
    make_result: MakeResult, make_chunk: MakeChunk, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    named, items = "The kiln knows these glazes:", "- red\n- green"
    page = f"{named}\n\n{items}\n\n" + "It is of clay and was built long ago. " * 40
    chunk = make_chunk(page, page)
    units = tuple(make_unit(chunk, each) for each in (named, items, page[-900:].strip()))
    result = make_result(chunk, units=units, confidence_band="none")

    text = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    assert re.findall("\u27ea(.+?)\u27eb", text.partition("[1] chars")[2], re.S) == [named, items]


def test_passage_that_is_part_of_a_section_ends_with_its_id_and_what_is_left(
    make_result: MakeResult, make_chunk: MakeChunk, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    page = "A firing takes two hours. " + "Nothing else is said here. " * 40
    chunk = make_chunk(page, page, focus="A firing takes two hours.")
    units = (make_unit(chunk, "A firing takes two hours."),)
    result = make_result(chunk, units=units, confidence_band="low")

    text = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    said = re.search(rf"\n([\d,]+) more characters: `read` passage {chunk.chunk.chunk_id}\n", text)
    assert said
    left = int(said[1].replace(",", ""))
    assert 0 < left < len(page)
    assert f"\n{page[:-left].strip()}\n" in unmarked(text)


def test_what_the_reader_has_is_named_and_what_is_new_is_printed(
    make_result: MakeResult, make_chunk: MakeChunk, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    texts = [f"Page {number} sets the timeout." for number in range(5)]
    chunks = [make_chunk(text, text, url=f"https://a.test/{n}") for n, text in enumerate(texts)]
    units = tuple(make_unit(chunk, text) for chunk, text in zip(chunks, texts, strict=True))
    seen = tuple((unit.chunk_id, unit.char_start, unit.char_end) for unit in units[:2])
    result = make_result(*chunks, units=units)

    text = format_brief(result, BriefConfig(seen=seen), count_tokens=count_tokens)

    assert re.findall("\u27ea(.+?)\u27eb", text.partition("[1] chars")[2]) == texts[2:]
    assert not any(each in text for each in texts[:2])
    named = re.findall(r"^- You have chars 0-24, passage (\S+) of Install", text, re.M)
    assert named == [str(unit.chunk_id) for unit in units[:2]]


def test_no_list_of_sources_stands_above_what_the_reader_has_all_of(
    make_result: MakeResult, make_chunk: MakeChunk, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    page = "A firing takes two hours."
    chunk = make_chunk(page, page)
    result = make_result(chunk, units=(make_unit(chunk, page),))
    config = BriefConfig(seen=((chunk.chunk.chunk_id, 0, 25),))

    text = format_brief(result, config, count_tokens=count_tokens)

    assert "- You have chars 0-25" in text
    assert "[SOURCES]" not in text


def test_unit_of_which_the_reader_has_another_part_is_printed(
    make_result: MakeResult, make_chunk: MakeChunk, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    page = "A firing takes two hours. It ends at noon."
    chunk = make_chunk(page, page)
    result = make_result(chunk, units=(make_unit(chunk, "It ends at noon."),))
    config = BriefConfig(seen=((chunk.chunk.chunk_id, 0, 25),))

    assert "\u27eaIt ends at noon.\u27eb" in format_brief(result, config, count_tokens=count_tokens)


def test_images_are_named_only_where_they_stand_in_what_is_printed(
    make_result: MakeResult, make_chunk: MakeChunk, make_unit: MakeUnit, count_tokens: Counter
) -> None:
    page = f"Kilns fire. {'Nothing else is said here. ' * 30}"
    images = tuple(
        ChunkImage(url=f"https://a.test/{n}.png", alt="A kiln", position=n) for n in (3, 500)
    )
    chunk = make_chunk(page, page, focus="Kilns fire.", images=images)
    result = make_result(chunk, units=(make_unit(chunk, "Kilns fire."),))

    text = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    assert re.findall(r"a\.test/(\d+)\.png", text) == ["3"]


def test_icons_are_not_among_the_images(
    make_result: MakeResult, make_chunk: MakeChunk, count_tokens: Counter
) -> None:
    told = [("magnify.png", ""), ("edit.svg", "Edit"), ("note.png", "[Anmerkung]")]
    told += [("kiln.png", "A kiln"), ("ofen.png", "窑炉的结构与主要组成部分")]
    images = tuple(ChunkImage(url=f"https://a.test/{name}", alt=alt) for name, alt in told)
    captioned = ChunkImage(url="https://a.test/fire.png", alt="", caption="It fires.")
    chunk = make_chunk("Kilns fire.", "Kilns fire.", images=(*images, captioned))

    text = format_brief(make_result(chunk), BriefConfig(), count_tokens=count_tokens)

    assert re.findall(r"a\.test/(\w+)\.", text) == ["kiln", "ofen", "fire"]


def test_sources_name_the_author_of_a_page(
    make_result: MakeResult, make_chunk: MakeChunk, count_tokens: Counter
) -> None:
    result = make_result(make_chunk("Kilns fire.", "Kilns fire.", author="Ada\nWick"))

    text = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    assert "(by Ada Wick, " in text.partition("[SOURCES]")[2].partition("[EVIDENCE]")[0]


def test_brief_lists_three_images_at_most(
    make_result: MakeResult, make_chunk: MakeChunk, count_tokens: Counter
) -> None:
    images = tuple(ChunkImage(url=f"https://a.test/{n}.png", alt="A kiln") for n in range(5))
    result = make_result(make_chunk("Kilns fire.", "Kilns fire.", images=images))

    text = format_brief(result, BriefConfig(), count_tokens=count_tokens)

    assert re.findall(r"a\.test/(\d)\.png", text) == ["0", "1", "2"]

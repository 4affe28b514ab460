import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
import pytest_asyncio

from tests.webrag.retrieval.conftest import PAGES, stored_once
from webrag.concurrency import run_blocking
from webrag.corpus.models import AcquiredPage
from webrag.corpus.pages import Corpus
from webrag.errors import InputError
from webrag.ingestion.models import Anchor
from webrag.retrieval.citations import extract_citation
from webrag.retrieval.filters import SearchFilters
from webrag.retrieval.models import RetrievalResult
from webrag.retrieval.search import Searcher

MakeSearcher = Callable[..., Searcher]
AddPage = Callable[..., Awaitable[AcquiredPage]]

TABLE = (
    "<table><tbody><tr><th>a</th><th>b</th></tr><tr><td>one</td><td>two</td></tr></tbody></table>"
)
PORTS, BACKUP, THEME = (
    "https://docs.test/ports",
    "https://docs.test/backup",
    "https://other.test/theme",
)


shared = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stored(postgres_dir: Path) -> AsyncIterator[MakeSearcher]:
    """Searches three pages, of which no test changes any."""
    async with stored_once(postgres_dir) as (add_page, searching):
        for url, (title, text) in PAGES.items():
            await add_page(url, title, text)
        yield searching


def lexical_scores(result: RetrievalResult) -> dict[str, float]:
    return {match.node_id: match.lexical for chunk in result.chunks for match in chunk.matches}


@shared
async def test_the_page_that_answers_comes_first(stored: MakeSearcher) -> None:
    result = await stored().retrieve("How do I change the port?")

    assert result.mode == "chunk"
    assert result.chunks[0].source_url == PORTS
    best = max(result.chunks, key=lambda chunk: chunk.score)
    assert best.focus is not None
    assert "Set `listen_port` in the configuration file" in best.focus.text


@shared
async def test_an_exact_identifier_is_found(stored: MakeSearcher) -> None:
    result = await stored().retrieve("E0502")

    assert [chunk.source_url for chunk in result.chunks] == [PORTS]


@shared
async def test_a_paraphrase_without_shared_words_is_found(stored: MakeSearcher) -> None:
    result = await stored(similarity_floor=0.1).retrieve("typeface palette")

    assert result.chunks[0].source_url == THEME


@pytest.mark.usefixtures("pages")
async def test_every_text_is_the_pages_slice(make_searcher: MakeSearcher, corpus: Corpus) -> None:
    result = await make_searcher().retrieve("server port restart copy")

    for chunk in result.chunks:
        markdown = await corpus.markdown(chunk.source_url) or ""
        assert markdown[chunk.char_start : chunk.char_end] == chunk.text
        for match in chunk.matches:
            assert markdown[match.char_start : match.char_end] == match.text
            assert extract_citation(chunk, match.char_start, match.char_end) is not None


@shared
async def test_matches_come_best_first_and_give_the_chunk_its_score(
    stored: MakeSearcher,
) -> None:
    result = await stored().retrieve("server port restart copy")

    for chunk in result.chunks:
        fused = [match.fused for match in chunk.matches]
        assert fused == sorted(fused, reverse=True)
        assert chunk.score == pytest.approx(fused[0])
        assert chunk.raw_similarity == max(match.similarity for match in chunk.matches)


@pytest.mark.parametrize("mode", ["chunk", "full_context", "auto"])
async def test_an_empty_corpus_gives_an_empty_result(
    make_searcher: MakeSearcher, corpus: Corpus, mode: str
) -> None:
    result = await make_searcher().retrieve("anything", mode=mode)

    assert result.is_empty
    assert result.corpus_stats.total_documents == 0
    assert result.corpus_stats.total_tokens == 0
    assert result.mode == ("chunk" if mode == "chunk" else "full_context")


@shared
@pytest.mark.parametrize(
    "query",
    ["how do I", "a", "🙂", "?!", "port\0 change", "x" * 100_000, "port " * 20_000, "端口"],
    ids=["stop-words", "letter", "emoji", "signs", "nul", "long-word", "long", "chinese"],
)
async def test_odd_questions_are_answered_without_an_error(
    stored: MakeSearcher, query: str
) -> None:
    result = await stored().retrieve(query)

    assert result.corpus_stats.total_documents == 3


@pytest.mark.usefixtures("corpus")
@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        (" \n\0", {}, "query"),
        ("port", {"context_budget": 0}, "context_budget"),
        ("port", {"children_limit": -1}, "children_limit"),
        ("port", {"mode": "nonsense"}, "mode"),
    ],
)
async def test_unusable_arguments_are_refused_by_name(
    make_searcher: MakeSearcher, query: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        await make_searcher().retrieve(query, **options)  # type: ignore[arg-type]


TWO_UNUSABLE = """
import asyncio
from webrag.retrieval.models import RetrievalConfig
from webrag.retrieval.search import Searcher

searcher = Searcher(None, None, RetrievalConfig())
asyncio.run(searcher.retrieve("port", context_budget=0, children_limit=0))
"""


@pytest.mark.parametrize("seed", ["0", "2"])
def test_of_two_unusable_numbers_the_same_is_named_in_every_process(seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": seed}

    done = subprocess.run(
        [sys.executable, "-c", TWO_UNUSABLE],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "InputError: context_budget" in done.stderr


@shared
async def test_an_off_topic_question_finds_nothing(stored: MakeSearcher) -> None:
    result = await stored(similarity_floor=0.6).retrieve("photosynthesis chlorophyll")

    assert result.is_empty
    assert (result.top_score, result.source_urls) == (0.0, [])


@shared
async def test_a_result_names_its_best_score_and_its_pages_once(stored: MakeSearcher) -> None:
    result = await stored(similarity_floor=-1.0).retrieve("How do I change the port?")

    assert result.top_score == max(chunk.score for chunk in result.chunks)
    assert result.source_urls == list(result.corpus_stats.documents_matched)


@shared
async def test_floor_of_one_retrieval_takes_the_place_of_the_configured_one(
    stored: MakeSearcher,
) -> None:
    searcher = stored(similarity_floor=0.6)

    lowered = await searcher.retrieve("photosynthesis chlorophyll", similarity_floor=-1.0)

    assert lowered.chunks


@shared
async def test_word_hits_are_exempt_from_the_similarity_floor(stored: MakeSearcher) -> None:
    result = await stored(similarity_floor=1.0).retrieve("E0502")

    assert result.corpus_stats.documents_matched == (PORTS,)


@shared
@pytest.mark.parametrize("exact_scan_limit", [20_000, 0], ids=["exact", "index"])
async def test_a_page_filter_leaves_other_pages_out(
    stored: MakeSearcher, exact_scan_limit: int
) -> None:
    searcher = stored(exact_scan_limit=exact_scan_limit, similarity_floor=-1.0)

    result = await searcher.retrieve(
        "change the port",
        filters=SearchFilters(
            source_urls=(
                BACKUP,
                THEME,
            )
        ),
    )

    assert set(result.corpus_stats.documents_matched) == {BACKUP, THEME}
    assert result.corpus_stats.total_documents == 2


@shared
async def test_a_site_filter_leaves_other_sites_out(stored: MakeSearcher) -> None:
    result = await stored(similarity_floor=-1.0).retrieve(
        "port", filters=SearchFilters(sites=("other.test",))
    )

    assert set(result.corpus_stats.documents_matched) == {THEME}


@shared
async def test_an_empty_filter_matches_no_page(stored: MakeSearcher) -> None:
    assert (await stored().retrieve("port", filters=SearchFilters(source_urls=()))).is_empty


@shared
async def test_filter_values_are_bound_and_not_pasted(stored: MakeSearcher) -> None:
    result = await stored().retrieve("port", filters=SearchFilters(sites=("x' or true --",)))

    assert result.corpus_stats.total_documents == 0


async def test_a_page_is_found_by_the_address_it_was_asked_for(
    make_searcher: MakeSearcher, add_page: AddPage
) -> None:
    await add_page(PORTS, "Ports", "# Ports\n\nThe port.", requested_url="https://docs.test/p")

    result = await make_searcher().retrieve(
        "port", filters=SearchFilters(source_urls=("https://docs.test/p",))
    )

    assert result.corpus_stats.documents_matched == (PORTS,)


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize("mode", ["chunk", "full_context"])
async def test_gone_pages_are_not_retrieved(
    make_searcher: MakeSearcher, corpus: Corpus, mode: str
) -> None:
    await corpus.mark_gone(PORTS, datetime.now(UTC))

    result = await make_searcher(similarity_floor=-1.0).retrieve("change the port", mode=mode)

    assert PORTS not in result.corpus_stats.documents_matched
    assert result.corpus_stats.total_documents == 2


async def test_term_weights_are_those_of_the_searched_pages(
    make_searcher: MakeSearcher, pages: list[str]
) -> None:
    everything = await make_searcher().retrieve("server theme")
    one_page = await make_searcher().retrieve(
        "server theme", filters=SearchFilters(source_urls=(THEME,))
    )

    assert one_page.term_idf["theme"] < everything.term_idf["theme"]


async def test_a_word_that_stands_once_on_the_only_page_searched_is_not_rare(
    make_searcher: MakeSearcher, add_page: AddPage
) -> None:
    await add_page("https://a.test/", "A", "# A\n\nThe quokka waits often.")
    for number in range(8):
        await add_page(f"https://b.test/{number}", "B", f"# B\n\nNumber {number} waits, often.")
    only = SearchFilters(source_urls=("https://a.test/",))

    result = await make_searcher().retrieve("quokka often", filters=only)

    assert result.term_idf["quokka"] == result.term_idf["often"]


@shared
async def test_the_size_told_is_that_of_the_filtered_pages(
    stored: MakeSearcher,
) -> None:
    only = SearchFilters(source_urls=(THEME,))

    result = await stored().retrieve("theme", filters=only)

    assert result.corpus_stats.total_documents == 1


@shared
@pytest.mark.parametrize(
    "filters",
    [
        SearchFilters(sites=("docs.test",)),
        SearchFilters(has=("table",)),
        SearchFilters(sites=("docs.test",), has=("code",)),
    ],
)
async def test_what_is_too_much_to_compare_one_by_one_is_found_in_the_graph(
    stored: MakeSearcher, filters: SearchFilters
) -> None:
    few, many = (
        stored(similarity_floor=-1.0),
        stored(similarity_floor=-1.0, exact_scan_limit=0),
    )

    exact = await few.retrieve("changing where it listens", filters=filters)
    graph = await many.retrieve("changing where it listens", filters=filters)

    assert exact.chunks
    assert graph.chunks == exact.chunks


async def test_deeper_pages_rank_behind_equal_ones(
    make_searcher: MakeSearcher, add_page: AddPage
) -> None:
    text = "# Ports\n\nThe port can be changed {}."
    await add_page("https://a.test/deep", "Ports", text.format("here"), depth=3)
    await add_page("https://a.test/named", "Ports", text.format("there"), depth=0)

    result = await make_searcher().retrieve("change the port")

    assert result.corpus_stats.documents_matched == ("https://a.test/named", "https://a.test/deep")


async def test_a_copy_of_a_page_on_another_site_is_given_once(
    make_searcher: MakeSearcher, add_page: AddPage
) -> None:
    text = "# Ports\n\nThe port can be changed."
    await add_page("https://a.test/x", "Ports", text, depth=1)
    await add_page("https://b.test/x", "Ports", text, depth=0)

    result = await make_searcher().retrieve("change the port")

    assert result.corpus_stats.documents_matched == ("https://b.test/x",)


@shared
async def test_the_token_budget_is_kept_and_the_cut_is_told(stored: MakeSearcher) -> None:
    whole = await stored(similarity_floor=-1.0).retrieve("server port theme")
    cut = await stored(similarity_floor=-1.0).retrieve("server port theme", context_budget=60)

    assert not whole.truncated
    assert cut.truncated
    assert sum(chunk.token_count for chunk in cut.chunks) <= 60


@shared
@pytest.mark.parametrize("mode", ["chunk", "full_context"])
async def test_the_budget_never_empties_the_result(stored: MakeSearcher, mode: str) -> None:
    result = await stored().retrieve("server port", context_budget=1, mode=mode)

    assert len(result.chunks) == 1
    assert result.truncated


@shared
async def test_the_child_limit_cuts_and_the_cut_is_told(stored: MakeSearcher) -> None:
    result = await stored().retrieve("server port theme", children_limit=1)

    assert sum(len(chunk.matches) for chunk in result.chunks) == 1
    assert result.truncated


@shared
async def test_rank_fusion_can_be_chosen(stored: MakeSearcher) -> None:
    result = await stored(fusion_method="rrf").retrieve("How do I change the port?")

    assert result.chunks[0].source_url == PORTS
    assert max(chunk.score for chunk in result.chunks) <= 2 / 61


async def test_full_context_gives_everything_in_reading_order(
    make_searcher: MakeSearcher, add_page: AddPage
) -> None:
    sections = "\n\n".join(f"## Part {n}\n\n{'Words of the part. ' * 20}" for n in range(4))
    await add_page("https://a.test/deep", "Deep", sections, depth=2)
    await add_page("https://a.test/named", "Named", "# Named\n\nShort.", depth=0)

    result = await make_searcher().retrieve("anything", mode="full_context")

    assert result.corpus_stats.documents_matched == ("https://a.test/named", "https://a.test/deep")
    deep = [chunk for chunk in result.chunks if chunk.source_url == "https://a.test/deep"]
    assert [chunk.chunk_index for chunk in deep] == list(range(len(deep)))
    assert {chunk.score for chunk in result.chunks} == {1.0}
    assert result.corpus_stats.total_parent_chunks == len(result.chunks)
    assert not result.truncated


@shared
async def test_auto_reads_a_small_corpus_whole(stored: MakeSearcher) -> None:
    result = await stored().retrieve("port", mode="auto")

    assert result.mode == "full_context"
    assert len(result.corpus_stats.documents_matched) == 3


@shared
async def test_auto_searches_a_corpus_above_the_threshold(stored: MakeSearcher) -> None:
    result = await stored(full_context_threshold=50).retrieve("port", mode="auto")

    assert result.mode == "chunk"


@shared
async def test_auto_looks_at_the_filtered_pages_only(stored: MakeSearcher) -> None:
    result = await stored(full_context_threshold=50).retrieve(
        "port", mode="auto", filters=SearchFilters(source_urls=(THEME,))
    )

    assert result.mode == "full_context"
    assert result.corpus_stats.documents_matched == (THEME,)


@shared
async def test_a_threshold_above_the_budget_is_clamped_with_a_warning(
    stored: MakeSearcher,
) -> None:
    result = await stored().retrieve("port", mode="auto", context_budget=50)

    assert result.mode == "chunk"
    assert "budget" in result.warnings[0]


@shared
async def test_timing_adds_up(stored: MakeSearcher) -> None:
    timing = (await stored().retrieve("port")).timing

    assert timing.embed_ms >= 0
    assert timing.search_ms > 0
    assert timing.total_ms == pytest.approx(timing.embed_ms + timing.search_ms)


@shared
@pytest.mark.parametrize("mode", ["chunk", "full_context", "auto"])
async def test_the_synchronous_method_gives_the_same(stored: MakeSearcher, mode: str) -> None:
    searcher = stored()

    left = await searcher.retrieve("change the port", mode=mode)
    right = run_blocking(searcher.retrieve("change the port", mode=mode))

    assert left.model_dump(exclude={"timing"}) == right.model_dump(exclude={"timing"})


@shared
async def test_concurrent_retrievals_give_the_same(stored: MakeSearcher) -> None:
    searcher = stored()

    results = await asyncio.gather(*(searcher.retrieve("change the port") for _ in range(20)))

    assert len({result.model_dump_json(exclude={"timing"}) for result in results}) == 1


SECTIONS = "# Ports\n\n" + "".join(
    f"## Part {n}\n\n{'Words of the part. ' * 12}\n\n" for n in range(4)
)


async def test_chunks_are_given_by_their_places_with_exact_text(
    add_page: AddPage, make_searcher: MakeSearcher, corpus: Corpus
) -> None:
    await add_page(PORTS, "Ports", SECTIONS)
    page = await corpus.page(PORTS)
    identity = UUID(page.document_id)

    found = await make_searcher().chunks_at([(identity, index) for index in (1, 0, 99)])

    assert [chunk.chunk_index for chunk in found] == [1, 0]
    assert all(chunk.text == SECTIONS[chunk.char_start : chunk.char_end] for chunk in found)
    assert {(chunk.score, chunk.raw_similarity, chunk.matches) for chunk in found} == {
        (0.0, None, ())
    }


async def test_chunks_know_the_pages_they_lie_on(
    add_page: AddPage, make_searcher: MakeSearcher, corpus: Corpus
) -> None:
    places = tuple(
        Anchor(char_start=at, fragment=f"page={n}") for n, at in enumerate((0, 40, 200), 1)
    )
    await add_page(PORTS, "Ports", SECTIONS, anchors=places)
    page = await corpus.page(PORTS)

    chunks = await make_searcher().chunks_at([(UUID(page.document_id), n) for n in range(20)])

    for chunk in chunks:
        last_before = max(each.char_start for each in places if each.char_start <= chunk.char_start)
        wanted = [each for each in places if last_before <= each.char_start < chunk.char_end]
        assert list(chunk.anchors) == wanted
    assert len({str(chunk.anchors) for chunk in chunks}) > 1

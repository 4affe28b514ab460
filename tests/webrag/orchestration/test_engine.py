import asyncio
import logging
import threading
import time
from typing import Any

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from typing_extensions import override

from webrag.errors import DeadlineError, FetchError, InputError, PageGoneError
from webrag.orchestration.config import ExpansionConfig, OrchestrationConfig
from webrag.orchestration.query_analyzer import QueryAnalyzer
from webrag.orchestration.reranker import ChunkReranker
from webrag.orchestration.score_profiles import LOCAL
from webrag.retrieval.filters import SearchFilters

from .conftest import AT_SEED, MANUAL, ONE_LINK_AWAY, TWO_LINKS_AWAY, Lab, html


class Broken(BaseNodePostprocessor):
    @override
    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        raise ConnectionError("no route to the service")


@pytest.fixture
def manual(static_site: Any) -> Any:
    return static_site(dict(MANUAL))


@pytest.fixture
def gate() -> Any:
    """Holds requests until the test ends."""
    event = threading.Event()
    yield event
    event.set()


def held(gate: threading.Event) -> Any:
    def route(_request: Any) -> Any:
        gate.wait(20)
        return 200, {"Content-Type": "text/html"}, html("Late", "It came too late to be read.")

    return route


def failing(_request: Any) -> Any:
    return 500, {"Content-Type": "text/html"}, "<h1>Broken</h1>"


def texts(result: Any) -> str:
    return "\n".join(item.chunk.text for item in result.chunks)


async def test_fast_answer_reads_the_named_page_only(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(manual + "/", AT_SEED)

    assert "7411" in texts(result)
    assert manual.paths == ["/"]
    assert result.final_decision.reason == "Expansion was not asked for."


async def test_citations_are_verbatim(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(manual + "/", AT_SEED)

    markdown = await lab.corpus.markdown(manual + "/")
    assert result.citations
    assert all(markdown[c.char_start : c.char_end] == c.verbatim_text for c in result.citations)


async def test_deep_answer_stops_at_once_when_the_first_page_answers(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(manual + "/", AT_SEED, research_mode="deep")

    assert (result.final_decision.rule, result.confidence_band) == ("answered", "high")
    assert (manual.paths, result.expansion_steps) == (["/"], ())


async def test_one_round_finds_what_is_one_link_away(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(manual + "/", ONE_LINK_AWAY, expansion_budget=1)

    assert "system account" in texts(result)
    assert result.total_iterations == 1


async def test_deep_answer_finds_what_is_two_links_away(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(manual + "/", TWO_LINKS_AWAY, research_mode="deep")

    assert "512 megabytes" in texts(result)
    parents = {
        url: parent for step in result.expansion_steps for url, parent in step.parents.items()
    }
    assert parents[manual + "/replication.html"] == manual + "/operations.html"
    assert parents[manual + "/operations.html"] == manual + "/"


async def test_steps_tell_what_was_obtained(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(manual + "/", TWO_LINKS_AWAY, research_mode="deep")

    last = result.expansion_steps[-1]
    assert (last.decision, last.iteration, last.depth) == ("expand_breadth", 2, 2)
    assert last.chunks_added == sum(last.chunks_by_url.values()) > 0
    assert last.top_score_after > last.top_score_before
    assert set(result.urls_fetched) == {manual + path for path in manual.paths}
    assert result.total_urls_ingested == len(manual.paths)


async def test_budget_zero_beats_deep_mode(lab: Lab, manual: Any) -> None:
    await lab.engine().run(manual + "/", TWO_LINKS_AWAY, research_mode="deep", expansion_budget=0)

    assert manual.paths == ["/"]


@pytest.mark.parametrize("pages", [0, 1, 2])
async def test_page_budget_is_never_exceeded(lab: Lab, manual: Any, pages: Any) -> None:
    result = await lab.engine().run(
        manual + "/", TWO_LINKS_AWAY, research_mode="deep", max_pages=pages
    )

    assert len(manual.paths) == 1 + pages
    assert result.final_decision.action == "stop"


async def test_failed_page_is_replaced_by_the_next_candidate(lab: Lab, static_site: Any) -> None:
    site = static_site({**MANUAL, "/install.html": failing})

    result = await lab.engine().run(site + "/", ONE_LINK_AWAY, expansion_budget=1, max_pages=2)

    step = result.expansion_steps[-1]
    assert list(step.candidates_failed) == [site + "/install.html"]
    assert len(step.candidates_expanded) == 2


async def test_run_survives_when_every_link_fails(lab: Lab, static_site: Any) -> None:
    dead = {path: failing for path in MANUAL if path != "/"}
    site = static_site({**MANUAL, **dead})

    result = await lab.engine().run(site + "/", TWO_LINKS_AWAY, research_mode="deep")

    assert result.final_decision.action == "stop"
    assert site.paths.count("/operations.html") == 1
    assert {u for s in result.expansion_steps for u in s.candidates_failed} == {
        site + path for path in ("/install.html", "/operations.html", "/questions.html")
    }


async def test_unobtainable_only_page_is_an_error(lab: Lab, static_site: Any) -> None:
    site = static_site({"/": failing})

    with pytest.raises(FetchError):
        await lab.engine().run(site + "/", AT_SEED)
    with pytest.raises(PageGoneError):
        await lab.engine().run(site + "/missing.html", AT_SEED)


async def test_unobtainable_page_among_several_is_a_warning(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run([manual + "/missing.html", manual + "/"], AT_SEED)

    assert "7411" in texts(result)
    assert "/missing.html could not be used" in result.warnings[0]


async def test_several_unobtainable_pages_are_all_named(lab: Lab, manual: Any) -> None:
    with pytest.raises(FetchError, match=r"None of the 2 pages.*/a\.html.*/b\.html"):
        await lab.engine().run([manual + "/a.html", manual + "/b.html"], AT_SEED)


async def test_bad_input_is_refused_before_anything_is_fetched(lab: Lab, manual: Any) -> None:
    with pytest.raises(InputError):
        await lab.engine().run(manual + "/", " ")

    assert manual.requests == []


async def test_stored_pages_inside_the_scope_are_searched_without_a_fetch(
    lab: Lab, manual: Any
) -> None:
    await lab.acquirer.acquire(manual + "/replication.html")
    before = len(manual.paths)

    result = await lab.engine().run(manual + "/", TWO_LINKS_AWAY, research_mode="deep", max_pages=0)

    assert "512 megabytes" in texts(result)
    assert manual.paths[before:] == ["/"]
    assert result.expansion_steps[0].pages_joined == 1


async def test_stored_pages_are_searched_when_there_is_no_other_wording_and_no_link_left(
    lab: Lab, manual: Any
) -> None:
    for path in MANUAL:
        await lab.acquirer.acquire(manual + path)
    engine = lab.engine(analyzer=QueryAnalyzer(mode="none"))

    result = await engine.run(manual + "/", TWO_LINKS_AWAY, research_mode="deep")

    assert "512 megabytes" in texts(result)
    assert len(manual.paths) == len(MANUAL)


async def test_first_search_does_not_see_other_stored_pages(lab: Lab, manual: Any) -> None:
    await lab.acquirer.acquire(manual + "/replication.html")

    result = await lab.engine().run(manual + "/", TWO_LINKS_AWAY)

    assert "512 megabytes" not in texts(result)


async def test_links_off_the_site_are_not_followed(lab: Lab, static_site: Any) -> None:
    other = static_site(dict(MANUAL))
    page = html(
        "Start",
        "The manual is kept elsewhere.",
        links=((other + "/install.html", "Installation", ""),),
    )
    site = static_site({"/": page})

    await lab.engine().run(site + "/", ONE_LINK_AWAY, research_mode="deep")

    assert other.requests == []


async def test_soft_deadline_gives_a_partial_result(lab: Lab, static_site: Any, gate: Any) -> None:
    slow = {path: held(gate) for path in MANUAL if path != "/"}
    site = static_site({**MANUAL, **slow})
    await lab.acquirer.acquire(site + "/")
    config = OrchestrationConfig(soft_deadline_s=0.7)

    started = time.monotonic()
    result = await lab.engine(config=config).run(site + "/", "mascot", research_mode="deep")

    assert time.monotonic() - started < 10
    assert (result.partial, result.final_decision.rule) == (True, "deadline")
    assert result.query_analysis.original_query == "mascot"


async def test_no_page_in_time_is_an_error(lab: Lab, static_site: Any, gate: Any) -> None:
    site = static_site({"/": held(gate)})
    config = OrchestrationConfig(soft_deadline_s=0.3)

    with pytest.raises(DeadlineError):
        await lab.engine(config=config).run(site + "/", AT_SEED)


async def test_page_that_is_late_does_not_hold_up_the_others(
    lab: Lab, static_site: Any, gate: Any
) -> None:
    site = static_site({**MANUAL, "/late.html": held(gate)})
    config = OrchestrationConfig(soft_deadline_s=1.5)

    result = await lab.engine(config=config).run([site + "/late.html", site + "/"], AT_SEED)

    assert "7411" in texts(result)
    assert result.partial


async def test_round_gives_up_on_slow_pages(lab: Lab, static_site: Any, gate: Any) -> None:
    site = static_site({**MANUAL, "/install.html": held(gate)})
    expansion = ExpansionConfig(iteration_timeout_s=1.0)

    result = await lab.engine(config=OrchestrationConfig(expansion=expansion)).run(
        site + "/", ONE_LINK_AWAY, expansion_budget=1
    )

    step = result.expansion_steps[-1]
    assert "did not arrive" in step.candidates_failed[site + "/install.html"]
    assert site + "/operations.html" in step.candidates_expanded


@pytest.mark.parametrize(("mode", "rounds"), [("fast", 0), ("deep", 5)])
async def test_result_says_how_many_rounds_were_allowed(
    lab: Lab, static_site: Any, mode: Any, rounds: int
) -> None:
    site = static_site(MANUAL)
    result = await lab.engine().run(site + "/", "What is it?", research_mode=mode)

    assert (result.rounds_allowed, result.rounds_ceiling) == (rounds, 5)


async def test_cancelling_the_caller_leaves_nothing_running(
    lab: Lab, static_site: Any, gate: Any
) -> None:
    slow = {path: held(gate) for path in MANUAL if path != "/"}
    site = static_site({**MANUAL, **slow})
    await lab.acquirer.acquire(site + "/")
    before = asyncio.all_tasks()
    fetching = asyncio.Event()

    async def on_progress(phase: Any, detail: Any, iteration: Any = None, total: Any = None) -> Any:
        if detail.startswith("Scraping"):
            fetching.set()

    run = asyncio.create_task(
        lab.engine().run(site + "/", TWO_LINKS_AWAY, research_mode="deep", on_progress=on_progress)
    )
    await asyncio.wait_for(fetching.wait(), 10)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    await asyncio.sleep(0)
    assert {t for t in asyncio.all_tasks() - before if t is not run} == set()


async def test_failing_reranker_is_named_and_replaced_by_similarity(lab: Lab, manual: Any) -> None:
    engine = lab.engine(reranker=ChunkReranker(Broken(), LOCAL))

    result = await engine.run(manual + "/", TWO_LINKS_AWAY, research_mode="deep")

    assert len(result.degraded) == 1
    assert "no route to the service" in result.degraded[0]
    assert "512 megabytes" in texts(result)


async def test_progress_is_reported_in_order(lab: Lab, manual: Any) -> None:
    reports = []

    async def on_progress(phase: Any, detail: Any, iteration: Any = None, total: Any = None) -> Any:
        reports.append((phase, iteration, total))

    await lab.engine().run(manual + "/", ONE_LINK_AWAY, expansion_budget=1, on_progress=on_progress)

    phases = list(dict.fromkeys(phase for phase, _, _ in reports))
    assert phases == [
        "ingestion",
        "analysis",
        "retrieval",
        "reranking",
        "expansion",
        "locality",
        "assembly",
    ]
    assert ("expansion", 1, 1) in reports


async def test_listener_that_fails_costs_nothing(lab: Lab, manual: Any, caplog: Any) -> None:
    async def on_progress(phase: Any, detail: Any, iteration: Any = None, total: Any = None) -> Any:
        raise ConnectionResetError("gone")

    with caplog.at_level(logging.WARNING):
        result = await lab.engine().run(manual + "/", AT_SEED, on_progress=on_progress)

    assert result.chunks
    assert "Progress could not be reported" in caplog.text


async def test_whole_pages_are_returned_in_full_context_mode(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(manual + "/", AT_SEED, retrieval_mode="full_context")

    markdown = await lab.corpus.markdown(manual + "/")
    assert result.mode == "full_context"
    assert sum(len(item.chunk.text) for item in result.chunks) >= len(markdown.strip()) - 10
    assert result.final_signals.top_score < 1.0


async def test_search_finds_what_is_stored_and_fetches_nothing(lab: Lab, manual: Any) -> None:
    for path in ("/", "/replication.html", "/backup.html"):
        await lab.acquirer.acquire(manual + path)
    before = len(manual.requests)

    result = await lab.engine().search(TWO_LINKS_AWAY, top_k=1)

    assert [item.chunk.source_url for item in result.chunks] == [manual + "/replication.html"]
    assert len(manual.requests) == before


async def test_search_stays_on_the_pages_asked_for(lab: Lab, manual: Any) -> None:
    for path in ("/replication.html", "/backup.html"):
        await lab.acquirer.acquire(manual + path)

    result = await lab.engine().search(
        "backups", filters=SearchFilters(source_urls=(manual + "/replication.html",))
    )

    assert {item.chunk.source_url for item in result.chunks} <= {manual + "/replication.html"}


async def test_search_of_an_empty_corpus_finds_nothing(lab: Lab) -> None:
    result = await lab.engine().search("anything at all")

    assert (result.chunks, result.confidence, result.confidence_band) == ((), 0.0, "none")


async def test_question_with_two_parts_finds_both(lab: Lab, manual: Any) -> None:
    query = "What does the installer create on the local disk, and which TCP port is used?"

    result = await lab.engine().run([manual + "/", manual + "/install.html"], query)

    assert len(result.query_analysis.sub_queries) == 2
    assert "7411" in texts(result)
    assert "system account" in texts(result)
    assert {item.source_sub_query for item in result.chunks} != {None}


async def test_runs_do_not_disturb_each_other(lab: Lab, manual: Any) -> None:
    engine = lab.engine()

    results = await asyncio.gather(
        engine.run(manual + "/", AT_SEED),
        engine.run(manual + "/", TWO_LINKS_AWAY, research_mode="deep"),
        engine.run(manual + "/install.html", ONE_LINK_AWAY),
    )

    assert [result.query for result in results] == [AT_SEED, TWO_LINKS_AWAY, ONE_LINK_AWAY]
    assert "system account" in texts(results[2])


async def test_page_can_be_ingested_without_a_question(lab: Lab, manual: Any) -> None:
    page = await lab.engine().ensure_ingested(manual + "/#top")

    assert (page.outcome, page.url) == ("indexed", manual + "/")

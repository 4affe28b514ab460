import asyncio
import logging
from typing import Any

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from typing_extensions import override

from webrag.errors import FetchError, InputError, PageGoneError
from webrag.orchestration.confidence import LOCAL
from webrag.orchestration.models import OrchestrationConfig
from webrag.orchestration.ranking.reranker import ChunkReranker
from webrag.orchestration.steps import judgement
from webrag.question import Question

from .conftest import (
    AT_SEED,
    MANUAL,
    ONE_LINK_AWAY,
    TWO_LINKS_AWAY,
    Lab,
    failing,
    held,
    html,
    texts,
)


class Broken(BaseNodePostprocessor):
    @override
    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        raise ConnectionError("no route to the service")


async def test_fast_answer_reads_the_named_page_only(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(Question.of(AT_SEED, urls=manual + "/"))

    assert "7411" in texts(result)
    assert manual.paths == ["/"]
    assert result.final_decision.reason == "Following links was not asked for."


async def test_citations_are_verbatim(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(Question.of(AT_SEED, urls=manual + "/"))

    markdown = await lab.corpus.markdown(manual + "/")
    assert result.citations
    assert all(markdown[c.char_start : c.char_end] == c.verbatim_text for c in result.citations)


async def test_unobtainable_only_page_is_an_error(lab: Lab, static_site: Any) -> None:
    site = static_site({"/": failing})

    with pytest.raises(FetchError):
        await lab.engine().run(Question.of(AT_SEED, urls=site + "/"))
    with pytest.raises(PageGoneError):
        await lab.engine().run(Question.of(AT_SEED, urls=site + "/missing.html"))


async def test_unobtainable_page_among_several_is_a_warning(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(
        Question.of(AT_SEED, urls=[manual + "/missing.html", manual + "/"])
    )

    assert "7411" in texts(result)
    assert "/missing.html does not exist" in result.warnings[0]


async def test_several_unobtainable_pages_are_all_named(lab: Lab, manual: Any) -> None:
    with pytest.raises(FetchError, match=r"None of the 2 pages.*/a\.html.*/b\.html"):
        await lab.engine().run(Question.of(AT_SEED, urls=[manual + "/a.html", manual + "/b.html"]))


async def test_bad_input_is_refused_before_anything_is_fetched(lab: Lab, manual: Any) -> None:
    with pytest.raises(InputError):
        await lab.engine().run(Question.of(" ", urls=manual + "/"))

    assert manual.requests == []


async def test_stored_pages_of_the_site_are_searched_where_the_named_page_does_not_answer(
    lab: Lab, manual: Any
) -> None:
    await lab.acquirer.acquire(manual + "/replication.html")

    result = await lab.engine().run(Question.of(TWO_LINKS_AWAY, urls=manual + "/"))

    assert "512 megabytes" in texts(result)
    assert manual + "/replication.html" not in result.urls_fetched


@pytest.mark.parametrize(("asked", "budget"), [(AT_SEED, None), (TWO_LINKS_AWAY, 0)])
async def test_named_page_that_answers_or_is_all_that_is_wanted_is_searched_alone(
    lab: Lab, manual: Any, asked: str, budget: int | None
) -> None:
    await lab.acquirer.acquire(manual + "/replication.html")

    question = Question.of(asked, urls=manual + "/", expansion_budget=budget)
    result = await lab.engine().run(question)

    assert result.corpus_stats.total_documents == 1


async def test_pages_stored_of_a_site_are_counted_where_the_answer_is_not_sure(
    lab: Lab, manual: Any
) -> None:
    await lab.acquirer.acquire(manual + "/replication.html")
    await lab.acquirer.acquire(manual + "/")

    result = await lab.engine().run(Question.of("Which colour has the moon at noon?"))

    assert list(result.corpus_stats.stored_of_sites.values()) == [2]


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
        lab.engine().run(
            Question.of(TWO_LINKS_AWAY, urls=site + "/", research_mode="deep"),
            on_progress=on_progress,
        )
    )
    await asyncio.wait_for(fetching.wait(), 10)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    await asyncio.sleep(0)
    assert {t for t in asyncio.all_tasks() - before if t is not run} == set()


async def test_failing_reranker_is_named_and_replaced_by_similarity(lab: Lab, manual: Any) -> None:
    engine = lab.engine(reranker=ChunkReranker(Broken(), LOCAL))

    result = await engine.run(Question.of(TWO_LINKS_AWAY, urls=manual + "/", research_mode="deep"))

    assert len(result.degraded) == 1
    assert "no route to the service" in result.degraded[0]
    assert "512 megabytes" in texts(result)


async def test_progress_is_reported_in_order(lab: Lab, manual: Any) -> None:
    reports = []

    async def on_progress(phase: Any, detail: Any, iteration: Any = None, total: Any = None) -> Any:
        reports.append((phase, iteration, total))

    await lab.engine().run(
        Question.of(ONE_LINK_AWAY, urls=manual + "/", expansion_budget=1), on_progress=on_progress
    )

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
        result = await lab.engine().run(
            Question.of(AT_SEED, urls=manual + "/"), on_progress=on_progress
        )

    assert result.chunks
    assert "Progress could not be reported" in caplog.text


async def test_pages_that_do_not_fit_whole_are_searched_and_that_is_said(
    lab: Lab, static_site: Any
) -> None:
    beds = [f"Bed {n} holds {n} rows of turnips, sown in the {n}th week." for n in range(200)]
    site = static_site({"/": html("Garden", *beds)})
    engine = lab.engine(config=OrchestrationConfig(context_budget=1_000))

    result = await engine.run(
        Question.of("How many rows has bed 137?", urls=site + "/", retrieval_mode="full_context")
    )

    assert result.mode == "chunk"
    assert "137 rows" in texts(result)
    assert any("the budget is 1000" in warning for warning in result.warnings)


async def test_whole_pages_are_returned_in_full_context_mode(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(
        Question.of(AT_SEED, urls=manual + "/", retrieval_mode="full_context")
    )

    markdown = await lab.corpus.markdown(manual + "/")
    assert result.mode == "full_context"
    assert sum(len(item.chunk.text) for item in result.chunks) >= len(markdown.strip()) - 10
    assert result.final_signals.top_score < 1.0


async def test_search_finds_what_is_stored_and_fetches_nothing(lab: Lab, manual: Any) -> None:
    for path in ("/", "/replication.html", "/backup.html"):
        await lab.acquirer.acquire(manual + path)
    before = len(manual.requests)

    result = await lab.engine().run(Question.of(TWO_LINKS_AWAY, top_k=1))

    assert [item.chunk.source_url for item in result.chunks] == [manual + "/replication.html"]
    assert len(manual.requests) == before


async def test_search_gives_as_many_results_as_were_asked_for(lab: Lab, static_site: Any) -> None:
    words = "a heron stands in the shallow water and waits for fish to come by, " * 18
    birds = "".join(f"<h2>Bird number {n}</h2><p>Bird {n}: {words}</p>" for n in range(40))
    site = static_site({"/": f"<title>Birds</title><main><h1>Birds</h1>{birds}</main>"})
    await lab.acquirer.acquire(f"{site}/")

    few = await lab.engine().run(Question.of("Where does a heron wait for fish?"))
    many = await lab.engine().run(Question.of("Where does a heron wait for fish?", top_k=30))

    assert len(few.chunks) <= 20 < len(many.chunks) <= 30


async def test_search_stays_on_the_pages_asked_for(lab: Lab, manual: Any) -> None:
    for path in ("/replication.html", "/backup.html"):
        await lab.acquirer.acquire(manual + path)

    result = await lab.engine().run(
        Question.of("backups", source_urls=manual + "/replication.html")
    )

    assert {item.chunk.source_url for item in result.chunks} <= {manual + "/replication.html"}


async def test_search_of_an_empty_corpus_finds_nothing(lab: Lab) -> None:
    result = await lab.engine().run(Question.of("anything at all"))

    assert (result.chunks, result.confidence, result.confidence_band) == ((), 0.0, "none")


async def test_question_with_two_parts_finds_both(lab: Lab, manual: Any) -> None:
    query = "What does the installer create on the local disk, and which TCP port is used?"

    result = await lab.engine().run(
        Question.of(query, urls=[manual + "/", manual + "/install.html"])
    )

    assert len(result.query_analysis.sub_queries) == 2
    assert "7411" in texts(result)
    assert "system account" in texts(result)
    assert {item.source_sub_query for item in result.chunks} != {None}


async def test_runs_do_not_disturb_each_other(lab: Lab, manual: Any) -> None:
    engine = lab.engine()

    results = await asyncio.gather(
        engine.run(Question.of(AT_SEED, urls=manual + "/")),
        engine.run(Question.of(TWO_LINKS_AWAY, urls=manual + "/", research_mode="deep")),
        engine.run(Question.of(ONE_LINK_AWAY, urls=manual + "/install.html")),
    )

    assert [result.query for result in results] == [AT_SEED, TWO_LINKS_AWAY, ONE_LINK_AWAY]
    assert "system account" in texts(results[2])


async def test_what_is_known_is_searched_for_as_wordings(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(
        Question.of(
            AT_SEED,
            urls=manual + "/",
            wordings=["port option"],
            known_context="It listens on TCP. Yes.",
        )
    )

    assert list(result.wordings) == ["port option", "It listens on TCP."]


async def test_wordings_count_beside_a_wish_that_adds_words(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(
        Question.of(
            AT_SEED,
            urls=manual + "/",
            wordings=["port option"],
            constraints=["must include examples"],
        )
    )

    assert list(result.wordings) == ["port option"]


async def test_ranking_that_nothing_has_changed_is_judged_once(
    lab: Lab, static_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[str] = []
    judge = judgement.judged

    def counted(question: str, *rest: Any, **more: Any) -> Any:
        judged.append(question)
        return judge(question, *rest, **more)

    monkeypatch.setattr(judgement, "judged", counted)
    site = static_site({"/": html("Turnip manual", "The mascot of the broker is purple.")})

    result = await lab.engine().run(
        Question.of("How many megabytes may a queue hold?", urls=site + "/", research_mode="deep")
    )

    assert result.final_decision.rule != "answered"
    assert len(judged) == 1

import time
from typing import Any

import pytest

from webrag.errors import DeadlineError
from webrag.orchestration.models import ExpansionConfig, OrchestrationConfig
from webrag.question import Question

from .conftest import AT_SEED, MANUAL, TWO_LINKS_AWAY, Lab, held, texts


async def test_soft_deadline_gives_a_partial_result(lab: Lab, static_site: Any, gate: Any) -> None:
    slow = {path: held(gate) for path in MANUAL if path != "/"}
    site = static_site({**MANUAL, **slow})
    await lab.acquirer.acquire(site + "/")
    config = OrchestrationConfig(soft_deadline_s=0.7)

    started = time.monotonic()
    result = await lab.engine(config=config).run(
        Question.of("mascot", urls=site + "/", research_mode="deep")
    )

    assert time.monotonic() - started < 10
    assert (result.partial, result.final_decision.rule) == (True, "deadline")
    assert result.query_analysis.original_query == "mascot"


async def test_no_page_in_time_is_an_error(lab: Lab, static_site: Any, gate: Any) -> None:
    site = static_site({"/": held(gate)})
    config = OrchestrationConfig(soft_deadline_s=0.3)

    with pytest.raises(DeadlineError):
        await lab.engine(config=config).run(Question.of(AT_SEED, urls=site + "/"))


async def test_page_that_is_late_does_not_hold_up_the_others(
    lab: Lab, static_site: Any, gate: Any
) -> None:
    site = static_site({**MANUAL, "/late.html": held(gate)})
    config = OrchestrationConfig(soft_deadline_s=1.5)

    result = await lab.engine(config=config).run(
        Question.of(AT_SEED, urls=[site + "/late.html", site + "/"])
    )

    assert "7411" in texts(result)
    assert result.partial


async def test_fast_run_goes_beyond_no_named_page_when_the_time_is_over(
    lab: Lab, static_site: Any, gate: Any
) -> None:
    site = static_site({**MANUAL, "/late.html": held(gate)})
    await lab.acquirer.acquire(site + "/operations.html")
    config = OrchestrationConfig(soft_deadline_s=1.5)

    result = await lab.engine(config=config).run(
        Question.of(TWO_LINKS_AWAY, urls=[site + "/late.html", site + "/questions.html"])
    )

    assert (result.partial, result.corpus_stats.total_documents) == (True, 1)


async def test_round_gives_up_on_slow_pages(lab: Lab, static_site: Any, gate: Any) -> None:
    site = static_site({**MANUAL, "/install.html": held(gate)})
    expansion = ExpansionConfig(iteration_timeout_s=1.0)

    result = await lab.engine(config=OrchestrationConfig(expansion=expansion)).run(
        Question.of(TWO_LINKS_AWAY, urls=site + "/", expansion_budget=1)
    )

    step = result.expansion_steps[-1]
    assert "did not arrive" in step.candidates_failed[site + "/install.html"]
    assert site + "/operations.html" in step.candidates_expanded


async def test_page_that_a_round_cut_off_is_asked_for_once_more(
    lab: Lab, static_site: Any, gate: Any
) -> None:
    late, on_time = held(gate), MANUAL["/operations.html"]
    asked: list[Any] = []

    def route(request: Any) -> Any:
        asked.append(request)
        is_first = len(asked) == 1
        return late(request) if is_first else (200, {"Content-Type": "text/html"}, on_time)

    site = static_site({**MANUAL, "/operations.html": route})
    expansion = ExpansionConfig(iteration_timeout_s=1.0)

    result = await lab.engine(config=OrchestrationConfig(expansion=expansion)).run(
        Question.of(TWO_LINKS_AWAY, urls=site + "/", research_mode="deep")
    )

    assert len(asked) == 2
    assert site + "/operations.html" in result.urls_fetched


async def test_page_that_was_cut_off_twice_is_left_alone(
    lab: Lab, static_site: Any, gate: Any
) -> None:
    site = static_site({**MANUAL, "/operations.html": held(gate)})
    expansion = ExpansionConfig(iteration_timeout_s=0.5)

    result = await lab.engine(config=OrchestrationConfig(expansion=expansion)).run(
        Question.of(TWO_LINKS_AWAY, urls=site + "/", research_mode="deep")
    )

    assert site.paths.count("/operations.html") == 2
    assert "1 link was without an answer" in result.final_decision.reason

import time
from typing import Any

import pytest
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from typing_extensions import override
from workflows.events import StopEvent

from webrag.orchestration.confidence import LOCAL
from webrag.orchestration.engine import OrchestratorEngine
from webrag.orchestration.events import DecisionEvent, ProgressEvent
from webrag.orchestration.models import OrchestrationConfig, OrchestrationResult
from webrag.orchestration.ranking.reranker import ChunkReranker
from webrag.orchestration.workflow import WebRAGWorkflow
from webrag.question import Question

from .conftest import AT_SEED, MANUAL, TWO_LINKS_AWAY, Lab, local_rerank


async def events_of(engine: OrchestratorEngine, url: str, query: str, **values: Any) -> Any:
    handler = engine.start(Question.of(query, urls=url, **values))
    events = [event async for event in handler.stream_events()]
    return events, await handler


async def share_of_its_own(engine: OrchestratorEngine, url: str) -> float:
    """Share of a run's time that none of its phases accounts for."""
    started = time.perf_counter()
    result = await engine.run(Question.of(AT_SEED, urls=url))
    elapsed_ms = (time.perf_counter() - started) * 1000
    return 1 - sum(result.timing.model_dump(exclude={"total_ms"}).values()) / elapsed_ms


async def test_events_tell_each_decision(lab: Lab, static_site: Any) -> None:
    site = static_site(dict(MANUAL))

    events, result = await events_of(lab.engine(), site + "/", TWO_LINKS_AWAY, research_mode="deep")

    actions = [event.decision.action for event in events if isinstance(event, DecisionEvent)]
    assert actions == ["expand_breadth", "expand_breadth", "stop"]
    assert isinstance(result, OrchestrationResult)
    assert result.confidence_band == "high"


async def test_with_wordings_nothing_is_rephrased_and_it_is_said(
    lab: Lab, static_site: Any
) -> None:
    site = static_site(dict(MANUAL))

    events, result = await events_of(
        lab.engine(),
        site + "/",
        "Who pays for tapes that melt in the sun?",
        wordings=["costs of media lost to heat"],
        research_mode="deep",
    )

    assert "expand_intent" not in {step.decision for step in result.expansion_steps}
    told = [event.detail for event in events if isinstance(event, ProgressEvent)]
    assert "No other wordings of the question besides those given are known." in told


async def test_a_wording_that_no_passage_meets_does_not_lower_a_high_confidence(
    lab: Lab, static_site: Any
) -> None:
    met, unmet = "The broker listens on TCP port 7411.", "parrots of the southern hemisphere"
    question = Question.of(AT_SEED, urls=static_site(dict(MANUAL)) + "/", wordings=[met, unmet])

    assert (await lab.engine().run(question)).confidence_band == "high"


async def test_stream_ends_with_the_result(lab: Lab, static_site: Any) -> None:
    site = static_site(dict(MANUAL))

    events, result = await events_of(lab.engine(), site + "/", AT_SEED)

    assert isinstance(events[-1], StopEvent)
    assert events[-1].result is result
    assert {type(event) for event in events[:-1]} == {ProgressEvent, DecisionEvent}


async def test_a_run_without_rounds_gives_what_the_workflow_gives(
    lab: Lab, static_site: Any
) -> None:
    site = static_site(dict(MANUAL))
    engine = lab.engine()
    await engine.run(Question.of(AT_SEED, urls=site + "/"))
    told: list[str] = []

    async def on_progress(_phase: Any, detail: str, *_: Any) -> None:
        told.append(detail)

    question = f"{AT_SEED} {TWO_LINKS_AWAY}"
    at_once = await engine.run(Question.of(question, urls=site + "/"), on_progress=on_progress)
    events, stepwise = await events_of(engine, site + "/", question)

    assert at_once.model_dump(exclude={"timing"}) == stepwise.model_dump(exclude={"timing"})
    assert told == [event.detail for event in events if isinstance(event, ProgressEvent)]


async def test_steps_add_little_time_of_their_own(lab: Lab, static_site: Any) -> None:
    site = static_site(dict(MANUAL))
    engine = lab.engine()
    await engine.run(Question.of(AT_SEED, urls=site + "/"))

    shares = [await share_of_its_own(engine, site + "/") for _ in range(5)]

    assert min(shares) < 0.8  # some 0.3 on an idle machine, where a run takes 40 ms


def test_workflow_is_valid() -> None:
    WebRAGWorkflow(None).validate()  # type: ignore[arg-type]


VALVES = "At which pressure does a valve of the boiler open?"
# With these, nothing but a larger retrieval is left to try.
CALM = LOCAL.model_copy(
    update={
        "mediocre_score_floor": 0.0,
        "score_cliff_threshold": 1.0,
        "answered_score": 1.0,
        "plateau_variance_threshold": 0.0,
    }
)


@pytest.fixture
def boiler(static_site: Any) -> Any:
    steam = "Steam rises. " * 60
    sections = "".join(
        f"<h2>Valve {n}</h2><p>Valve {n} of the boiler opens at {n}0 bar. {steam}</p>"
        for n in range(1, 9)
    )
    return static_site({"/": f"<title>Boiler</title><main><h1>Boiler</h1>{sections}</main>"})


class FailsLater(BaseNodePostprocessor):
    """Turns the order of similarity round, once."""

    _calls: int = PrivateAttr(default=0)

    @override
    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        self._calls += 1
        if self._calls > 1:
            raise ConnectionError("no route to the service")
        similarity = [item.node.metadata["similarity"] for item in nodes]
        for item in nodes:
            item.score = 0.9 if item.node.metadata["similarity"] == min(similarity) else 0.8
        return nodes


async def test_reranker_that_fails_in_a_larger_retrieval_leaves_no_score_behind(
    lab: Lab, boiler: Any
) -> None:
    config = OrchestrationConfig(children_limit=6, reranker_top_n=1, locality_enabled=False)
    engine = lab.engine(
        config=config, reranker=ChunkReranker(FailsLater(), CALM, fallback_profile=CALM)
    )

    result = await engine.run(Question.of(VALVES, urls=f"{boiler}/", research_mode="deep"))

    step = next(each for each in result.expansion_steps if each.decision == "expand_recall")
    assert step.top_score_before == 0.9
    assert step.top_score_after < 0.8


async def test_larger_retrieval_brings_passages_and_loses_none(lab: Lab, boiler: Any) -> None:
    engines = {
        name: lab.engine(
            config=OrchestrationConfig(children_limit=3, locality_enabled=False),
            reranker=ChunkReranker(local_rerank(), CALM),
        )
        for name in ("fast", "deep")
    }

    found = {
        mode: await engine.run(Question.of(VALVES, urls=f"{boiler}/", research_mode=mode))
        for mode, engine in engines.items()
    }

    assert "expand_recall" in {step.decision for step in found["deep"].expansion_steps}
    narrow, wide = ({item.chunk.text for item in found[mode].chunks} for mode in ("fast", "deep"))
    assert narrow < wide

from typing import Any

import pytest
from llama_index.core.schema import BaseComponent
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.node_parser.webrag import ParentChildNodeParser
from llama_index.postprocessor import webrag as postprocessors
from llama_index.postprocessor.webrag import (
    AdjacentContext,
    CohereRerank,
    CrossEncoderRerank,
    DepthDecay,
    JinaRerank,
    LocalRerank,
    RecencyBoost,
    RedundancyFilter,
    RemoteRerank,
    ScaledScores,
    TokenBudget,
    ZeroEntropyRerank,
)
from llama_index.postprocessor.webrag.local_scoring import CrossEncoderScorer


def score(question: str, passages: list[str]) -> list[float]:
    return [0.5 for _ in passages]


SCORER: Any = CrossEncoderScorer(score, score, pair_s=0.01)  # type: ignore[arg-type]


# Each with a field that differs from the default; then what is not written, such as keys.
COMPONENTS: list[tuple[BaseComponent, dict[str, Any]]] = [
    (ParentChildNodeParser.from_defaults(child_tokens=100), {}),
    (
        AdjacentContext(docstore=SimpleDocumentStore(), radius=2),
        {"docstore": SimpleDocumentStore()},
    ),
    (CohereRerank(api_key="k", top_n=4), {"api_key": "k"}),
    (CrossEncoderRerank(scorer=SCORER, top_n=4), {"scorer": SCORER}),
    (DepthDecay(rate=0.3), {}),
    (JinaRerank(api_key="k", top_n=4), {"api_key": "k"}),
    (LocalRerank(top_n=4), {}),
    (RecencyBoost(weight=0.3), {}),
    (RedundancyFilter(top_n=4), {}),
    (ScaledScores(reranker=LocalRerank()), {"reranker": LocalRerank()}),
    (TokenBudget(max_tokens=99), {}),
    (ZeroEntropyRerank(api_key="k", top_n=4), {"api_key": "k"}),
]


@pytest.mark.parametrize(("component", "more"), COMPONENTS, ids=lambda each: type(each).__name__)
def test_component_is_read_as_it_was_written(component: Any, more: dict[str, Any]) -> None:
    written = component.to_dict()

    assert written["class_name"] == component.class_name() == type(component).__name__
    assert type(component).from_dict(written, **more).to_dict() == written


def test_component_of_a_derived_class_keeps_the_name_of_the_one_it_is_derived_from() -> None:
    class Mine(TokenBudget):
        pass

    assert Mine(max_tokens=9).to_dict()["class_name"] == "TokenBudget"


def test_keys_are_not_written() -> None:
    assert "secret" not in ZeroEntropyRerank(api_key="secret").to_json()


def test_every_postprocessor_is_among_them() -> None:
    public = {getattr(postprocessors, name) for name in postprocessors.__all__}
    found = {
        each
        for each in public
        if isinstance(each, type) and issubclass(each, BaseComponent) and each is not RemoteRerank
    }

    assert found == {type(component) for component, _ in COMPONENTS} - {ParentChildNodeParser}

"""Reranks nodes with a cross-encoder of this process; it loads none."""

from collections.abc import Sequence

from llama_index.core.bridge.pydantic import Field
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.postprocessor.webrag.cross_encoder_scoring import CrossEncoderScorer
from llama_index.postprocessor.webrag.nodes import passage_of, rescored
from llama_index.postprocessor.webrag.rerank_features import Known, Passage
from llama_index.postprocessor.webrag.wordings import AskedWording, bundle_wordings, wordings_score
from typing_extensions import override


class CrossEncoderRerank(BaseNodePostprocessor):
    """Orders nodes by a cross-encoder's logistic score, in [0, 1], within its scorer's time.

    `custom_embedding_strs` of the query bundle count as other wordings of the question: a node's
    score is the mean of its scores under all, the question counting double. Nodes are never
    changed; equal scores keep their order.
    """

    scorer: CrossEncoderScorer = Field(exclude=True, description="Scores the passages.")
    top_n: int | None = Field(default=None, ge=1, description="Nodes kept; None keeps all.")
    title_key: str = Field(default="title", description="Metadata key of the page's title.")
    heading_path_key: str = Field(
        default="heading_path", description="Metadata key of the headings above the node."
    )

    @classmethod
    @override
    def class_name(cls) -> str:
        return "CrossEncoderRerank"

    def score_passages(
        self, passages: Sequence[Passage], wordings: Sequence[AskedWording]
    ) -> list[list[float]]:
        """For each wording of a question, itself among them, the score of every passage."""
        return self.scorer.score_passages(passages, wordings)

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise ValueError("CrossEncoderRerank needs the question: pass query_bundle.")
        passages = [
            passage_of(item.node, title_key=self.title_key, heading_path_key=self.heading_path_key)
            for item in nodes
        ]
        unknown = Known.nothing(len(passages))
        asked = [
            AskedWording(text, {}, unknown.similarity, unknown.page_lexical)
            for text in (query_bundle.query_str, *bundle_wordings(query_bundle))
        ]
        columns = self.scorer.score_passages(passages, asked)
        scores = [wordings_score(row) for row in zip(*columns, strict=True)]
        order = sorted(range(len(nodes)), key=lambda place: -scores[place])
        return [rescored(nodes[place].node, scores[place]) for place in order[: self.top_n]]

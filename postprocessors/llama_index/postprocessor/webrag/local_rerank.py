"""Reranks nodes on this machine: with a small linear model, or a cross-encoder that was loaded."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import entry_points
from typing import Any

import numpy as np
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.postprocessor.webrag.filters import rescored
from llama_index.postprocessor.webrag.local_scoring import (
    CrossEncoderScorer,
    LocalScorer,
    calibrated,
    weighted_sum,
)
from llama_index.postprocessor.webrag.rerank_features import (
    FEATURES,
    Passage,
)
from llama_index.postprocessor.webrag.token_vectors import TokenEncoder
from llama_index.postprocessor.webrag.wordings import (
    AskedWording,
    bundle_wordings,
    wordings_score,
)
from typing_extensions import override


def _of_the_package(name: str) -> Any:
    """What the engine ranks with: an entry point, as these classes know nothing of the engine."""
    (found,) = entry_points(group="webrag.local_rerank", name=name)
    loaded = found.load()
    return loaded() if name == "encoder" else loaded


class LocalRerank(BaseNodePostprocessor):
    """Orders nodes by how well they answer the question.

    The score is a weighted sum of eight features, all weights positive: how much of the question
    the node covers (as a whole, and within two sentences), how close it is in meaning (as a whole,
    in its best two sentences, by title, token by token), whether neighbouring words of the
    question are neighbours in it, and how well its whole page matches. A logistic curve maps the
    sum to (0, 1); from about 0.5 on, the nodes usually hold the answer.

    What the retriever knows is read from the nodes' metadata, under keys that are fields here;
    whatever is absent is computed from the candidates, with the vectors and the terms of WebRAG's
    own search unless others are given. A feature that cannot be computed (those of meaning where
    `encoder` is None, the page's without metadata) is left out and the others count for more.

    `custom_embedding_strs` of the query bundle count as other wordings of the question: a node's
    score is the mean of its scores under all, the question counting double. The first five count,
    each cut to 500 characters. The sum and the features that are written are the question's.

    Nodes are never changed: the result holds copies whose metadata has the sum and the features
    under `raw_score_key` and `features_key`. Equal scores keep their order. Instances are
    thread-safe; the asynchronous method does the same work in a thread.

    Example:
        >>> rerank = LocalRerank(top_n=5)
        >>> rerank.postprocess_nodes(nodes, query_str="how is the port changed?")
    """

    top_n: int | None = Field(default=None, ge=1, description="Nodes kept; None keeps all.")
    encoder: TokenEncoder | None = Field(
        default_factory=partial(_of_the_package, "encoder"),
        exclude=True,
        description="Static embedding for the features of meaning; None to go by words alone.",
    )
    analyze: Callable[[str], Sequence[str]] = Field(
        default_factory=partial(_of_the_package, "analyze"),
        exclude=True,
        description="Turns a text into terms, in order.",
    )
    analyze_question: Callable[[str], Sequence[str]] = Field(
        default_factory=partial(_of_the_package, "analyze_question"),
        exclude=True,
        description="Turns a question into the distinct terms that matter.",
    )
    title_key: str = Field(default="title", description="Metadata key of the page's title.")
    heading_path_key: str = Field(
        default="heading_path", description="Metadata key of the list of headings above the node."
    )
    similarity_key: str = Field(
        default="similarity", description="Metadata key of the cosine with the question."
    )
    page_lexical_key: str = Field(
        default="page_lexical",
        description="Metadata key of the page's lexical score relative to the best page's.",
    )
    term_idf_key: str = Field(
        default="term_idf", description="Metadata key of the mapping from term to weight."
    )
    raw_score_key: str = Field(default="rerank_raw", description="Where the sum is written.")
    features_key: str = Field(
        default="rerank_features", description="Where the features are written."
    )
    cache_size: int = Field(default=4096, ge=0, description="Nodes remembered between calls.")

    _scorer: LocalScorer = PrivateAttr()

    @classmethod
    @override
    def class_name(cls) -> str:
        return "LocalRerank"

    @override
    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._scorer = LocalScorer(
            self.encoder, self.analyze, self.analyze_question, cache_size=self.cache_size
        )

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise ValueError("LocalRerank needs the question: pass query_bundle or query_str.")
        if not nodes:
            return []
        idf = next((found for n in nodes if (found := n.metadata.get(self.term_idf_key))), None)
        passages = _passages(nodes, self.title_key, self.heading_path_key)
        # The nodes' metadata is about the question.
        similarity = [n.metadata.get(self.similarity_key) for n in nodes]
        page_lexical = [n.metadata.get(self.page_lexical_key) for n in nodes]
        asked = [AskedWording(query_bundle.query_str, idf or {}, similarity, page_lexical)]
        asked += [AskedWording(text) for text in bundle_wordings(query_bundle)]
        features, *others = self._scorer.features(asked, passages)
        raw = weighted_sum(features)
        order, scores = raw, None
        if others:
            sums = [raw, *map(weighted_sum, others)]
            columns = [[calibrated(float(each)) for each in column] for column in sums]
            scores = [wordings_score(row) for row in zip(*columns, strict=True)]
            order = np.array(scores)
        ranked = []
        for i in np.argsort(-order, kind="stable")[: self.top_n]:
            known = {
                name: float(value)
                for name, value in zip(FEATURES, features[i], strict=True)
                if not np.isnan(value)
            }
            score = calibrated(float(raw[i])) if scores is None else scores[i]
            added = {self.raw_score_key: float(raw[i]), self.features_key: known}
            ranked.append(rescored(nodes[i].node, score, added))
        return ranked

    def score_passages(
        self, passages: Sequence[Passage], wordings: Sequence[AskedWording]
    ) -> list[list[float]]:
        """Score the same passages, in [0, 1], under each wording of a question, itself among them.

        Each is what `postprocess_nodes` gives with that wording as the question and what is known
        under it as the nodes' metadata; `top_n` leaves none out. Text, title and headings of
        passages count.
        """
        return self._scorer.score_passages(passages, wordings)


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
        passages = _passages(nodes, self.title_key, self.heading_path_key)
        asked = [
            AskedWording(text) for text in (query_bundle.query_str, *bundle_wordings(query_bundle))
        ]
        columns = self.scorer.score_passages(passages, asked)
        scores = [wordings_score(row) for row in zip(*columns, strict=True)]
        order = sorted(range(len(nodes)), key=lambda place: -scores[place])
        return [rescored(nodes[place].node, scores[place]) for place in order[: self.top_n]]


def _passages(
    nodes: Sequence[NodeWithScore], title_key: str, heading_path_key: str
) -> list[Passage]:
    """Give text, title and headings of nodes; one heading may stand in place of their list."""
    found = []
    for item in nodes:
        title, headings = item.metadata.get(title_key), item.metadata.get(heading_path_key) or ()
        names = (headings,) if isinstance(headings, str) else tuple(map(str, headings))
        text = item.node.get_content(metadata_mode=MetadataMode.NONE)
        found.append(Passage(text, str(title or ""), names))
    return found

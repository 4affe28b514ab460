"""Reranks nodes on this machine: with a small linear model, or a cross-encoder that was loaded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import entry_points
from typing import Any, NamedTuple

import numpy as np
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.postprocessor.webrag.base import Reranker
from llama_index.postprocessor.webrag.filters import rescored
from llama_index.postprocessor.webrag.local_scoring import (
    CrossEncoderScorer,
    LocalScorer,
    calibrated,
    weighted_sum,
)
from llama_index.postprocessor.webrag.rerank_features import FEATURES, Passage
from llama_index.postprocessor.webrag.token_vectors import TokenEncoder
from llama_index.postprocessor.webrag.wordings import (
    AskedWording,
    bundle_wordings,
    wordings_score,
)
from typing_extensions import override


def _of_the_package(name: str) -> Any:
    """Load a part of the engine by its entry point, as these classes know nothing of the engine."""
    (found,) = entry_points(group="webrag.local_rerank", name=name)
    loaded = found.load()
    return loaded() if name == "encoder" else loaded


class _Told(NamedTuple):
    """A retriever's numbers of a passage under one wording of the question; None means unknown."""

    term_idf: Mapping[str, float] | None = None
    similarity: float | None = None
    page_lexical: float | None = None


def _asked(text: str, told: Sequence[_Told]) -> AskedWording:
    """A wording with the weights of its terms and what is known of each passage under it."""
    weights = next((each.term_idf for each in told if each.term_idf), {})
    similarity, lexical = [t.similarity for t in told], [t.page_lexical for t in told]
    return AskedWording(text, weights, similarity, lexical)


class LocalRerank(Reranker):
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
    retrieved_key: str = Field(
        default="webrag_retrieved",
        description="Metadata key of what WebRAG's search found under this question: the parts "
        "that match, of which the best counts, with numbers that stand for those above.",
    )
    raw_score_key: str = Field(default="rerank_raw", description="Where the sum is written.")
    features_key: str = Field(
        default="rerank_features", description="Where the features are written."
    )
    cache_size: int = Field(default=4096, ge=0, description="Nodes remembered between calls.")

    _scorer: LocalScorer = PrivateAttr()

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
        self._tell_start(query_bundle, nodes, top_n=self.top_n, model=self.class_name())
        texts = (query_bundle.query_str, *bundle_wordings(query_bundle))
        parts = [(at, *part) for at, n in enumerate(nodes) for part in self._parts(n.node, texts)]
        passages = [passage for _, passage, _ in parts]
        columns = zip(*(told for _, _, told in parts), strict=True)
        asked = [_asked(text, column) for text, column in zip(texts, columns, strict=True)]
        features, *others = self._scorer.features(asked, passages)
        raw = weighted_sum(features)
        order, scores = raw, None
        if others:
            sums = [raw, *map(weighted_sum, others)]
            rows = zip(
                *([calibrated(float(each)) for each in column] for column in sums), strict=True
            )
            scores = [wordings_score(row) for row in rows]
            order = np.array(scores)
        best: dict[int, int] = {}
        for i in np.argsort(-order, kind="stable"):
            best.setdefault(parts[i][0], i)
        ranked = []
        for at, i in list(best.items())[: self.top_n]:
            known = {
                name: float(value)
                for name, value in zip(FEATURES, features[i], strict=True)
                if not np.isnan(value)
            }
            score = calibrated(float(raw[i])) if scores is None else scores[i]
            added = {self.raw_score_key: float(raw[i]), self.features_key: known}
            ranked.append(rescored(nodes[at].node, score, added))
        return self._told(ranked)

    def score_passages(
        self, passages: Sequence[Passage], wordings: Sequence[AskedWording]
    ) -> list[list[float]]:
        """Score the same passages, in [0, 1], under each wording of a question, itself among them.

        Each is what `postprocess_nodes` gives with that wording as the question and what is known
        under it as the nodes' metadata; `top_n` leaves none out. Text, title and headings of
        passages count.
        """
        return self._scorer.score_passages(passages, wordings)

    def _parts(self, node: BaseNode, texts: Sequence[str]) -> list[tuple[Passage, list[_Told]]]:
        """The parts of a node that matched, or the whole, and what is known under each text.

        A node's own metadata are about the question; what was found for another one is no matter.
        """
        whole = _passage(node, self.title_key, self.heading_path_key)
        known: Mapping[str, Any] = node.metadata.get(self.retrieved_key) or {}
        weights, matches = known.get("term_idf", {}), known.get("matches")
        if texts[0] not in weights or not matches:
            keys = (self.term_idf_key, self.similarity_key, self.page_lexical_key)
            own = _Told(*(node.metadata.get(key) for key in keys))
            return [(whole, [own, *(_Told() for _ in texts[1:])])]
        return [
            (
                replace(
                    whole,
                    text=whole.text[slice(*match["span"])],
                    headings=tuple(match["heading_path"]) or whole.headings,
                ),
                [_Told(weights.get(text), *match["told"].get(text, ())) for text in texts],
            )
            for match in matches
        ]


class CrossEncoderRerank(Reranker):
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
        self._tell_start(query_bundle, nodes, top_n=self.top_n, model=self.scorer.name)
        passages = [_passage(n.node, self.title_key, self.heading_path_key) for n in nodes]
        asked = [
            AskedWording(text) for text in (query_bundle.query_str, *bundle_wordings(query_bundle))
        ]
        columns = self.scorer.score_passages(passages, asked)
        scores = [wordings_score(row) for row in zip(*columns, strict=True)]
        order = sorted(range(len(nodes)), key=lambda place: -scores[place])[: self.top_n]
        return self._told([rescored(nodes[place].node, scores[place]) for place in order])


def _passage(node: BaseNode, title_key: str, heading_path_key: str) -> Passage:
    """Give text, title and headings of a node; one heading may stand in place of their list."""
    title, headings = node.metadata.get(title_key), node.metadata.get(heading_path_key) or ()
    names = (headings,) if isinstance(headings, str) else tuple(map(str, headings))
    return Passage(node.get_content(metadata_mode=MetadataMode.NONE), str(title or ""), names)

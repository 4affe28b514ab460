"""Puts together what writes answers; imported for the first question that wants one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from webrag.answering.evidence import EvidenceFinder, NamedPages
from webrag.answering.guardrails import Guardrail, with_defaults
from webrag.answering.judging import Reflector, TextSimilarity
from webrag.answering.manager import Manager, Tracer
from webrag.answering.planning import Planner
from webrag.answering.writing import (
    ExtractiveSynthesizer,
    LanguageModelSynthesizer,
    Synthesizer,
)

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

    from webrag.corpus.acquirer import PageAcquirer
    from webrag.corpus.pages import Corpus
    from webrag.embedding.bundled_model import BundledModel
    from webrag.orchestration.engine import OrchestratorEngine
    from webrag.orchestration.question.analyzer import QueryAnalyzer
    from webrag.orchestration.ranking.reranker import ChunkReranker
    from webrag.retrieval.search import Searcher
    from webrag.settings import Settings


def make_manager(
    settings: "Settings",
    *,
    analyzer: "QueryAnalyzer",
    acquirer: "PageAcquirer",
    engine: "OrchestratorEngine",
    searcher: "Searcher",
    reranker: "ChunkReranker",
    corpus: "Corpus",
    encoder: "BundledModel",
    llm: "LLM | None",
    tracer: Tracer | None,
    guardrails: Sequence[Guardrail],
) -> Manager:
    """The manager of a corpus's answers, written by `llm` where there is one.

    `guardrails` are asked after the built-in ones.
    """
    config = settings.answer_config()
    similarity = TextSimilarity(encoder)
    synthesizer: Synthesizer = ExtractiveSynthesizer(config, encoder.encode)
    if llm is not None:
        synthesizer = LanguageModelSynthesizer(llm, synthesizer, config, encoder.encode)
    return Manager(
        planner=Planner(analyzer),
        scope=NamedPages(acquirer, engine),
        finder=EvidenceFinder(searcher, reranker, settings.retrieval_config(), config),
        synthesizer=synthesizer,
        reflector=Reflector(llm, config),
        pages=corpus,
        similarity=similarity.between,
        guardrails=with_defaults(guardrails),
        tracer=tracer,
    )

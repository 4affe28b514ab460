"""Chooses concrete parts from the settings."""

from webrag.providers.embedding_models import EmbeddingChoice
from webrag.providers.embeddings import choose_embedding
from webrag.providers.language_models import choose_answer_llm, choose_orchestration_llm
from webrag.providers.page_sources import PageSourceChoice, choose_page_source
from webrag.providers.rerankers import choose_reranker
from webrag.providers.tokenizer import choose_tokenizer, portable_tokenizer
from webrag.providers.tracing import choose_tracer

__all__ = [
    "EmbeddingChoice",
    "PageSourceChoice",
    "choose_answer_llm",
    "choose_embedding",
    "choose_orchestration_llm",
    "choose_page_source",
    "choose_reranker",
    "choose_tokenizer",
    "choose_tracer",
    "portable_tokenizer",
]

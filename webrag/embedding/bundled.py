"""The bundled static model as a LlamaIndex embedding."""

from llama_index.core.base.embeddings.base import BaseEmbedding, Embedding
from llama_index.core.bridge.pydantic import Field
from typing_extensions import override

from webrag.concurrency import in_background
from webrag.embedding.bundled_model import BUNDLED_BATCH_SIZE, BUNDLED_MODEL_NAME, BundledVectors


class BundledEmbedding(BundledVectors, BaseEmbedding):
    """The vectors of `BundledVectors`, for whatever takes a LlamaIndex embedding."""

    model_name: str = Field(default=BUNDLED_MODEL_NAME)
    embed_batch_size: int = Field(default=BUNDLED_BATCH_SIZE, gt=0, le=2048)

    @classmethod
    @override
    def class_name(cls) -> str:
        return "BundledEmbedding"

    @override
    def _get_text_embedding(self, text: str) -> Embedding:
        return self._get_text_embeddings([text])[0]

    @override
    def _get_text_embeddings(self, texts: list[str]) -> list[Embedding]:
        embeddings: list[Embedding] = self.encode(texts).tolist()
        return embeddings

    @override
    def _get_query_embedding(self, query: str) -> Embedding:
        return self._get_text_embedding(query)

    @override
    async def _aget_text_embedding(self, text: str) -> Embedding:
        return await in_background(self._get_text_embedding, text)

    @override
    async def _aget_text_embeddings(self, texts: list[str]) -> list[Embedding]:
        return await in_background(self._get_text_embeddings, texts)

    @override
    async def _aget_query_embedding(self, query: str) -> Embedding:
        vector: Embedding = (await self.encode_question(query)).tolist()
        return vector

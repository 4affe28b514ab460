"""The corpus as a LlamaIndex document store, read when it is asked; it stores no page."""

from collections.abc import Sequence

from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from typing_extensions import override

from webrag.concurrency import run_blocking
from webrag.llamaindex.store import CorpusVectorStore


class CorpusDocumentStore(SimpleDocumentStore):
    """Gives chunks and their parents by id, for `AutoMergingRetriever` and other stock parts.

    Nodes get into the corpus by the vector store or by `WebRAG.ingest`. What is added here, as a
    stock index adds the hashes of documents, is kept in memory as in a `SimpleDocumentStore` and
    counts before what is stored.

    Args:
        vector_store: Of the same collection; not closed here.
    """

    def __init__(self, vector_store: CorpusVectorStore) -> None:
        super().__init__()
        self._vector_store = vector_store

    @property
    @override
    def docs(self) -> dict[str, BaseNode]:
        """Every chunk and every parent by id; a large corpus takes long and much memory."""
        return run_blocking(self._everything())

    async def _everything(self) -> dict[str, BaseNode]:
        chunks = await self._vector_store.aget_nodes()
        parents = dict.fromkeys(node.parent_node.node_id for node in chunks if node.parent_node)
        found = await self._vector_store.aget_nodes(list(parents)) if parents else []
        return {node.node_id: node for node in [*found, *chunks]} | super().docs

    @override
    def document_exists(self, doc_id: str) -> bool:
        return self.get_document(doc_id, raise_error=False) is not None

    @override
    async def adocument_exists(self, doc_id: str) -> bool:
        return await self.aget_document(doc_id, raise_error=False) is not None

    @override
    def get_document(self, doc_id: str, raise_error: bool = True) -> BaseNode | None:
        return run_blocking(self.aget_document(doc_id, raise_error))

    @override
    async def aget_document(self, doc_id: str, raise_error: bool = True) -> BaseNode | None:
        return next(iter(await self.aget_nodes([doc_id], raise_error)), None)

    @override
    def get_nodes(self, node_ids: list[str], raise_error: bool = True) -> list[BaseNode]:
        return run_blocking(self.aget_nodes(node_ids, raise_error))

    @override
    async def aget_nodes(self, node_ids: list[str], raise_error: bool = True) -> list[BaseNode]:
        """Give nodes by id in the order of the ids.

        Raises:
            ValueError: An id is unknown and `raise_error` is set, as in stock document stores.
        """
        known: dict[str, BaseNode] = {}
        for node_id in node_ids:
            added = super().get_document(node_id, raise_error=False)
            if added is not None:
                known[node_id] = added
        missing = [node_id for node_id in node_ids if node_id not in known]
        if missing:
            known |= {node.node_id: node for node in await self._stored(missing)}
        unknown = next((node_id for node_id in node_ids if node_id not in known), None)
        if raise_error and unknown is not None:
            raise ValueError(f"doc_id {unknown} not found.")
        return [known[node_id] for node_id in node_ids if node_id in known]

    async def _stored(self, node_ids: Sequence[str]) -> list[BaseNode]:
        return await self._vector_store.aget_nodes(list(node_ids))

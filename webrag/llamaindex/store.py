"""The corpus as a LlamaIndex vector store and document store; it reranks and fetches nothing."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, NodeRelationship, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import (
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.vector_stores.postgres import PGVectorStore
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError
from typing_extensions import override

from webrag.concurrency import blocking, in_background, run_blocking
from webrag.corpus.indexes import finish_interrupted_load, index_deferred
from webrag.corpus.schema import ensure_schema, update_schema
from webrag.errors import ConfigurationError, InputError
from webrag.ingestion.characters import storable
from webrag.llamaindex.store_rows import (
    add_nodes,
    delete_document,
    delete_matching,
    pages_of_nodes,
    select_by_id,
    select_nodes,
)
from webrag.llamaindex.store_search import LEXICAL_MODES, SearchOptions, search
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Connection, Database

T = TypeVar("T")


QUERY_MODES = (
    VectorStoreQueryMode.DEFAULT,
    VectorStoreQueryMode.SPARSE,
    VectorStoreQueryMode.TEXT_SEARCH,
    VectorStoreQueryMode.HYBRID,
    VectorStoreQueryMode.MMR,
)

"""Query modes the store answers."""

_DEFAULT_EF_SEARCH = 200

_PREFETCH_FACTOR = 4  # of mmr, as in PGVectorStore


def search_options(
    query: VectorStoreQuery, kwargs: Mapping[str, Any], hnsw: Mapping[str, Any] | None
) -> SearchOptions:
    """Give how to search."""
    configured = (hnsw or {}).get("hnsw_ef_search", _DEFAULT_EF_SEARCH)
    factor = kwargs.get("mmr_prefetch_factor") or _PREFETCH_FACTOR
    prefetch = kwargs.get("mmr_prefetch_k") or query.similarity_top_k * factor
    given = (query.mmr_threshold, kwargs.get("mmr_threshold"), 0.5)
    variety = next(value for value in given if value is not None)
    if not 0 <= variety <= 1:
        raise InputError(f"mmr_threshold is {variety}; it must be between 0 and 1.")
    return SearchOptions(
        ef_search=int(kwargs.get("hnsw_ef_search") or configured),
        prefetch=int(prefetch),
        variety=float(variety),
    )


def check_query(query: VectorStoreQuery, dimensions: int) -> None:
    """Refuse a query that cannot be answered."""
    if query.mode not in QUERY_MODES:
        offered = ", ".join(mode.value for mode in QUERY_MODES)
        raise InputError(
            f"The query mode {query.mode.value!r} is not offered by this store; offered: {offered}."
        )
    if query.mode in LEXICAL_MODES:
        if not (query.query_str or "").strip():
            raise InputError(
                f"The query mode {query.mode.value!r} searches for words: set query_str."
            )
        if query.alpha is not None and not 0 <= query.alpha <= 1:
            raise InputError(f"alpha is {query.alpha}; it must be between 0 and 1.")
        if query.mode != VectorStoreQueryMode.HYBRID:
            return
    if query.query_embedding is None:
        raise InputError("The query has no embedding: set query_embedding.")
    if len(query.query_embedding) != dimensions:
        raise InputError(
            f"The query embedding has {len(query.query_embedding)} dimensions; "
            f"the collection has {dimensions}."
        )


def check_embeddings(nodes: Sequence[BaseNode], dimensions: int) -> None:
    """Refuse searched nodes that could not be found."""
    for node in nodes:
        if NodeRelationship.CHILD in node.relationships:
            continue
        size = None if node.embedding is None else len(node.embedding)
        if size != dimensions:
            raise InputError(
                f"Node {node.node_id} has {size or 'no'} embedding dimensions; "
                f"the collection needs {dimensions}."
            )


_TABLE = "children"

_UNCHOSEN_TABLE = "llamaindex"  # what from_params passes when none is named

# hybrid_search would have PGVectorStore look for a column that the table does not have.
_FIXED = {"use_halfvec": True, "use_jsonb": True, "perform_setup": False, "hybrid_search": False}


class CorpusVectorStore(PGVectorStore):
    """The chunks of a collection for `VectorStoreIndex.from_vector_store` and pipelines.

    Rows have PGVectorStore's layout, and a stock PGVectorStore opened on the same table
    (`schema_name` the collection, `table_name="children"`) finds the same neighbours. Reads and
    writes do not go through it, for these reasons (version 0.9.0):

    - it formats filter values into SQL: a quote breaks the query, a crafted value returns rows;
    - with HNSW and a filter on URLs it returned 3 of 20 rows, as it turns bitmap scans off and
      does not continue the graph search;
    - it inserts row by row and keeps duplicates of a node that is added twice;
    - its asynchronous methods open synchronous connections.

    Here all values are bound, small filters are searched exactly and large ones iteratively,
    writes keep parents, lexical index and page texts complete, and `add` replaces nodes by id.
    Synchronous methods may be called inside a running event loop; they block it.

    Args:
        connection_string: URL of a server, a SQLAlchemy one too; or pass `database`.
        table_name: Always "children".
        schema_name: The collection.
        embed_dim: Vector size; must be the collection's.
        database: Open database to use; it is not closed by the store.
        embedding_model: Recorded when the collection does not exist yet.
        kwargs: Further arguments of PGVectorStore; `hnsw_kwargs["hnsw_ef_search"]` is used.
            `hybrid_search` is not needed: every collection has a lexical index.
    """

    _database: Database = PrivateAttr()
    _owns_database: bool = PrivateAttr()
    _embedding_model: str = PrivateAttr()
    _is_ready: bool = PrivateAttr(default=False)

    def __init__(
        self,
        connection_string: str | URL | None = None,
        async_connection_string: str | URL | None = None,
        table_name: str | None = None,
        schema_name: str | None = None,
        embed_dim: int = 256,
        *,
        database: Database | None = None,
        embedding_model: str = "unnamed",
        **kwargs: Any,
    ) -> None:
        if table_name not in (None, _UNCHOSEN_TABLE, _TABLE):
            raise ConfigurationError(
                f"table_name is {table_name!r}; a collection's searched table is always "
                f"{_TABLE!r}. Choose another schema_name for another corpus."
            )
        for told in ("stores_text", "is_embedding_query", "flat_metadata"):  # by `to_dict`
            kwargs.pop(told, None)
        _check_names("CorpusVectorStore", kwargs, PGVectorStore.__init__, type(self).__init__)
        if database is not None and not isinstance(database, Database):
            raise ConfigurationError(
                f"database is {type(database).__name__}, not a webrag Database; a database's name"
                " belongs in connection_string, or to CorpusVectorStore.from_params."
            )
        given = database or _database_of(connection_string, schema_name or "webrag")
        super().__init__(
            connection_string=connection_string,
            async_connection_string=async_connection_string,
            table_name=_TABLE,
            schema_name=given.config.collection,
            embed_dim=embed_dim,
            **{**kwargs, **_FIXED},
        )
        self._database = given
        self._owns_database = database is None
        self._embedding_model = embedding_model

    @classmethod
    @override
    def from_params(
        cls,
        host: str | None = None,
        port: int | str | None = None,
        database: str | None = None,
        user: str | None = None,
        password: str | None = None,
        table_name: str | None = None,
        schema_name: str | None = None,
        connection_string: str | URL | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Self:
        """Give the store of a collection on a server.

        Args:
            host: The server's name or address; or pass `connection_string`.
            port: 5432 without it.
            database: The server's database.
            user: Left out, the server's own rule decides, as with `password`.
            password: Any characters; they need no quoting here.
            table_name: Always "children".
            schema_name: The collection, "webrag" without it.
            connection_string: URL of the server, in place of the five above.
            args: None are taken.
            kwargs: Those of `CorpusVectorStore`.

        Raises:
            ConfigurationError: An argument is missing, unknown or cannot be used.
        """
        if args:
            raise ConfigurationError(
                "CorpusVectorStore.from_params takes what follows connection_string by name only."
            )
        _check_names(
            "CorpusVectorStore.from_params", kwargs, PGVectorStore.from_params, cls.__init__
        )
        return cls(
            connection_string or _server_url(host, port, database, user, password),
            table_name=table_name,
            schema_name=schema_name,
            **kwargs,
        )

    @classmethod
    @override
    def class_name(cls) -> str:
        return "CorpusVectorStore"

    @property
    @override
    def client(self) -> Database:
        """The database behind the store."""
        return self._database

    @override
    async def close(self) -> None:
        """Close the database when the store opened it."""
        if self._owns_database:
            await self.client.close()

    @override
    async def aquery(self, /, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Give the best chunks of retrievable pages, best first.

        `default` ranks by cosine similarity; `sparse` and `text_search` by BM25 of `query_str`;
        `hybrid` by both, where `alpha` is the share of meaning (0 words only, 1 meaning only) and
        `similarity_top_k` and `sparse_top_k` bound the legs, `hybrid_top_k` the result; `mmr`
        by similarity less repetition, `mmr_threshold` 1 to 0. Filters hold in every mode.

        Args:
            query: Its mode is one of those.
            kwargs: For this query: `hnsw_ef_search`, `mmr_prefetch_k`, `mmr_prefetch_factor`
                and `mmr_threshold`, as in PGVectorStore.

        Raises:
            InputError: The mode, the embedding, the words or a filter cannot be used.
        """
        check_query(query, self.embed_dim)
        options = search_options(query, kwargs, self.hnsw_kwargs)
        return await self._run(
            lambda connection: search(connection, query, options), autocommit=True
        )

    query = blocking(aquery)

    @override
    async def async_add(self, /, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Store nodes, all or none; one whose id is stored already is replaced.

        Thousands at once, and more than there are, are loaded first and indexed afterwards. All
        chunks of a document that is stored are analysed again, each in up to a millisecond: give
        the nodes of a long one together, since one by one takes time that grows as their square.

        Nodes with children become parents and need no embedding. The pages they belong to are
        made from `source_url`, or the id of their document, when they are not stored.

        NUL and half surrogate pairs, which Postgres does not take, become U+FFFD in texts,
        metadata and ids; ids and filters that have them find what was stored.

        Raises:
            InputError: A searched node has no embedding, or one of another size.
        """
        check_embeddings(nodes, self.embed_dim)
        pages = await in_background(pages_of_nodes, nodes)
        await self._prepare()
        async with index_deferred(self.client, len(nodes)):
            await self._run(lambda connection: add_nodes(connection, pages))
        return [storable(node.node_id) for node in nodes]

    add = blocking(async_add)

    @override
    async def adelete(self, /, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete what was made from a document."""
        await self._run(lambda connection: delete_document(connection, ref_doc_id))

    delete = blocking(adelete)

    @override
    async def adelete_nodes(
        self,
        /,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Delete chunks by id, by filters or by both together; nothing when neither is given."""
        await self._run(lambda connection: delete_matching(connection, node_ids, filters))

    delete_nodes = blocking(adelete_nodes)

    @override
    async def aget_nodes(
        self,
        /,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **kwargs: Any,
    ) -> list[BaseNode]:
        """Give chunks by id, by filters or by both together, in page order; all by default.

        Ids without filters may be those of parents, too, which follow the chunks.
        """

        async def work(connection: Connection) -> list[TextNode]:
            if node_ids and filters is None:
                return await select_by_id(connection, node_ids)
            return await select_nodes(connection, node_ids, filters)

        return list(await self._run(work, autocommit=True))

    get_nodes = blocking(aget_nodes)

    @override
    async def aclear(self) -> None:
        """Delete everything the collection holds, pages of WebRAG's own included."""
        await self._run(lambda connection: connection.change("delete from {documents}"))

    clear = blocking(aclear)

    async def _run(
        self, work: Callable[[Connection], Awaitable[T]], *, autocommit: bool = False
    ) -> T:
        """Do the work in a transaction, a second time if the connection is lost."""
        await self._prepare()
        return await self.client.run(work, autocommit=autocommit)

    async def _prepare(self) -> None:
        """Make the collection if it is missing; repeating it is free."""
        if self._is_ready:
            return
        database = self.client
        existing = await update_schema(database)
        if existing is None:
            await ensure_schema(
                database, embedding_model=self._embedding_model, embedding_dimensions=self.embed_dim
            )
        elif existing[1] != self.embed_dim:
            raise ConfigurationError(
                f"The collection {database.config.collection!r} has vectors of {existing[1]} "
                f"dimensions, made with {existing[0]}; embed_dim is {self.embed_dim}."
            )
        await finish_interrupted_load(database)
        self._is_ready = True


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
    async def adocument_exists(self, doc_id: str) -> bool:
        return await self.aget_document(doc_id, raise_error=False) is not None

    document_exists = blocking(adocument_exists)

    @override
    async def aget_document(self, doc_id: str, raise_error: bool = True) -> BaseNode | None:
        return next(iter(await self.aget_nodes([doc_id], raise_error)), None)

    get_document = blocking(aget_document)

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
            known |= {node.node_id: node for node in await self._vector_store.aget_nodes(missing)}
        unknown = next((node_id for node_id in node_ids if node_id not in known), None)
        if raise_error and unknown is not None:
            raise ValueError(f"doc_id {unknown} not found.")
        return [known[node_id] for node_id in node_ids if node_id in known]

    get_nodes = blocking(aget_nodes)


def _check_names(called: str, given: Iterable[str], *known: Callable[..., Any]) -> None:
    names = {name for each in known for name in inspect.signature(each).parameters}
    allowed = sorted(names - {"args", "cls", "kwargs", "self"})
    for name in given:
        if name not in allowed:
            raise ConfigurationError(
                f"{called} has no argument {name!r}; it takes {', '.join(allowed)}."
            )


def _server_url(
    host: str | None,
    port: int | str | None,
    database: str | None,
    user: str | None,
    password: str | None,
) -> URL:
    missing = [name for name, value in (("host", host), ("database", database)) if not value]
    if missing:
        raise ConfigurationError(
            f"CorpusVectorStore.from_params needs {' and '.join(missing)}, or a connection_string"
            " such as postgresql://user:password@host:5432/database."
        )
    number = str(port or 5432)
    if not (number.isascii() and number.isdigit() and 0 < int(number) < 65536):
        raise ConfigurationError(f"port is {number!r}; it must be a number from 1 to 65535.")
    return URL.create("postgresql", user, password, host, int(number), database)


def _database_of(connection_string: str | URL | None, collection: str) -> Database:
    if connection_string is None:
        raise ConfigurationError("CorpusVectorStore needs a connection_string or a database.")
    try:
        url = make_url(connection_string)
    except (ArgumentError, ValueError):  # neither repeats what was given: it may hold a password
        url = None
    if url is None or url.get_backend_name() not in ("postgresql", "postgres"):
        raise ConfigurationError(
            "connection_string is no PostgreSQL URL; it looks like"
            " postgresql://user:password@host:5432/database."
        )
    dsn = url.set(drivername="postgresql").render_as_string(hide_password=False)
    # An external server needs no folder.
    return Database(DatabaseConfig(url=dsn, data_dir=Path(), collection=collection))

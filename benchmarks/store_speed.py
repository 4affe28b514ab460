"""Loads and searches the same chunks in three ways: WebRAG's store, stock PGVectorStore, bare SQL.

Usage: python benchmarks/store_speed.py FOLDER [--chunks 20000] [--cache FILE]

The HTML pages below FOLDER are converted, cut and embedded before any clock runs. When they have
fewer chunks than asked for, pages are repeated under other addresses with their vectors moved by
5 %. Contestants take turns, slice by slice and query by query, so that what else the machine does
meets all of them. All tables are in one embedded Postgres with the product's settings.

Bare COPY loads the very rows that WebRAG stores into a collection of the same make, in one COPY per
table and slice; bare SQL asks for the exact nearest chunks of the pages and builds no nodes.
"""

import argparse
import asyncio
import pickle
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from llama_index.core.schema import BaseNode, Document, TextNode
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from llama_index.node_parser.webrag import ParentChildNodeParser
from llama_index.vector_stores.postgres import PGVectorStore
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from webrag.corpus.indexes import index_deferred
from webrag.corpus.pages import Corpus
from webrag.corpus.rows import PageRows, build_page_rows, document_id_of
from webrag.corpus.schema import ensure_schema
from webrag.corpus.tables import vector_index_statement
from webrag.corpus.writer import EmbeddedPage, write_pages
from webrag.embedding.bundled import BundledEmbedding
from webrag.errors import UnusablePageError
from webrag.ingestion.extract import extract
from webrag.ingestion.models import FetchedPage, NormalizedDocument
from webrag.llamaindex.store import CorpusVectorStore
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Connection, Database

SLICES = 4
BATCH = 96  # pages, as `webrag import` stores them
TOP_K = 20
EF_SEARCH = 200
TABLES = ("documents", "parents", "data_children", "postings", "link_candidates")
STOCK = {"hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": EF_SEARCH}


@dataclass(frozen=True)
class Page:
    rows: PageRows
    nodes: list[TextNode]
    vectors: np.ndarray

    @property
    def leaves(self) -> list[TextNode]:
        return [node for node in self.nodes if node.embedding is not None]


# --- the chunks -----------------------------------------------------------------------------------


def documents(folder: Path, cache: Path | None) -> list[NormalizedDocument]:
    if cache is not None and cache.exists():
        stored: list[NormalizedDocument] = pickle.loads(cache.read_bytes())
        return stored
    found = []
    for path in sorted(folder.rglob("*.html")):
        url = f"https://pages.test/{path.relative_to(folder).as_posix()}"
        text = path.read_text("utf-8", errors="replace").replace("\0", "")
        page = FetchedPage(
            requested_url=url, url=url, status=200, kind="html", text=text,
            fetched_at=datetime.now(UTC), source="builtin",
        )  # fmt: skip
        try:
            found.append(extract(page))
        except UnusablePageError:
            continue
    if cache is not None:
        cache.write_bytes(pickle.dumps(found))
    return found


def prepare(found: Sequence[NormalizedDocument], wanted: int) -> tuple[list[Page], int]:
    """Pages with vectors until there are enough chunks, and how many of them are repeated."""
    model = BundledEmbedding()
    parser = ParentChildNodeParser()
    rng = np.random.default_rng(1)
    pages: list[Page] = []
    chunks, first = 0, 0
    known: dict[str, np.ndarray] = {}
    for copy in range(1 + wanted):
        for each in found:
            if chunks >= wanted:
                return pages, chunks - first if copy else 0
            url = each.url if copy == 0 else f"{each.url}?copy={copy}"
            document = each.model_copy(update={"url": url, "requested_url": url})
            page = cut(document, parser)
            if each.url not in known:
                known[each.url] = model.encode([row.indexed_text for row in page.children])
            vectors = known[each.url]
            if copy:
                noise = rng.normal(size=vectors.shape)
                vectors = vectors + 0.05 * noise / np.linalg.norm(noise, axis=1, keepdims=True)
                vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            pages.append(with_vectors(page, document, parser, vectors))
            chunks += len(page.children)
        first = first or chunks
    return pages, 0


def nodes_of(document: NormalizedDocument, parser: ParentChildNodeParser) -> list[TextNode]:
    source = Document(
        id_=str(document_id_of(document.url)),
        text=document.markdown,
        metadata={"title": document.title or "", "source_url": document.url},
    )
    nodes = parser.get_nodes_from_documents([source])
    return [node for node in nodes if isinstance(node, TextNode)]


def cut(document: NormalizedDocument, parser: ParentChildNodeParser) -> PageRows:
    return build_page_rows(document, nodes_of(document, parser), depth=0)


def with_vectors(
    rows: PageRows, document: NormalizedDocument, parser: ParentChildNodeParser, vectors: np.ndarray
) -> Page:
    nodes = nodes_of(document, parser)
    by_id = {node.node_id: node for node in nodes}
    for row, vector in zip(rows.children, vectors, strict=True):
        by_id[row.node_id].embedding = vector.tolist()
    return Page(rows, nodes, vectors)


# --- loading --------------------------------------------------------------------------------------


class Clock:
    """Adds up what each contestant took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    async def time(self, name: str, work: Callable[[], Any]) -> None:
        begin = time.perf_counter()
        result = work()
        if asyncio.iscoroutine(result):
            await result
        self.seconds[name] += time.perf_counter() - begin


class Loaded:
    """The rows of one COPY, kept in place of being sent; stands for the driver's copy."""

    def __init__(self, statement: Any) -> None:
        self.statement = statement
        self.types: list[str] = []
        self.rows: list[Sequence[Any]] = []

    @property
    def formatter(self) -> "Loaded":
        return self

    def set_types(self, types: list[str]) -> None:
        self.types = types

    def write_row(self, row: Sequence[Any]) -> bytes:
        self.rows.append(row)
        return b""


class Loading:
    """Stands for a connection to an empty collection, and keeps what is loaded."""

    def __init__(self, first: int, collection: str) -> None:
        self.collection = collection
        self.made: list[Loaded] = []
        self._first = first

    async def execute(self, *_: Any) -> None:
        pass

    async def change(self, *_: Any) -> int:
        return 0

    async def fetch(self, text: str, values: Any = ()) -> list[tuple[int]]:
        count = values[0] if "nextval" in text else 0
        return [(self._first + n,) for n in range(count)]

    async def copy_rows(self, *load: Any) -> None:
        connection: Any = self
        await Connection.copy_rows(connection, *load)

    @asynccontextmanager
    async def cursor(self) -> AsyncIterator["Loading"]:
        yield self

    @asynccontextmanager
    async def copy(self, statement: Any) -> AsyncIterator[Loaded]:
        self.made.append(Loaded(statement))
        yield self.made[-1]


class Bare:
    """COPY of prepared rows over one synchronous connection."""

    def __init__(self, conninfo: str, collection: str) -> None:
        self.connection = psycopg.connect(conninfo)
        register_vector(self.connection)
        self.collection = collection
        self._next = 1

    async def rows(self, pages: Sequence[Page]) -> list[Loaded]:
        """The rows of a slice, made before the clock runs, as the product makes them."""
        loading = Loading(self._next, self.collection)
        self._next += len(pages)
        connection: Any = loading
        written = [EmbeddedPage(page.rows, page.vectors) for page in pages]
        await write_pages(connection, written)
        return loading.made

    def load(self, made: Sequence[Loaded]) -> None:
        with self.connection.cursor() as cursor:
            for each in made:
                with cursor.copy(each.statement) as copy:
                    copy.set_types(each.types)
                    for row in each.rows:
                        copy.write_row(row)
        self.connection.commit()

    def drop_index(self) -> None:
        self.connection.execute(f"drop index if exists {self.collection}.data_children_embedding")
        self.connection.commit()

    def build(self, dimensions: int) -> None:
        self.connection.execute("set maintenance_work_mem = '64MB'")
        self.connection.execute(vector_index_statement(self.collection, dimensions))
        self.connection.commit()


def stock_store(url: str, name: str, *, indexed: bool, dimensions: int) -> PGVectorStore:
    return PGVectorStore(
        connection_string=url.replace("+psycopg", "+psycopg2"),
        async_connection_string=url,
        table_name=name,
        schema_name="stock",
        embed_dim=dimensions,
        use_halfvec=True,
        use_jsonb=True,
        hnsw_kwargs=STOCK if indexed else None,
    )


async def run(pages: list[Page], data_dir: Path) -> None:
    dimensions = pages[0].vectors.shape[1]
    chunks = sum(len(page.rows.children) for page in pages)
    bulk, added, bared = (
        Database(DatabaseConfig(data_dir=data_dir, collection=name))
        for name in ("bulk", "added", "bare")
    )
    for each in (bulk, added, bared):
        await ensure_schema(each, embedding_model="bundled", embedding_dimensions=dimensions)
    async with bulk.connection() as connection:
        info = connection.info
        conninfo = f"host={info.host} port={info.port} user={info.user} dbname={info.dbname}"
        url = f"postgresql+psycopg://{info.user}@/{info.dbname}?host={info.host}&port={info.port}"
    bare = Bare(conninfo, "bare")
    bare.drop_index()
    stock = stock_store(url, "late", indexed=False, dimensions=dimensions)
    stock_live = stock_store(url, "live", indexed=True, dimensions=dimensions)
    corpus, store = Corpus(bulk), CorpusVectorStore(database=added, embed_dim=dimensions)

    async def load_bulk(part: Sequence[Page]) -> None:
        for start in range(0, len(part), BATCH):
            batch = part[start : start + BATCH]
            await corpus.replace_pages([EmbeddedPage(page.rows, page.vectors) for page in batch])

    clock = Clock()
    async with AsyncExitStack() as stack:
        # The product builds the index while it loads where few chunks are coming.
        is_deferred = await stack.enter_async_context(index_deferred(bulk, chunks))
        await stack.enter_async_context(index_deferred(added, chunks))
        for number in range(SLICES):
            part = pages[number::SLICES]
            leaves: list[BaseNode] = [leaf for page in part for leaf in page.leaves]
            nodes: list[BaseNode] = [node for page in part for node in page.nodes]
            rows = await bare.rows(part)
            turns: list[tuple[str, Callable[[], Any]]] = [
                ("bare COPY", partial(bare.load, rows)),
                ("WebRAG, pages", partial(load_bulk, part)),
                ("WebRAG, async_add", partial(store.async_add, nodes)),
                ("stock async_add, index later", partial(stock.async_add, leaves)),
                ("stock async_add", partial(stock_live.async_add, leaves)),
            ]
            for turn in range(len(turns)):
                await clock.time(*turns[(turn + number) % len(turns)])
        loaded = dict(clock.seconds)
        built = Clock()
        closing = Clock()
        await closing.time("both collections", stack.aclose)
    if is_deferred:
        half = closing.seconds["both collections"] / 2
        built.seconds |= {"WebRAG, pages": half, "WebRAG, async_add": half}
    await built.time("bare COPY", lambda: bare.build(dimensions))
    stock.hnsw_kwargs = STOCK
    await built.time("stock async_add, index later", stock._create_hnsw_index)
    report_load(loaded, built.seconds, chunks)
    report_disk(bare.connection, chunks)
    await report_queries(pages, CorpusVectorStore(database=bulk, embed_dim=dimensions), stock,
                         bare)  # fmt: skip
    await stock.close()
    await stock_live.close()
    bare.connection.close()
    for each in (bulk, added, bared):
        await each.close()


def report_load(loaded: dict[str, float], built: dict[str, float], chunks: int) -> None:
    base = loaded["bare COPY"]
    print(f"\n{'loading':32}{'s':>8}{'rows/s':>9}{'of COPY':>9}{'index s':>9}")
    for name, seconds in loaded.items():
        index = built.get(name)
        print(f"{name:32}{seconds:8.2f}{chunks / seconds:9.0f}{base / seconds:9.2f}"
              + (f"{index:9.2f}" if index is not None else f"{'live':>9}"))  # fmt: skip


def report_disk(connection: psycopg.Connection[Any], chunks: int) -> None:
    print(f"\n{'disk, bytes per chunk':32}{'table':>9}{'indexes':>9}{'total':>9}")
    names = [("bulk", name) for name in TABLES] + [("stock", "data_late")]
    totals = [0, 0]
    for schema, name in names:
        row = connection.execute(
            "select pg_table_size(c), pg_indexes_size(c) from to_regclass(%s) c",
            (f"{schema}.{name}",),
        ).fetchone()
        assert row is not None
        if schema == "bulk":
            totals = [total + size for total, size in zip(totals, row, strict=True)]
        show_disk(f"{schema}.{name}", row, chunks)
    show_disk("WebRAG, all tables", totals, chunks)
    connection.rollback()


def show_disk(name: str, sizes: Sequence[int], chunks: int) -> None:
    print(f"{name:32}{sizes[0] / chunks:9.0f}{sizes[1] / chunks:9.0f}{sum(sizes) / chunks:9.0f}")


# --- searching ------------------------------------------------------------------------------------

_BARE_QUERY = """
select c.node_id, c.text, c.metadata_, c.embedding <=> %s::halfvec as distance
from bare.data_children c join bare.documents d on d.id = c.document
where d.url = any(%s) order by distance limit %s
"""


async def report_queries(
    pages: list[Page], ours: CorpusVectorStore, stock: PGVectorStore, bare: Bare
) -> None:
    rng = np.random.default_rng(2)
    urls = [page.rows.document.url for page in pages]
    print(f"\n{'top 20 of pages named':32}{'recall':>8}{'p50 ms':>8}{'p95 ms':>8}{'of bare':>9}")
    for scope in (10, 100):
        times: dict[str, list[float]] = defaultdict(list)
        recalls: dict[str, list[float]] = defaultdict(list)
        for number in range(110):
            chosen = rng.choice(len(pages), min(scope, len(pages)), replace=False)
            source = pages[int(rng.choice(chosen))].vectors
            vector = source[rng.integers(len(source))] + rng.normal(size=source.shape[1]) * 0.03
            named = [urls[place] for place in chosen]
            exact = exact_similarities([pages[place] for place in chosen], vector)
            query = VectorStoreQuery(
                query_embedding=vector.tolist(),
                similarity_top_k=TOP_K,
                filters=MetadataFilters(
                    filters=[
                        MetadataFilter(key="source_url", value=named, operator=FilterOperator.IN)
                    ]
                ),
            )
            turns: dict[str, Callable[[], Any]] = {
                "WebRAG": partial(ours.aquery, query),
                "stock": partial(stock.aquery, query),
                "bare SQL": partial(bare_query, bare, vector, named),
            }
            names = list(turns)
            for turn in range(3):
                name = names[(turn + number) % 3]
                begin = time.perf_counter()
                result = turns[name]()
                found = await result if asyncio.iscoroutine(result) else result
                if number < 10:  # connections and caches are warm afterwards
                    continue
                times[name].append((time.perf_counter() - begin) * 1000)
                ids = found if isinstance(found, list) else found.ids or []
                recalls[name].append(recall(ids, exact))
        base = np.median(times["bare SQL"])
        for name, taken in times.items():
            print(f"{name + f', {scope} URLs':32}{np.mean(recalls[name]):8.3f}"
                  f"{np.median(taken):8.2f}{np.percentile(taken, 95):8.2f}"
                  f"{np.median(taken) / base:9.2f}")  # fmt: skip


def bare_query(bare: Bare, vector: np.ndarray, named: list[str]) -> list[str]:
    rows = bare.connection.execute(_BARE_QUERY, (HalfVector(vector), named, TOP_K)).fetchall()
    bare.connection.commit()
    return [row[0] for row in rows]


def exact_similarities(pages: Sequence[Page], vector: np.ndarray) -> dict[str, float]:
    ids = [row.node_id for page in pages for row in page.rows.children]
    stored = np.concatenate([page.vectors for page in pages]).astype(np.float16).astype(np.float64)
    wanted = vector.astype(np.float16).astype(np.float64)
    cosines = stored @ wanted / np.linalg.norm(stored, axis=1) / np.linalg.norm(wanted)
    return dict(zip(ids, cosines.tolist(), strict=True))


def recall(ids: Sequence[str], exact: dict[str, float]) -> float:
    """Share of the exact best that was found; equally near chunks stand for each other."""
    best = sorted(exact.values(), reverse=True)[:TOP_K]
    hits = sum(exact.get(each, -1.0) >= best[-1] - 1e-4 for each in set(ids))
    return min(hits, len(best)) / len(best)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--chunks", type=int, default=20_000)
    options.add_argument("--cache", type=Path, help="keeps the converted pages")
    arguments = options.parse_args()
    found = documents(arguments.folder, arguments.cache)
    pages, repeated = prepare(found, arguments.chunks)
    chunks = sum(len(page.rows.children) for page in pages)
    postings = sum(len(page.rows.postings) for page in pages)
    print(f"{len(pages)} pages, {chunks} chunks ({repeated} repeated), {postings} posting rows,"
          f" {pages[0].vectors.shape[1]} dimensions")  # fmt: skip
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        asyncio.run(run(pages, Path(folder)))


if __name__ == "__main__":
    main()

"""What LlamaIndex expects of a vector store, tried on WebRAG's and on stock PGVectorStore.

Usage: python benchmarks/store_behaviour.py

The list follows the published tests of llama-index-vector-stores-postgres, and goes through every
filter operator and condition that llama-index-core defines. Each entry runs on an empty store, once
through the asynchronous methods and once through the synchronous ones inside a running event loop,
as in a notebook. The test suite runs the same list on WebRAG's store.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from llama_index.core.schema import IndexNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.vector_stores.postgres import PGVectorStore

from webrag.llamaindex.store import CorpusVectorStore
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database

DIMENSIONS = 4
METADATA: dict[str, dict[str, Any]] = {
    "apple": {"kind": "fruit", "stars": 1, "tags": ["red", "sweet"], "day": "2026-01-05"},
    "beet": {"kind": "root", "stars": 5, "tags": ["red"], "day": "2026-02-01"},
    "cherry": {"kind": "fruit", "stars": 9, "tags": [], "quote": 'it\'s 100% "ripe"'},
    "daikon": {"kind": "Root", "price": 2.5, "quote": "it\u2019s :fine"},
}
TEXTS = {
    "apple": "An apple a day keeps the doctor away.",
    "beet": "Soup of beet is called borscht.",
    "cherry": "The fox steals a cherry from the tree.",
    "daikon": "Pickled daikon is eaten with rice; the fox does not like it.",
}
VECTORS = {
    "apple": [1.0, 0.0, 0.0, 0.0],
    "beet": [0.8, 0.6, 0.0, 0.0],
    "cherry": [0.0, 1.0, 0.0, 0.0],
    "daikon": [0.0, 0.0, 1.0, 0.0],
}


class Subject:
    """A store behind one face, whichever of its methods are meant."""

    def __init__(self, store: Any, *, is_async: bool) -> None:
        self.store = store
        self._is_async = is_async

    async def _call(self, name: str, *values: Any, **named: Any) -> Any:
        if not self._is_async:
            return getattr(self.store, name)(*values, **named)
        other = "async_add" if name == "add" else f"a{name}"
        return await getattr(self.store, other)(*values, **named)

    async def add(self, nodes: Sequence[TextNode]) -> list[str]:
        return list(await self._call("add", list(nodes)))

    async def query(self, vector: list[float] | None, top_k: int = 10, **named: Any) -> Any:
        query = VectorStoreQuery(query_embedding=vector, similarity_top_k=top_k, **named)
        return await self._call("query", query)

    async def ids(self, filters: MetadataFilters | None = None, **named: Any) -> list[str]:
        """Ids found by a query, in alphabetical order."""
        found = await self.query([1.0, 1.0, 1.0, 0.0], filters=filters, **named)
        return sorted(found.ids or [])

    async def get(self, node_ids: Any = None, filters: Any = None) -> list[str]:
        nodes = await self._call("get_nodes", node_ids=node_ids, filters=filters)
        return sorted(node.node_id for node in nodes)

    async def delete(self, ref_doc_id: str) -> None:
        await self._call("delete", ref_doc_id)

    async def delete_nodes(self, node_ids: Any = None, filters: Any = None) -> None:
        await self._call("delete_nodes", node_ids=node_ids, filters=filters)

    async def clear(self) -> None:
        await self._call("clear")


Behaviour = Callable[[Subject], Awaitable[None]]
BEHAVIOURS: dict[str, Behaviour] = {}


def behaviour(sentence: str) -> Callable[[Behaviour], Behaviour]:
    def keep(function: Behaviour) -> Behaviour:
        BEHAVIOURS[sentence] = function
        return function

    return keep


def nodes() -> list[TextNode]:
    made = []
    for name, text in TEXTS.items():
        node = TextNode(id_=name, text=text, metadata=METADATA[name], embedding=VECTORS[name])
        source = RelatedNodeInfo(node_id="garden" if METADATA[name]["kind"] == "fruit" else "field")
        node.relationships[NodeRelationship.SOURCE] = source
        made.append(node)
    return made


def where(key: str, operator: str, value: Any = None) -> MetadataFilters:
    one = MetadataFilter(key=key, operator=FilterOperator(operator), value=value)
    return MetadataFilters(filters=[one])


def check(found: Any, wanted: Any) -> None:
    if found != wanted:
        raise AssertionError(f"{found!r}, expected {wanted!r}")


def words(names: str) -> list[str]:
    return names.split()


# --- adding and searching -------------------------------------------------------------------------


@behaviour("add gives the ids back")
async def _(store: Subject) -> None:
    check(await store.add(nodes()), list(TEXTS))


@behaviour("an empty list can be added")
async def _(store: Subject) -> None:
    check(await store.add([]), [])


@behaviour("a query gives the nearest first, with cosines")
async def _(store: Subject) -> None:
    await store.add(nodes())
    found = await store.query(VECTORS["apple"], 2)
    check(found.ids, ["apple", "beet"])
    check([round(each, 3) for each in found.similarities], [1.0, 0.8])


@behaviour("text, metadata and source of a node come back")
async def _(store: Subject) -> None:
    await store.add(nodes())
    (node,) = (await store.query(VECTORS["cherry"], 1)).nodes
    check((node.text, node.metadata, node.ref_doc_id), (TEXTS["cherry"], METADATA["cherry"],
                                                        "garden"))  # fmt: skip


@behaviour("an IndexNode comes back as one")
async def _(store: Subject) -> None:
    await store.add([IndexNode(id_="ref", text="points", index_id="x", embedding=[1.0, 0, 0, 0])])
    (node,) = (await store.query([1.0, 0, 0, 0], 1)).nodes
    check((type(node), getattr(node, "index_id", None)), (IndexNode, "x"))


@behaviour("an empty store finds nothing")
async def _(store: Subject) -> None:
    check(await store.ids(), [])


@behaviour("a node that is added again is replaced")
async def _(store: Subject) -> None:
    await store.add(nodes())
    await store.add([TextNode(id_="apple", text="New.", embedding=VECTORS["apple"])])
    found = await store.query(VECTORS["apple"], 4)
    check(sorted(found.ids), sorted(TEXTS))
    check(found.nodes[0].text, "New.")


@behaviour("a query can be limited to node ids")
async def _(store: Subject) -> None:
    await store.add(nodes())
    check(await store.ids(node_ids=["beet", "daikon"]), words("beet daikon"))


@behaviour("a query can be limited to documents")
async def _(store: Subject) -> None:
    await store.add(nodes())
    check(await store.ids(doc_ids=["garden"]), words("apple cherry"))


@behaviour("sparse: a sentence finds the texts with its words")
async def _(store: Subject) -> None:
    await store.add(nodes())
    found = await store.query(None, query_str="who is the fox?", sparse_top_k=2,
                              mode=VectorStoreQueryMode.SPARSE)  # fmt: skip
    check(sorted(found.ids), words("cherry daikon"))


@behaviour("text_search finds the texts with the words")
async def _(store: Subject) -> None:
    await store.add(nodes())
    found = await store.query(None, query_str="borscht", mode=VectorStoreQueryMode.TEXT_SEARCH)
    check(found.ids, ["beet"])


@behaviour("hybrid finds what either search finds")
async def _(store: Subject) -> None:
    await store.add(nodes())
    found = await store.query(VECTORS["apple"], 1, query_str="rice", sparse_top_k=1,
                              mode=VectorStoreQueryMode.HYBRID)  # fmt: skip
    check(sorted(found.ids), words("apple daikon"))


@behaviour("hybrid is one ranking: its scores descend")
async def _(store: Subject) -> None:
    await store.add(nodes())
    found = await store.query(VECTORS["apple"], 4, query_str="fox tree",
                              mode=VectorStoreQueryMode.HYBRID)  # fmt: skip
    check(found.similarities, sorted(found.similarities, reverse=True))


@behaviour("hybrid obeys filters")
async def _(store: Subject) -> None:
    await store.add(nodes())
    found = await store.query(VECTORS["apple"], 4, query_str="fox",
                              filters=where("kind", "==", "fruit"),
                              mode=VectorStoreQueryMode.HYBRID)  # fmt: skip
    check(sorted(set(found.ids)), words("apple cherry"))


@behaviour("hybrid without words is refused")
async def _(store: Subject) -> None:
    try:
        await store.query(VECTORS["apple"], mode=VectorStoreQueryMode.HYBRID)
    except Exception:  # noqa: BLE001 - each store has its own
        return
    raise AssertionError("it was not refused")


@behaviour("mmr leaves near repetitions out")
async def _(store: Subject) -> None:
    await store.add(nodes())
    found = await store.query([0.9, 0.43, 0.1, 0.0], 2, mode=VectorStoreQueryMode.MMR,
                              mmr_threshold=0.2)  # fmt: skip
    check("apple" in found.ids and "beet" in found.ids, False)


# --- filters --------------------------------------------------------------------------------------

FILTERS: list[tuple[str, str, Any, str]] = [
    ("kind", "==", "fruit", "apple cherry"),
    ("stars", "==", 5, "beet"),
    ("quote", "==", 'it\'s 100% "ripe"', "cherry"),
    ("quote", "==", "it\u2019s :fine", "daikon"),
    ("kind", "!=", "fruit", "beet daikon"),
    ("stars", ">", 1, "beet cherry"),
    ("stars", ">=", 5, "beet cherry"),
    ("stars", "<", 5, "apple"),
    ("stars", "<=", 5, "apple beet"),
    ("price", ">", 2, "daikon"),
    ("day", ">", "2026-01-31", "beet"),
    ("kind", "in", ["fruit", "herb"], "apple cherry"),
    ("stars", "in", [1, 9], "apple cherry"),
    ("kind", "in", [], ""),
    ("kind", "nin", ["fruit"], "beet daikon"),
    ("tags", "contains", "sweet", "apple"),
    ("tags", "any", ["sweet", "sour"], "apple"),
    ("tags", "all", ["red", "sweet"], "apple"),
    ("kind", "text_match", "oo", "beet daikon"),
    ("quote", "text_match", "100% ", "cherry"),
    ("quote", "text_match", "1%", ""),
    ("kind", "text_match_insensitive", "ROOT", "beet daikon"),
    ("price", "is_empty", None, "apple beet cherry"),
    ("kind", "==", "x' OR '1'='1", ""),
]


def _add_filter(key: str, operator: str, value: Any, expected: str) -> None:
    async def run(store: Subject) -> None:
        await store.add(nodes())
        check(await store.ids(where(key, operator, value)), words(expected))

    BEHAVIOURS[f"filter: {key} {operator} {value!r}"] = run


for _filter in FILTERS:
    _add_filter(*_filter)

FRUIT = MetadataFilter(key="kind", value="fruit")
FEW = MetadataFilter(key="stars", value=5, operator=FilterOperator.LT)


def _add_condition(name: str, filters: MetadataFilters, expected: str) -> None:
    async def run(store: Subject) -> None:
        await store.add(nodes())
        check(await store.ids(filters), words(expected))

    BEHAVIOURS[f"condition: {name}"] = run


_add_condition("and", MetadataFilters(filters=[FRUIT, FEW]), "apple")
_add_condition(
    "or", MetadataFilters(filters=[FRUIT, FEW], condition=FilterCondition.OR), "apple cherry"
)
_add_condition(
    "not", MetadataFilters(filters=[FRUIT], condition=FilterCondition.NOT), "beet daikon"
)
_add_condition(
    "or within and",
    MetadataFilters(
        filters=[
            MetadataFilters(
                filters=[FRUIT, MetadataFilter(key="stars", value=5)],
                condition=FilterCondition.OR,
            ),
            MetadataFilter(key="stars", value=1, operator=FilterOperator.GT),
        ]
    ),
    "beet cherry",
)
_add_condition("no filters at all", MetadataFilters(filters=[]), "apple beet cherry daikon")


# --- getting and deleting -------------------------------------------------------------------------


@behaviour("get_nodes by ids")
async def _(store: Subject) -> None:
    await store.add(nodes())
    check(await store.get(["apple", "beet", "none"]), words("apple beet"))


@behaviour("get_nodes by filters")
async def _(store: Subject) -> None:
    await store.add(nodes())
    check(await store.get(filters=where("kind", "==", "fruit")), words("apple cherry"))


@behaviour("get_nodes by ids and filters together")
async def _(store: Subject) -> None:
    await store.add(nodes())
    check(await store.get(["apple", "beet"], where("kind", "==", "fruit")), ["apple"])


@behaviour("delete removes a document's nodes and no others")
async def _(store: Subject) -> None:
    await store.add(nodes())
    await store.delete("garden")
    check(await store.ids(), words("beet daikon"))


@behaviour("delete_nodes by ids")
async def _(store: Subject) -> None:
    await store.add(nodes())
    await store.delete_nodes(["apple", "none"])
    check(await store.ids(), words("beet cherry daikon"))


@behaviour("delete_nodes by filters")
async def _(store: Subject) -> None:
    await store.add(nodes())
    await store.delete_nodes(filters=where("kind", "==", "fruit"))
    check(await store.ids(), words("beet daikon"))


@behaviour("delete_nodes by ids and filters together")
async def _(store: Subject) -> None:
    await store.add(nodes())
    await store.delete_nodes(["apple", "beet"], where("kind", "==", "fruit"))
    check(await store.ids(), words("beet cherry daikon"))


@behaviour("delete_nodes without arguments deletes nothing")
async def _(store: Subject) -> None:
    await store.add(nodes())
    await store.delete_nodes()
    check(await store.ids(), sorted(TEXTS))


@behaviour("clear empties the store")
async def _(store: Subject) -> None:
    await store.add(nodes())
    await store.clear()
    check(await store.ids(), [])


async def attempt(run: Behaviour, subject: Subject) -> str | None:
    """Why a store fails, None when it does not."""
    try:
        await subject.store.aclear()
        async with asyncio.timeout(20):
            await run(subject)
    except Exception as error:  # noqa: BLE001 - whatever a store raises is a finding
        reason = " ".join(str(error).split())[:100]
        return f"{type(error).__name__}: {reason}" if reason else type(error).__name__
    return None


async def main() -> int:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        database = Database(DatabaseConfig(data_dir=Path(folder), collection="ours"))
        async with database.connection() as connection:
            info = connection.info
            place = f"{info.user}@/{info.dbname}?host={info.host}&port={info.port}"
        ours = CorpusVectorStore(database=database, embed_dim=DIMENSIONS)
        stock = PGVectorStore(
            connection_string=f"postgresql+psycopg2://{place}",
            async_connection_string=f"postgresql+psycopg://{place}",
            table_name="stock",
            schema_name="stock",
            embed_dim=DIMENSIONS,
            hybrid_search=True,
            use_halfvec=True,
            use_jsonb=True,
            hnsw_kwargs={"hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": 40},
        )
        contestants = [
            ("WebRAG async", Subject(ours, is_async=True)),
            ("WebRAG sync", Subject(ours, is_async=False)),
            ("stock async", Subject(stock, is_async=True)),
            ("stock sync", Subject(stock, is_async=False)),
        ]
        print(f"{'behaviour':58}", *(f"{name:>12}" for name, _ in contestants))
        passed = dict.fromkeys((name for name, _ in contestants), 0)
        reasons = []
        for sentence, run in BEHAVIOURS.items():
            cells = []
            for name, subject in contestants:
                reason = await attempt(run, subject)
                passed[name] += reason is None
                cells.append("yes" if reason is None else "NO")
                if reason is not None:
                    reasons.append(f"{name}, {sentence}: {reason}")
            print(f"{sentence:58}", *(f"{cell:>12}" for cell in cells))
        print(f"{f'of {len(BEHAVIOURS)}':58}", *(f"{count:>12}" for count in passed.values()))
        print("\nWhy not:", *reasons, sep="\n  ")
        await stock.close()
        await database.close()
        ours_lack = len(BEHAVIOURS) - min(passed["WebRAG async"], passed["WebRAG sync"])
        return int(ours_lack > 0)


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))

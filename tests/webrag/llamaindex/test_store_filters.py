import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from webrag.corpus.schema import drop_collection
from webrag.errors import InputError
from webrag.llamaindex.store import CorpusVectorStore
from webrag.llamaindex.store_filters import filter_condition
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database

NODES = {
    "a": {"source_url": "https://docs.test/a", "lang": "py", "stars": 5, "tags": ["x", "y"]},
    "b": {"source_url": "https://docs.test/b", "lang": "go", "stars": 10, "tags": ["y"]},
    "c": {"source_url": "https://docs.test/b", "lang": "Go!", "stars": 2.5, "tags": []},
    "d": {"source_url": "https://docs.test/d?q='1'", "has_code": True, "stars": "7"},
    "e": {"lang": "100%_\\ \"quoted\" 'text' :name %s", "date": "2026-01-02"},
}

PAYLOADS = [
    "x' OR 1=1 --",
    "x') OR ('1'='1",
    "'; drop schema public cascade; --",
    ":name",
    "%s",
    "%(name)s",
    "{documents}",
    "\\",
    '"',
    "\u2019 or 1=1",
]


@pytest.fixture(scope="module")
def store(postgres_dir: Path) -> Iterator[Any]:
    """Filters only read, so all tests share one collection."""
    config = DatabaseConfig(data_dir=postgres_dir, collection=f"test_{uuid4().hex[:16]}")
    database = Database(config)
    made = CorpusVectorStore(database=database, embed_dim=4)
    nodes = [TextNode(id_=name, text=name, metadata=data) for name, data in NODES.items()]
    for number, node in enumerate(nodes):
        node.embedding = [1.0, float(number), 0.0, 0.0]
    made.add(nodes)
    yield made
    asyncio.run(drop(database))


async def drop(database: Database) -> None:
    await drop_collection(database)
    await database.close()


def one(key: Any, operator: Any, value: Any = None) -> Any:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


def ids(store: CorpusVectorStore, filters: MetadataFilters) -> Any:
    return "".join(sorted(node.node_id for node in store.get_nodes(filters=filters)))


@pytest.mark.parametrize(
    ("key", "operator", "value", "expected"),
    [
        pytest.param("lang", "==", "py", "a", id="eq-text"),
        pytest.param("lang", "==", NODES["e"]["lang"], "e", id="eq-odd-characters"),
        pytest.param("stars", "==", 5, "a", id="eq-number"),
        pytest.param("stars", "==", 7, "d", id="eq-number-in-a-string"),
        pytest.param("has_code", "==", 1, "d", id="eq-boolean-as-number"),
        pytest.param("has_code", "==", "true", "d", id="eq-boolean-as-text"),
        pytest.param("lang", "!=", "py", "bcde", id="ne-matches-missing"),
        pytest.param("stars", ">", 5, "bd", id="gt"),
        pytest.param("stars", ">=", 5, "abd", id="gte"),
        pytest.param("stars", "<", 5, "c", id="lt"),
        pytest.param("stars", "<=", 5.0, "ac", id="lte"),
        pytest.param("date", ">", "2026-01-01", "e", id="gt-text"),
        pytest.param("lang", "in", ["py", "go"], "ab", id="in"),
        pytest.param("stars", "in", [5, 10], "ab", id="in-numbers"),
        pytest.param("lang", "in", [], "", id="in-nothing"),
        pytest.param("lang", "nin", ["py", "go"], "cde", id="nin-matches-missing"),
        pytest.param("tags", "contains", "y", "ab", id="contains-in-array"),
        pytest.param("lang", "contains", "quoted", "e", id="contains-in-text"),
        pytest.param("tags", "any", ["x", "z"], "a", id="any"),
        pytest.param("tags", "all", ["x", "y"], "a", id="all"),
        pytest.param("lang", "text_match", "o", "bce", id="text-match"),
        pytest.param("lang", "text_match", "%", "e", id="text-match-is-no-pattern"),
        pytest.param("lang", "text_match_insensitive", "GO", "bc", id="text-match-insensitive"),
        pytest.param("tags", "is_empty", None, "cde", id="is-empty"),
        pytest.param("source_url", "==", "https://docs.test/b", "bc", id="column-eq"),
        pytest.param("source_url", "in", ["https://docs.test/a"], "a", id="column-in"),
        pytest.param("source_url", "contains", "/b", "bc", id="column-contains"),
        pytest.param("source_url", ">", 5, "", id="column-against-number"),
        pytest.param("node_id", "nin", ["a", "b"], "cde", id="node-ids"),
    ],
)
def test_filter_selects(
    store: CorpusVectorStore, key: Any, operator: Any, value: Any, expected: Any
) -> None:
    assert ids(store, one(key, FilterOperator(operator), value)) == expected


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("operator", ["==", "text_match", "contains", ">"])
def test_crafted_value_selects_nothing_more(
    store: CorpusVectorStore, payload: str, operator: Any
) -> None:
    found = ids(store, one("lang", FilterOperator(operator), payload))

    is_part = operator in ("text_match", "contains")
    expected = [
        name
        for name, data in NODES.items()
        if (is_part and payload in data.get("lang", ""))
        or (operator == ">" and data.get("lang", "") > payload)
    ]
    assert found == "".join(expected)


@pytest.mark.parametrize("operator", ["in", "nin", "any", "all"])
def test_crafted_list_selects_nothing_more(store: CorpusVectorStore, operator: Any) -> None:
    found = [ids(store, one("tags", FilterOperator(operator), [each])) for each in PAYLOADS]

    assert set(found) == {"abcde" if operator == "nin" else ""}


@pytest.mark.parametrize("operator", list(FilterOperator))
def test_crafted_key_is_only_a_key(store: CorpusVectorStore, operator: Any) -> None:
    value = ["x"] if operator.value in ("in", "nin", "any", "all") else "x"

    for payload in PAYLOADS:
        if operator.value == "is_empty" or "\x00" in payload:
            found = ids(store, one(payload, operator, value))
            assert found == ("abcde" if operator.value in ("!=", "nin", "is_empty") else "")
        else:
            with pytest.raises(InputError, match="No stored node has the metadata key"):
                ids(store, one(payload, operator, value))


@pytest.mark.parametrize("operator", ["==", "!=", ">", "in", "nin"])
def test_a_key_no_node_has_is_refused_with_those_there_are(
    store: CorpusVectorStore, operator: str
) -> None:
    value: Any = ["x"] if operator in ("in", "nin") else "x"

    with pytest.raises(InputError, match=r"metadata key 'tagz'; there are .*'tags'"):
        ids(store, one("tagz", FilterOperator(operator), value))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        pytest.param(FilterCondition.AND, "", id="and"),
        pytest.param(FilterCondition.OR, "ab", id="or"),
        pytest.param(FilterCondition.NOT, "cde", id="not"),
    ],
)
def test_conditions_combine(store: CorpusVectorStore, condition: Any, expected: Any) -> None:
    parts = [MetadataFilter(key="lang", value=value) for value in ("py", "go")]

    assert ids(store, MetadataFilters(filters=parts, condition=condition)) == expected


def test_conditions_nest(store: CorpusVectorStore) -> None:
    inner = MetadataFilters(
        filters=[MetadataFilter(key="lang", value=value) for value in ("py", "go")],
        condition=FilterCondition.OR,
    )
    large = MetadataFilter(key="stars", value=6, operator=FilterOperator.GT)
    both = MetadataFilters(filters=[inner, large])
    neither = MetadataFilters(filters=[both], condition=FilterCondition.NOT)

    assert (ids(store, both), ids(store, neither)) == ("b", "acde")


def test_no_filters_select_everything(store: CorpusVectorStore) -> None:
    assert ids(store, MetadataFilters(filters=[])) == "abcde"


@pytest.mark.parametrize(
    ("operator", "value"),
    [
        pytest.param(FilterOperator.IN, "py", id="in-needs-a-list"),
        pytest.param(FilterOperator.EQ, ["py"], id="eq-needs-one-value"),
        pytest.param(FilterOperator.GT, None, id="gt-needs-a-value"),
    ],
)
def test_value_that_does_not_fit_its_operator_is_refused(operator: Any, value: Any) -> None:
    with pytest.raises(InputError, match="The filter on 'lang'"):
        filter_condition(one("lang", operator, value))


def nested(depth: int, condition: Any = FilterCondition.AND) -> MetadataFilters:
    filters = MetadataFilters(filters=[MetadataFilter(key="lang", value="py")])
    for _ in range(depth):
        filters = MetadataFilters(filters=[filters], condition=condition)
    return filters


ODD = {
    "nested": (nested(15), "a"),
    "nested 3,000 deep": (nested(3_000), InputError),
    "denied 3,000 deep": (nested(3_000, FilterCondition.NOT), InputError),
    "a list of 70,000": (one("lang", FilterOperator.IN, [f"v{n}" for n in range(70_000)]), None),
    "70,000 filters": (
        MetadataFilters(
            filters=[MetadataFilter(key="lang", value=f"v{n}") for n in range(70_000)],
            condition=FilterCondition.OR,
        ),
        InputError,
    ),
    "infinite": (one("stars", FilterOperator.LT, float("inf")), None),
    "no number": (one("stars", FilterOperator.GT, float("nan")), None),
    "beyond the database's numbers": (one("stars", FilterOperator.GT, 10**400), None),
    "NUL": (one("lang", FilterOperator.EQ, "a\0b"), None),
    "a lone surrogate": (one("lang", FilterOperator.TEXT_MATCH, "\ud800"), None),
    "NUL in a key": (one("a\0b", FilterOperator.EQ, "x"), None),
    "a surrogate in a key": (one("\ud800", FilterOperator.IS_EMPTY), None),
    "NUL in a list": (one("tags", FilterOperator.ALL, ["x", "\0"]), None),
    "an id that is none": (one("node_id", FilterOperator.IN, ["x", "\0"]), None),
}


def outcome(ask: Any) -> Any:
    """Which nodes were found, or InputError where a short sentence says why none can be."""
    try:
        return "".join(sorted(ask() or ()))
    except InputError as refusal:
        is_sentence = "SQLSTATE" not in str(refusal) and len(str(refusal)) < 500
        return InputError if is_sentence else refusal


@pytest.mark.timeout(60)
@pytest.mark.parametrize("case", ODD)
def test_odd_filters_select_or_are_refused_in_a_sentence(
    store: CorpusVectorStore, case: str
) -> None:
    filters, expected = ODD[case]
    query = VectorStoreQuery(
        query_embedding=[1.0, 0.0, 0.0, 0.0], similarity_top_k=5, filters=filters
    )
    for ask in (lambda: ids(store, filters), lambda: store.query(query).ids):
        found = outcome(ask)
        assert found == expected if expected else isinstance(found, str) or found is InputError


@pytest.mark.timeout(60)
@pytest.mark.parametrize("case", ODD)
async def test_odd_filters_reach_no_database_error_through_a_retriever(
    store: CorpusVectorStore, case: str
) -> None:
    index = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(embed_dim=4))
    retriever = index.as_retriever(filters=ODD[case][0], similarity_top_k=5)

    with contextlib.suppress(InputError):
        found = await asyncio.to_thread(retriever.retrieve, "py")
        assert len(found) <= 5

"""BM25 of all chunks as a search reads it, beside the definition."""

import math
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from llama_index.core.schema import TextNode
from psycopg import sql

from tests.webrag.packed_postings import unpack_postings
from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.corpus.queries import stored_versions
from webrag.corpus.writer import forget_page
from webrag.ingestion.models import NormalizedDocument
from webrag.ingestion.versions import Edition
from webrag.lexical.analysis import query_terms
from webrag.lexical.bm25 import child_key, score_words
from webrag.lexical.postings import unpack_rows
from webrag.llamaindex.store import CorpusVectorStore
from webrag.postgres.database import Database, table
from webrag.retrieval.chunk_search import totals_of
from webrag.retrieval.filters import EVERYTHING, NO_FILTERS, Scope, choose_versions
from webrag.retrieval.statements import Queries, fetch_together

NOW = datetime(2026, 5, 2, tzinfo=UTC)
WORDS = ("snapshot", "volume", "replica", "port", "server", "backup")
TERMS = query_terms(" ".join(WORDS))


def url(number: int) -> str:
    return f"https://docs.test/{number}"


def text(number: int) -> str:
    """Each word on one page of two, three and so on, and oftener the higher the number."""
    held = [word for place, word in enumerate(WORDS, 2) if number % place == 0]
    sentence = f"Page {number} tells of the {' '.join(held) or 'rest'}. "
    return f"# Page {number}\n\n" + sentence * (1 + number % 3) + "\n\n## More\n\n" + sentence


@pytest.fixture
async def pages(indexer: Indexer, make_document: Callable[..., NormalizedDocument]) -> None:
    for number in range(1, 12):
        await indexer.index(make_document(url(number), markdown=text(number)))


async def execute(database: Database, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    names = ("documents", "postings")
    tables = {name: table(database.config.collection, name) for name in names}

    async def work(connection: Any) -> Any:
        cursor = await connection.execute(sql.SQL(statement).format(**tables), values)
        return await cursor.fetchall() if cursor.description else []

    return await database.run(work)


async def scores(database: Database, scope: Scope = EVERYTHING) -> dict[int, float]:
    """BM25 of all chunks as a search reads it, by chunk."""
    queries = Queries(database.config.collection, scope)
    totals, rows = await database.run(
        lambda each: fetch_together(each, queries.totals(), queries.postings(TERMS)), snapshot=True
    )
    found = score_words(TERMS, unpack_rows(rows), totals_of(totals)).children
    keys = found.best()
    return dict(zip(keys.tolist(), found.at(keys).tolist(), strict=True))


async def defined_scores(database: Database, without: str = "") -> dict[int, float]:
    """BM25 by its definition, one posting of a page that can be found after another."""
    rows = await execute(
        database,
        "select p.term, p.document, p.packed from {postings} p"
        " join {documents} d on d.id = p.document where d.gone_at is null"
        " and d.edition is distinct from %s",
        without,
    )
    postings = [
        (term, document, entry)
        for term, document, packed in rows
        for entry in unpack_postings(packed)
    ]
    lengths = {(page, entry["ordinal"]): int(entry["length"]) for _, page, entry in postings}
    average = sum(lengths.values()) / len(lengths)
    held = Counter(term for term, _, _ in postings)
    found: dict[int, float] = defaultdict(float)
    for term, page, entry in postings:
        if term in TERMS:
            idf = math.log(1 + (len(lengths) - held[term] + 0.5) / (held[term] + 0.5))
            tf, length = float(entry["tf"]), float(entry["length"])
            norm = 1.2 * (0.25 + 0.75 * length / average)
            found[child_key(page, int(entry["ordinal"]))] += idf * tf * 2.2 / (tf + norm)
    return found


Change = Callable[[Database, Corpus, Indexer, Any], Awaitable[Any]]


async def nothing(*_: Any) -> None:
    """Leaves the pages as they are."""


async def forget(database: Database, *_: Any) -> None:
    await forget_page(database, url(6))


async def forget_several(database: Database, *_: Any) -> None:
    for number in range(1, 5):
        await forget_page(database, url(number))


async def go(_: Database, corpus: Corpus, *__: Any) -> None:
    await corpus.mark_gone(url(6), NOW)


async def go_and_return(_: Database, corpus: Corpus, *__: Any) -> None:
    await corpus.mark_gone(url(6), NOW)
    await corpus.touch(url(6), NOW)


async def replace(_: Database, __: Corpus, indexer: Indexer, make_document: Any) -> None:
    await indexer.index(make_document(url(6), markdown=text(12)))


async def add_nodes(database: Database, *_: Any) -> None:
    store = CorpusVectorStore(database=database, embed_dim=16)
    node = TextNode(
        text="A snapshot of the port.", embedding=[0.5] * 16, metadata={"source_url": url(6)}
    )
    await store.async_add([node])


async def add_nodes_and_forget(database: Database, *_: Any) -> None:
    await add_nodes(database)
    await forget_page(database, url(6))


CHANGES = (
    *(nothing, forget, forget_several, go, go_and_return),
    *(replace, add_nodes, add_nodes_and_forget),
)


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize("change", CHANGES)
async def test_words_score_as_bm25_is_defined_whatever_has_changed(
    database: Database,
    corpus: Corpus,
    indexer: Indexer,
    make_document: Any,
    change: Change,
) -> None:
    await change(database, corpus, indexer, make_document)

    assert await scores(database) == pytest.approx(await defined_scores(database))


async def newest_version(database: Database) -> Scope:
    """What is searched of two versions when none is asked for."""
    stored = await database.run(lambda connection: stored_versions(connection))
    choice = choose_versions(NO_FILTERS, stored)
    return Scope.of(NO_FILTERS, choice)


@pytest.fixture
async def versions(pages: None, corpus: Corpus) -> None:
    """Every third page is of version 1.10, the others of 1.9; the last two of none."""
    for number in range(1, 10):
        version = "1.9" if number % 3 else "1.10"
        edition = Edition(version=version, library="docs.test", root=f"docs.test/{version}")
        await corpus.set_edition(url(number), edition)


@pytest.mark.usefixtures("versions")
async def test_graph_leaves_out_pages_of_other_versions_and_those_that_are_gone(
    database: Database, corpus: Corpus
) -> None:
    await corpus.mark_gone(url(6), NOW)
    queries = Queries(database.config.collection, await newest_version(database))
    nearest = queries.nearest_in_graph([0.5] * 16, 100, "c.document")

    rows = await database.run(nearest.fetch)

    found = await execute(
        database,
        "select url from {documents} where id = any(%s) order by url",
        [page for page, _ in rows],
    )
    assert {each for (each,) in found} == {url(number) for number in (3, 9, 10, 11)}


@pytest.mark.usefixtures("versions")
@pytest.mark.parametrize("change", [nothing, forget_several, go, replace, add_nodes])
async def test_words_of_the_newest_version_are_weighed_by_its_own_pages(
    database: Database, corpus: Corpus, indexer: Indexer, make_document: Any, change: Change
) -> None:
    await change(database, corpus, indexer, make_document)
    scope = await newest_version(database)

    found = await scores(database, scope)

    assert scope.left_out == ("docs.test/1.9",)
    assert found == pytest.approx(await defined_scores(database, without="docs.test/1.9"))

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from llama_index.core.schema import TextNode
from psycopg import sql

from webrag.corpus.indexer import Indexer
from webrag.corpus.indexes import BLOCK_PAGES, compact_postings
from webrag.corpus.maintenance.checking import check_corpus
from webrag.corpus.pages import Corpus
from webrag.corpus.queries import stored_versions
from webrag.corpus.schema import ensure_schema
from webrag.corpus.writer import forget_page, next_page_ids
from webrag.ingestion.models import NormalizedDocument
from webrag.ingestion.versions import Edition
from webrag.lexical.analysis import query_terms
from webrag.lexical.bm25 import CorpusTotals, child_key, score_words
from webrag.lexical.postings import BLOCK_CHUNKS, unpack_postings
from webrag.llamaindex.store import CorpusVectorStore
from webrag.postgres.database import Database, table
from webrag.retrieval.filters import EVERYTHING, NO_FILTERS, Scope, choose_versions
from webrag.retrieval.postings import read_blocks, read_postings, totals_of
from webrag.retrieval.statements import Queries

NOW = datetime(2026, 5, 2, tzinfo=UTC)
SMALL = 4
"""Pages of a block in these tests; of eleven pages three are in none."""

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
    names = ("documents", "documents_gone", "postings", "blocks", "blocked_pages", "posting_blocks")
    tables = {name: table(database.config.collection, name) for name in names}

    async def work(connection: Any) -> Any:
        cursor = await connection.execute(sql.SQL(statement).format(**tables), values)
        return await cursor.fetchall() if cursor.description else []

    return await database.run(work)


async def scores(database: Database, scope: Scope = EVERYTHING) -> dict[int, float]:
    """BM25 of all chunks as a search reads it, by chunk."""
    queries = Queries(database.config.collection, scope)
    totals, postings = await database.run(
        lambda connection: read_postings(connection, queries, TERMS), snapshot=True
    )
    found = score_words(TERMS, postings, totals).children
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


async def totals(
    database: Database, scope: Scope = EVERYTHING
) -> tuple[CorpusTotals, CorpusTotals]:
    """Size of the collection as a search adds it up, and as it is counted page by page."""
    queries = Queries(database.config.collection, scope)

    async def work(connection: Any) -> tuple[CorpusTotals, CorpusTotals]:
        blocks = await read_blocks(connection, queries)
        added, counted = [
            totals_of(await each.fetch(connection))
            for each in (queries.totals(blocks.last, blocks.stale), queries.totals())
        ]
        return blocks.with_others(added), counted

    return await database.run(work)


Change = Callable[[Database, Corpus, Indexer, Any], Awaitable[Any]]


async def nothing(*_: Any) -> None:
    """Leaves the pages as they are."""


async def forget(database: Database, *_: Any) -> None:
    await forget_page(database, url(6))


async def forget_a_whole_block(database: Database, *_: Any) -> None:
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
    *(nothing, forget, forget_a_whole_block, go, go_and_return),
    *(replace, add_nodes, add_nodes_and_forget),
)


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize("gathers_again", [False, True])
@pytest.mark.parametrize("change", CHANGES)
async def test_searches_of_blocks_are_exact_whatever_has_changed(
    database: Database,
    corpus: Corpus,
    indexer: Indexer,
    make_document: Any,
    change: Change,
    gathers_again: bool,
) -> None:
    assert await compact_postings(database, SMALL) == 2

    await change(database, corpus, indexer, make_document)
    await compact_postings(database, SMALL if gathers_again else BLOCK_PAGES)

    assert await scores(database) == pytest.approx(await defined_scores(database))
    added, counted = await totals(database)
    assert added == counted


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
@pytest.mark.parametrize("change", [nothing, forget_a_whole_block, go, replace, add_nodes])
async def test_search_of_the_newest_version_reads_blocks_exactly(
    database: Database, corpus: Corpus, indexer: Indexer, make_document: Any, change: Change
) -> None:
    await compact_postings(database, SMALL)
    await change(database, corpus, indexer, make_document)
    scope = await newest_version(database)

    read = await database.run(
        lambda connection: read_blocks(connection, Queries(database.config.collection, scope))
    )
    assert (scope.left_out, read.last) == (("docs.test/1.9",), 8)
    found = await scores(database, scope)
    assert found == pytest.approx(await defined_scores(database, without="docs.test/1.9"))
    added, counted = await totals(database, scope)
    assert added == counted


@pytest.mark.usefixtures("pages")
async def test_a_term_is_in_one_row_for_each_block(database: Database) -> None:
    await compact_postings(database, SMALL)

    rows = await execute(database, "select count(*) from {posting_blocks} where term = 'page'")

    assert rows == [(2,)]


@pytest.mark.usefixtures("pages")
async def test_few_pages_make_no_block(database: Database) -> None:
    assert await compact_postings(database) == 0


@pytest.mark.usefixtures("pages")
async def test_a_block_that_lost_many_pages_is_made_without_them(database: Database) -> None:
    await compact_postings(database, SMALL)
    for number in (1, 2):
        await forget_page(database, url(number))

    assert await compact_postings(database, SMALL) == 1

    counted = await execute(database, "select documents from {blocks} order by first")
    assert counted == [(2,), (4,)]


@pytest.mark.usefixtures("pages")
async def test_a_page_that_is_changed_meanwhile_is_read_from_its_own_rows(
    database: Database, other_database: Database
) -> None:
    async with other_database.connection() as connection:
        await connection.execute(
            sql.SQL("select from {} where url = %s for update").format(
                table(database.config.collection, "documents")
            ),
            (url(2),),
        )
        await compact_postings(database, SMALL)

    stale = await execute(database, "select count(*) from {blocked_pages} where is_stale")
    assert stale == [(1,)]
    assert await scores(database) == pytest.approx(await defined_scores(database))


@pytest.mark.usefixtures("pages")
async def test_a_page_that_has_its_number_but_is_not_stored_yet_is_waited_for(
    database: Database, other_database: Database
) -> None:
    async with other_database.connection() as connection:
        await next_page_ids(connection, 1)

        assert await compact_postings(database, SMALL) == 0

    assert await compact_postings(database, SMALL) == 2


@pytest.mark.usefixtures("pages")
async def test_processes_that_gather_at_once_make_each_block_once(
    database: Database, other_database: Database
) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(compact_postings(each, SMALL)) for each in (database, other_database)
        ]

    assert sum(task.result() for task in tasks) == 2
    assert await execute(database, "select count(*) from {blocked_pages}") == [(8,)]


async def store_empty_pages(database: Database, children: list[int]) -> None:
    """Pages that say that they have so many chunks."""
    await execute(
        database,
        "insert into {documents} (document_id, url, requested_url, site, fetched_at, depth,"
        " markdown, html, content_hash, status, source, token_count, child_count, term_count)"
        " select gen_random_uuid(), 'https://a.test/' || n, '', 'a.test', now(), 0, '', '', n, 200,"
        " 'builtin', 0, children, 0 from unnest(%s::int[]) with ordinality u(children, n)",
        children,
    )


@pytest.mark.usefixtures("corpus")
async def test_a_block_has_no_more_chunks_than_can_be_told_apart_in_two_bytes(
    database: Database,
) -> None:
    half = BLOCK_CHUNKS // 2
    await store_empty_pages(database, [half, half, 1, half, BLOCK_CHUNKS, 1])

    await compact_postings(database)

    counted = await execute(database, "select documents, children from {blocks} order by first")
    assert counted == [(2, 2 * half), (2, half + 1), (1, BLOCK_CHUNKS)]


async def test_storing_pages_gathers_them_now_and_then(
    database: Database, indexer: Indexer, make_document: Callable[..., NormalizedDocument]
) -> None:
    await store_empty_pages(database, [0] * (BLOCK_PAGES - 1))

    await indexer.index(make_document(url(1)))

    assert await execute(database, "select documents from {blocks}") == [(BLOCK_PAGES,)]


@pytest.mark.usefixtures("pages")
async def test_a_collection_without_the_tables_gets_them_when_it_is_opened(
    database: Database,
) -> None:
    await execute(database, "drop table {posting_blocks}, {blocked_pages}, {blocks}")
    await execute(database, "drop index {documents_gone}")
    before = await check_corpus(database)
    assert {check.name for check in before.checks if check.level != "ok"} == {"schema"}

    await ensure_schema(database, embedding_model="counting", embedding_dimensions=16)

    assert await scores(database) == pytest.approx(await defined_scores(database))


@pytest.fixture
async def other_database(database: Database) -> AsyncIterator[Database]:
    """The same collection over connections of its own, as another process has them."""
    opened = Database(database.config)
    yield opened
    await opened.close()

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.node_parser.webrag import ParentChildNodeParser
from psycopg import AsyncConnection, sql

from tests.webrag.packed_postings import unpack_postings
from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import ensure_schema
from webrag.embedding.embedder import Embedder
from webrag.embedding.served import ServedEmbedding
from webrag.errors import ProviderError
from webrag.ingestion.models import NormalizedDocument
from webrag.postgres.database import Database, table

MakeDocument = Callable[..., NormalizedDocument]

URL = "https://docs.test/guide"


async def rows(database: Database, statement: Any, name: Any) -> Any:
    query = sql.SQL(statement).format(table(database.config.collection, name))

    async def work(connection: AsyncConnection[Any]) -> Any:
        return await (await connection.execute(query)).fetchall()

    return await database.run(work)


async def test_new_page_is_indexed_with_all_its_chunks(
    database: Database,
    indexer: Indexer,
    counting_embedding: BaseEmbedding,
    make_document: MakeDocument,
) -> None:
    page = await indexer.index(make_document())

    (stored,) = (await rows(database, "select count(*) from {}", "data_children"))[0]
    assert page.outcome == "indexed"
    assert page.chunk_count == page.chunks_added == page.chunks_embedded == stored > 3
    assert len(counting_embedding.texts) == stored


async def test_stored_rows_are_cut_out_of_the_stored_markdown(
    database: Database, corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())

    markdown = await corpus.markdown(URL)
    found = await rows(database, "select text, char_start, char_end from {}", "data_children")
    found += await rows(database, "select text, char_start, char_end from {}", "parents")
    assert all(markdown[start:end] == text for text, start, end in found)


async def test_unchanged_page_is_only_marked_as_fetched(
    corpus: Corpus, indexer: Indexer, counting_embedding: BaseEmbedding, make_document: MakeDocument
) -> None:
    first = await indexer.index(make_document())
    counting_embedding.texts.clear()
    later = make_document().fetched_at.replace(month=7)

    page = await indexer.index(make_document(fetched_at=later, etag='"2"'))

    stored = await corpus.page(URL)
    assert (page.outcome, page.page_id, page.chunks_added) == ("unchanged", first.page_id, 0)
    assert (stored.fetched_at, stored.etag) == (later, '"2"')
    assert counting_embedding.texts == []


async def test_changed_section_is_the_only_one_embedded_again(
    indexer: Indexer, counting_embedding: BaseEmbedding, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    counting_embedding.texts.clear()
    changed = make_document().markdown.replace("lags behind", "is far behind")

    page = await indexer.index(make_document(markdown=changed))

    assert (page.outcome, page.chunks_added, page.chunks_embedded) == ("updated", 1, 1)
    assert ["is far behind" in text for text in counting_embedding.texts] == [True]


async def test_text_inserted_above_embeds_nothing_below_again(
    indexer: Indexer, counting_embedding: BaseEmbedding, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    counting_embedding.texts.clear()
    longer = make_document().markdown.replace(
        "## Snapshots", "## News\n\nA new section came first.\n\n## Snapshots"
    )

    await indexer.index(make_document(markdown=longer))

    assert all("News" in text for text in counting_embedding.texts)


async def test_service_sees_each_text_once_within_and_across_pages(
    database: Database, make_document: MakeDocument, embedding_service: Any
) -> None:
    await ensure_schema(database, embedding_model="served/m", embedding_dimensions=48)
    model = ServedEmbedding("m", api_key="none", api_base=embedding_service.url)
    parser = ParentChildNodeParser(parent_tokens=60, child_tokens=25)
    indexer = Indexer(Corpus(database), parser, Embedder(model, 48))
    section = "## Limits\n\nThe limit is a hundred connections for each client.\n\n"

    first = await indexer.index(make_document(markdown=section * 3))
    second = await indexer.index(make_document("https://docs.test/other", markdown=section * 2))

    assert first.chunk_count + second.chunk_count == 5
    assert len(embedding_service.texts) == 1


async def test_chunks_another_page_has_are_not_embedded_again(
    indexer: Indexer, counting_embedding: BaseEmbedding, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    counting_embedding.texts.clear()

    copy = make_document("https://mirror.test/guide", markdown=make_document().markdown + "\n")
    page = await indexer.index(copy)

    assert (page.outcome, page.chunks_embedded) == ("indexed", 0)
    assert counting_embedding.texts == []


async def test_new_title_embeds_every_chunk_again(
    indexer: Indexer, counting_embedding: BaseEmbedding, make_document: MakeDocument
) -> None:
    first = await indexer.index(make_document())
    counting_embedding.texts.clear()

    page = await indexer.index(make_document(title="Another title"))

    assert page.chunks_embedded == first.chunk_count == len(counting_embedding.texts)


async def test_new_links_replace_the_old_ones_although_the_text_is_the_same(
    corpus: Corpus, indexer: Indexer, counting_embedding: BaseEmbedding, make_document: MakeDocument
) -> None:
    await indexer.index(make_document(links=["https://docs.test/a"]))
    counting_embedding.texts.clear()

    page = await indexer.index(make_document(links=["https://docs.test/b"]))

    assert (page.outcome, page.chunks_embedded) == ("updated", 0)
    assert [link.url for link in await corpus.links([URL])] == ["https://docs.test/b"]


async def test_page_served_under_two_urls_is_stored_once(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    links = ["https://docs.test/x"]
    first = await indexer.index(make_document("https://docs.test/a/", links=[*links, URL]), depth=2)

    twin = make_document("https://docs.test/a/index.html", links=[*links, URL])
    page = await indexer.index(twin, depth=1)

    assert (page.page_id, page.outcome, page.depth) == (first.page_id, "unchanged", 1)
    assert (await corpus.page("https://docs.test/a/index.html")).url == "https://docs.test/a/"
    assert (await corpus.status()).documents == 1


async def test_same_text_with_other_links_is_another_page(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document("https://docs.test/1/x", links=["https://docs.test/1/y"]))
    await indexer.index(make_document("https://docs.test/2/x", links=["https://docs.test/2/y"]))

    assert (await corpus.status()).documents == 2


async def test_page_that_stops_being_a_twin_gets_its_own_rows(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document("https://docs.test/a/"))
    await indexer.index(make_document("https://docs.test/b/"))

    page = await indexer.index(make_document("https://docs.test/b/", markdown="# B\n\nnew\n"))

    assert (page.outcome, page.url) == ("indexed", "https://docs.test/b/")
    assert (await corpus.status()).documents == 2


async def test_failed_embedding_leaves_the_stored_version(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    await indexer.index(make_document())
    parser = ParentChildNodeParser()
    broken = Indexer(corpus, parser, Embedder(indexer._embedder.model, 3))

    with pytest.raises(ProviderError):
        await broken.index(make_document(markdown="# Other\n\ntext\n"))

    assert await corpus.markdown(URL) == make_document().markdown


async def test_blank_page_is_stored_without_chunks(
    indexer: Indexer, make_document: MakeDocument
) -> None:
    page = await indexer.index(make_document(markdown=" \n"))

    assert (page.outcome, page.chunk_count) == ("indexed", 0)


async def test_page_with_very_many_chunks_can_be_stored(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    sections = "\n\n".join(f"## Part {n}\n\nA text." for n in range(500))
    indexer = Indexer(indexer._corpus, ParentChildNodeParser(child_tokens=10), indexer._embedder)

    page = await indexer.index(make_document(markdown=f"# Long\n\n{sections}\n", title="Many"))

    found = await rows(
        database,
        "select string_agg(packed, ''::bytea order by segment), count(*) from {}"
        " where term = 'mani' group by term",
        "postings",
    )
    packed, segments = found[0]
    assert segments == 2
    assert len(unpack_postings(packed)) == page.chunk_count > 450


async def test_pages_can_be_indexed_at_once(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> None:
    pages = [make_document(f"https://docs.test/{n}", f"# P{n}\n\ntext {n}\n") for n in range(12)]

    await asyncio.gather(*(indexer.index(page) for page in pages))

    assert (await corpus.status()).documents == 12


async def test_pages_of_one_text_take_turns_and_its_chunks_are_embedded_once(
    database: Database, make_document: MakeDocument, embedding_service: Any
) -> None:
    await ensure_schema(database, embedding_model="served/m", embedding_dimensions=48)
    embedding_service.delay_s = 0.05
    model = ServedEmbedding("m", api_key="none", api_base=embedding_service.url)
    parser = ParentChildNodeParser(parent_tokens=60, child_tokens=25)
    corpus = Corpus(database)
    indexer = Indexer(corpus, parser, Embedder(model, 48))
    pages = [make_document(f"https://docs{n}.test/guide") for n in range(6)]

    stored = await asyncio.gather(*(indexer.index(page) for page in pages))

    assert sum(page.chunks_embedded for page in stored) == stored[0].chunk_count
    assert sorted(embedding_service.texts) == sorted(set(embedding_service.texts))


async def test_pages_that_are_ready_together_are_written_in_one_transaction(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    pages = [make_document(f"https://docs.test/{n}", f"# Page {n}\n\nText.") for n in range(6)]

    await asyncio.gather(*map(indexer.index, pages))

    found = await rows(database, "select xmin::text from {}", "documents")
    assert (len(found), len(set(found))) == (6, 1)


async def test_page_under_two_addresses_at_once_is_stored_once(
    database: Database, indexer: Indexer, make_document: MakeDocument
) -> None:
    pages = [make_document(f"https://docs.test/{name}") for name in ("guide", "guide/", "g")]

    found = await asyncio.gather(*map(indexer.index, pages))

    assert sorted(page.outcome for page in found) == ["indexed", "unchanged", "unchanged"]
    assert len(await rows(database, "select url from {}", "documents")) == 1

"""A database that cannot do what is asked: one clear sentence each, and nothing stored is lost."""

import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from llama_index.node_parser.webrag import ParentChildNodeParser
from psycopg import sql

from tests.corpus_fixtures import DIMENSIONS, CountingEmbedding
from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import ensure_schema
from webrag.embedding.embedder import Embedder
from webrag.errors import ConfigurationError, StorageError, WebRAGError
from webrag.ingestion.models import NormalizedDocument
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database
from webrag.postgres.server import start_error, storage_error, unreachable_error

URL = "https://docs.test/guide"
MakeDocument = Callable[..., NormalizedDocument]


@pytest.fixture
def stored(
    corpus: Corpus, indexer: Indexer, make_document: MakeDocument
) -> Callable[[], Awaitable[None]]:
    """Stores the guide in the shared server's own collection."""

    async def store() -> None:
        await indexer.index(make_document())

    return store


def indexer_of(database: Database) -> Indexer:
    embedder = Embedder(CountingEmbedding(model_name="counting"), DIMENSIONS)
    return Indexer(Corpus(database), ParentChildNodeParser(), embedder)


def assert_clear(error: WebRAGError, *words: str) -> None:
    said = f"{error} {error.hint}"
    assert all(word in said for word in words), said
    assert "\n" not in said
    assert error.hint


async def make_corpus(database: Database, make_document: MakeDocument) -> None:
    await ensure_schema(database, embedding_model="counting", embedding_dimensions=DIMENSIONS)
    await indexer_of(database).index(make_document())
    await database.close()


async def test_reader_may_read_and_is_told_that_writing_is_not_allowed(
    server: Any, make_document: MakeDocument
) -> None:
    await make_corpus(server.database(), make_document)
    server.execute(
        f"grant usage on schema webrag to {server.role}",
        f"grant select on all tables in schema webrag to {server.role}",
        dbname=server.name,
    )
    database = server.database(server.role)

    await ensure_schema(database, embedding_model="counting", embedding_dimensions=DIMENSIONS)
    page = await Corpus(database).page(URL)
    with pytest.raises(StorageError) as raised:
        await indexer_of(database).index(make_document(markdown="# Changed\n\ntext"))
    await database.close()

    assert page is not None
    assert_clear(raised.value, "may not do this", "permission denied", "may write")
    server.execute(f"drop owned by {server.role}", dbname=server.name)


async def test_user_without_any_right_is_told_so(server: Any, make_document: MakeDocument) -> None:
    await make_corpus(server.database(), make_document)
    database = server.database(server.role)

    with pytest.raises(StorageError) as raised:
        await ensure_schema(database, embedding_model="counting", embedding_dimensions=DIMENSIONS)
    await database.close()

    assert_clear(raised.value, "may not do this", "permission denied for schema webrag")


async def test_database_that_is_read_only_says_so(server: Any, make_document: MakeDocument) -> None:
    await make_corpus(server.database(), make_document)
    server.execute(f"alter database {server.name} set default_transaction_read_only = on")
    database = server.database()

    with pytest.raises(StorageError) as raised:
        await indexer_of(database).index(make_document(markdown="# Changed\n\ntext"))
    await database.close()

    assert_clear(raised.value, "accepts no writes", "primary server")


async def test_server_without_pgvector_is_refused(server: Any) -> None:
    server.execute(
        "create view public.pg_available_extensions as"
        " select * from pg_catalog.pg_available_extensions where name <> 'vector'",
        f"alter database {server.name} set search_path = public, pg_catalog",
        dbname=server.name,
    )
    database = server.database()

    with pytest.raises(ConfigurationError) as raised:
        await database.open()

    assert_clear(raised.value, "The server has no pgvector.", "install the package pgvector")


async def test_full_disk_is_named_and_the_page_is_as_it_was(
    database: Database,
    stored: Callable[[], Awaitable[None]],
    indexer: Indexer,
    make_document: MakeDocument,
) -> None:
    await stored()
    collection = database.config.collection

    async def fill(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
        for statement in (
            "create function {0}.full_disk() returns trigger language plpgsql as $$ begin"
            " raise exception using errcode = 'disk_full', message ="
            " 'could not extend file \"base/5/16453\": No space left on device'; end $$",
            "create trigger full_disk before insert on {0}.data_children"
            " for each row execute function {0}.full_disk()",
        ):
            await connection.execute(sql.SQL(statement).format(sql.Identifier(collection)))

    await database.run(fill)
    with pytest.raises(StorageError) as raised:
        await indexer.index(make_document(markdown="# Changed\n\ntext"))
    page = await Corpus(database).page(URL)
    await database.run(
        lambda each: each.execute(
            sql.SQL("drop function {}.full_disk cascade").format(sql.Identifier(collection))
        )
    )

    assert_clear(raised.value, "disk of the database is full", "No space left", "Free space")
    assert page is not None
    assert page.content_hash == make_document().content_hash


def test_server_that_lacks_room_for_its_log_is_not_called_damaged(tmp_path: Path) -> None:
    reason = 'FATAL:  could not write to file "pg_wal/xlogtemp.7": No space left on device'

    error = start_error(tmp_path, tmp_path / "server.log", reason)

    assert_clear(error, "is full", "Free space", "intact")


def test_server_that_admits_nobody_for_lack_of_room_is_said_to_have_a_full_disk() -> None:
    refusal = psycopg.OperationalError(
        "connection failed: FATAL:  could not write init file: No space left on device"
    )

    assert_clear(unreachable_error("host=/data", refusal), "is full", "/data", "Free space")


def test_connection_lost_while_the_disk_has_room_is_not_called_full(tmp_path: Path) -> None:
    lost = psycopg.OperationalError("server closed the connection unexpectedly")

    assert "connection to the database was lost" in str(storage_error(lost, tmp_path))


@pytest.fixture
def old_server() -> Iterator[str]:
    """The DSN of a server that greets as PostgreSQL 14 and answers nothing."""
    listening = socket.create_server(("127.0.0.1", 0))

    def message(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack("!i", len(body) + 4) + body

    def greet() -> None:
        client, _ = listening.accept()
        with client:
            client.recv(4096)
            settings = {"server_version": "14.9", "server_encoding": "UTF8"}
            client.sendall(
                message(b"R", struct.pack("!i", 0))
                + b"".join(
                    message(b"S", f"{name}\0{value}\0".encode()) for name, value in settings.items()
                )
                + message(b"Z", b"I")
            )
            while client.recv(4096):
                pass

    thread = threading.Thread(target=greet)
    thread.start()
    port = listening.getsockname()[1]
    yield f"postgresql://me@127.0.0.1:{port}/corpus?sslmode=disable&gssencmode=disable"
    thread.join()
    listening.close()


async def test_too_old_server_is_refused(old_server: str, tmp_path: Path) -> None:
    database = Database(DatabaseConfig(url=old_server, data_dir=tmp_path))

    with pytest.raises(ConfigurationError) as raised:
        await database.open()

    assert_clear(raised.value, "runs PostgreSQL 14.9; WebRAG needs 15", "embedded one")

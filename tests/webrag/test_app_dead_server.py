"""A database server that dies for good in the middle of an operation: one sentence each."""

import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from psycopg.conninfo import conninfo_to_dict

from webrag.app import WebRAG
from webrag.errors import StorageError
from webrag.postgres.embedded.server import EmbeddedPostgres
from webrag.settings import load_settings

PAGE = """<html><head><title>{0}</title></head><body><main><h1>{0}</h1>
<p>This page is about {0}, told at some length so that it counts as a page.</p>
<p><a href="/{1}">On to the next page</a></p></main></body></html>"""
PAGES = 4


class DyingServer:
    """A server that nothing starts again, because it is used by its address."""

    def __init__(self, folder: Path, cluster: Path) -> None:
        self._server = EmbeddedPostgres(folder)
        shutil.copytree(cluster, self._server.folder / "cluster")
        self._server.ensure()
        given = conninfo_to_dict(self._server.conninfo)
        host = quote(str(given["host"]), safe="")
        self.url = f"postgresql://postgres@/postgres?host={host}&port={given['port']}"
        self._pid_file = self._server.folder / "cluster/postmaster.pid"

    def die(self, *_given: Any) -> None:
        if not self._pid_file.exists():
            return
        os.kill(int(self._pid_file.read_text().split()[0]), signal.SIGQUIT)
        deadline = time.monotonic() + 20
        while self._pid_file.exists():  # it goes after the last backend
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def close(self) -> None:
        self.die()
        self._server.release()


@pytest.fixture
def server(tmp_path: Path, made_cluster: Path) -> Any:
    made = DyingServer(tmp_path / "data", made_cluster)
    yield made
    made.close()


@pytest.fixture
def site(static_site: Callable[..., Any]) -> Any:
    return static_site({f"/{n}": PAGE.format(f"apples {n}", n + 1) for n in range(PAGES)})


@pytest.fixture
async def rag(server: DyingServer, site: Any) -> AsyncIterator[WebRAG]:
    settings = load_settings(None, database_url=server.url, database_acquire_timeout=3)
    async with WebRAG(settings.allowing([urlsplit(site).netloc])) as made:
        await made.ingest([f"{site}/{n}" for n in range(PAGES - 1)])
        yield made


async def _reindex(rag: WebRAG, server: DyingServer, _site: Any, _path: Path) -> None:
    await rag.reindex(force=True, on_progress=server.die)


async def _forget(rag: WebRAG, server: DyingServer, site: Any, _path: Path) -> None:
    await rag.forget(site=urlsplit(str(site)).netloc, on_progress=server.die)


async def _export(rag: WebRAG, server: DyingServer, _site: Any, path: Path) -> None:
    server.die()
    await rag.export_corpus(path)


async def _import(rag: WebRAG, server: DyingServer, _site: Any, path: Path) -> None:
    await rag.export_corpus(path)
    await rag.clear()
    await rag.import_corpus(path, on_progress=server.die)
    server.die()
    await rag.import_corpus(path)


async def _search(rag: WebRAG, server: DyingServer, _site: Any, _path: Path) -> None:
    await rag.search("What is told about apples?")
    server.die()
    await rag.search("What is told about apples?")


async def _crawl(rag: WebRAG, server: DyingServer, site: Any, _path: Path) -> None:
    await rag.ingest_site(f"{site}/0", on_progress=server.die)


async def _status(rag: WebRAG, server: DyingServer, _site: Any, _path: Path) -> None:
    server.die()
    await rag.status()


OPERATIONS = [_reindex, _forget, _export, _import, _search, _crawl, _status]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.__name__.strip("_"))
async def test_death_of_the_server_is_told_in_a_sentence(
    rag: WebRAG, server: DyingServer, site: Any, tmp_path: Path, operation: Any
) -> None:
    with pytest.raises(StorageError) as caught:
        await operation(rag, server, site, tmp_path / "corpus.jsonl")

    assert_one_sentence(str(caught.value))
    assert caught.value.hint


async def test_examination_reports_the_death_of_the_server(
    rag: WebRAG, server: DyingServer
) -> None:
    result = await rag.check_corpus(everything=True, on_progress=server.die)

    failed = [check for check in result.checks if check.level == "fail"]
    assert failed
    assert_one_sentence(failed[0].found)


async def test_ingest_without_a_server_ends_in_one_sentence(
    rag: WebRAG, server: DyingServer, site: Any
) -> None:
    server.die()

    with pytest.raises(StorageError) as caught:
        await rag.ingest(f"{site}/{PAGES - 1}")

    assert_one_sentence(str(caught.value))


def assert_one_sentence(said: str) -> None:
    assert said.endswith(".")
    assert len(said.splitlines()) == 1
    assert not any(word in said for word in ("psycopg", "SQLSTATE", "Traceback", "Error:"))

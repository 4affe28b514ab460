"""Pages per second of fetch + convert + index: WebRAG beside LlamaIndex's stock pipeline.

Usage: python benchmarks/ingest_speed.py FOLDER [--pages N] [--reader NAME]...

The HTML files of FOLDER are served on loopback. WebRAG fetches them into its embedded Postgres. The
reference fetches the same list one after the other, takes the text of each page without markup and
gives it to the stock pipeline: SentenceSplitter, the same embedding model and PGVectorStore for
hybrid search in the same Postgres, once with chunks of 1,024 tokens and once cut so that there are
about as many chunks as WebRAG has. They take turns. Processor time is that of all processes,
Postgres among them; on a busy machine it tells more than pages per second. --reader names web
readers of llama-index-readers-web (the extra `readers`) to be measured in place of the plain one.
"""

import argparse
import asyncio
import importlib
import resource
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
import psutil
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document
from llama_index.vector_stores.postgres import PGVectorStore
from selectolax.lexbor import LexborHTMLParser

from webrag import WebRAG
from webrag.demo import serve_static_site
from webrag.embedding.bundled import BundledEmbedding
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database
from webrag.settings import load_settings

READERS: dict[str, dict[str, Any]] = {
    "SimpleWebPageReader": {"html_to_text": True},
    "TrafilaturaWebReader": {},
}
EMBEDDING = BundledEmbedding()
Load = Callable[[list[str]], Sequence[Document]]


def read_plainly(urls: Sequence[str]) -> list[Document]:
    with httpx2.Client() as client:
        pages = [client.get(url).raise_for_status().text for url in urls]
    return [Document(text=LexborHTMLParser(html).text(separator=" ")) for html in pages]


class Clock:
    """The shortest time and the least processor time of each contestant, its pages and chunks."""

    def __init__(self, data_dir: Path) -> None:
        self.found: dict[str, tuple[float, float, int, int]] = {}
        self._server = f"{data_dir.resolve()}/"
        self.start()

    def start(self) -> None:
        self._began = time.perf_counter(), self._processor_s()

    def note(self, name: str, pages: int, chunks: int) -> None:
        seconds = time.perf_counter() - self._began[0]
        spent = self._processor_s() - self._began[1]
        best = self.found.get(name, (seconds, spent, pages, chunks))
        self.found[name] = (min(seconds, best[0]), min(spent, best[1]), pages, chunks)

    def show(self) -> None:
        for name, (seconds, spent, pages, chunks) in self.found.items():
            print(
                f"{name:52} {pages / seconds:7.1f} pages/s {pages:6} pages {chunks:7} chunks"
                f" {seconds:7.2f} s, {1000 * spent / pages:6.1f} ms of processors a page"
            )

    def _processor_s(self) -> float:
        """Of this process, those it has started, and Postgres, which is nobody's child."""
        found = {each for each in psutil.process_iter() if self._is_server(each)}
        for own in (psutil.Process(), *found):
            with suppress(psutil.Error):  # one of Postgres may have ended since
                found |= {own, *own.children(recursive=True)}
        times: list[float] = []
        for each in found:
            with suppress(psutil.Error):
                times += each.cpu_times()[:4]  # its own and those of children that ended
        return sum(times)

    def _is_server(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error):
            return str(process.cwd()).startswith(self._server)
        return False


async def webrag(rag: WebRAG, urls: Sequence[str], clock: Clock) -> int:
    """Store the pages and store them once more; give how many chunks they have."""
    await rag.clear()
    clock.start()
    report = await rag.ingest(urls)
    chunks = sum(page.chunk_count for page in report.pages)
    clock.note("WebRAG, into Postgres", len(report.pages), chunks)
    if report.failed:
        raise SystemExit(f"{len(report.failed)} pages were not stored: {report.failed}")
    clock.start()
    report = await rag.ingest(urls, refresh=True)
    clock.note("WebRAG, nothing changed", len(report.pages), 0)
    return chunks


async def conninfo(data_dir: Path) -> str:
    """The address of the embedded server, with a schema of stock's own."""
    database = Database(DatabaseConfig(data_dir=data_dir))
    async with database.connection() as connection:
        await connection.execute("create schema if not exists stock")
        info = connection.info
        return f"{info.user}@/{info.dbname}?host={info.host}&port={info.port}"


def stock(load: Load, urls: Sequence[str], splitter: SentenceSplitter, address: str) -> int:
    """Store the pages as LlamaIndex does, and give how many chunks they have."""
    store = PGVectorStore.from_params(
        connection_string=f"postgresql+psycopg2://{address}",
        async_connection_string=f"postgresql+asyncpg://{address}",
        schema_name="stock",
        table_name=f"t{uuid.uuid4().hex[:12]}",
        embed_dim=EMBEDDING.dimensions,
        hybrid_search=True,
    )
    nodes = splitter.get_nodes_from_documents(load(list(urls)))
    context = StorageContext.from_defaults(vector_store=store)
    VectorStoreIndex(nodes, storage_context=context, embed_model=EMBEDDING)
    asyncio.run(store.close())
    return len(nodes)


def splitter_for(documents: Sequence[Document], chunks: int) -> SentenceSplitter:
    """A splitter that cuts some pages into about so many chunks."""
    size = 1024.0
    for _ in range(4):
        made = _splitter(size).get_nodes_from_documents(documents)
        size = max(32.0, size * len(made) / chunks)
    return _splitter(size)


def _splitter(size: float) -> SentenceSplitter:
    return SentenceSplitter(chunk_size=round(size), chunk_overlap=round(size) // 5)


async def compare(
    urls: Sequence[str], base: str, data_dir: Path, runs: int, readers: dict[str, Load]
) -> Clock:
    settings = load_settings(None, data_dir=data_dir, embedding_provider="bundled").allowing(
        [urlsplit(base).netloc]
    )
    clock = Clock(data_dir)
    async with WebRAG(settings) as rag:
        chunks = await webrag(rag, urls, clock)
        address = await conninfo(data_dir)
        contestants = []
        for name, load in readers.items():
            similar = splitter_for(load(list(urls)), chunks)
            told = f"{name}, {similar.chunk_size:,} tokens for as many chunks"
            contestants += [
                (f"{name}, 1,024 tokens", load, SentenceSplitter()),
                (told, load, similar),
            ]
        for run in range(runs):
            if run:
                await webrag(rag, urls, clock)
            for name, load, splitter in contestants:
                work = partial(stock, load, urls, splitter, address)
                clock.start()
                clock.note(name, len(urls), await asyncio.to_thread(work))
    return clock


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--pages", type=int, default=150)
    options.add_argument("--runs", type=int, default=2, help="the best one counts")
    options.add_argument("--reader", action="append", choices=list(READERS), default=[])
    options.add_argument("--data-dir", type=Path, help="embedded database; default: a new one")
    arguments = options.parse_args()
    paths = sorted(arguments.folder.rglob("*.html"))[: arguments.pages]
    megabytes = sum(path.stat().st_size for path in paths) / 1e6
    print(f"{len(paths)} pages, {megabytes:.1f} MB of HTML; best of {arguments.runs} runs")
    readers: dict[str, Load] = {"stock": read_plainly}
    if arguments.reader:
        module = importlib.import_module("llama_index.readers.web")
        readers = {
            name: getattr(module, name)(**READERS[name]).load_data for name in arguments.reader
        }
    with (
        serve_static_site(arguments.folder) as base,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
    ):
        urls = [base + quote(path.relative_to(arguments.folder).as_posix()) for path in paths]
        data_dir = arguments.data_dir or Path(folder)
        asyncio.run(compare(urls, base, data_dir, arguments.runs, readers)).show()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process {peak:.0f} MB")


if __name__ == "__main__":
    main()

"""Pages per second of fetch + convert + index: WebRAG beside LlamaIndex's stock pipeline.

Usage: python benchmarks/ingest_speed.py FOLDER [--pages N] [--reader NAME]...

The HTML files of FOLDER are served on loopback. WebRAG fetches them into its embedded Postgres. The
reference fetches the same list one after the other, takes the text of each page without markup and
gives it to the stock pipeline: SentenceSplitter, the same embedding model, VectorStoreIndex with
its default store, which is memory. --reader names web readers of llama-index-readers-web, which
must be installed, to be measured before the same pipeline.
"""

import argparse
import asyncio
import importlib
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
from llama_index.core import VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document
from selectolax.lexbor import LexborHTMLParser

from webrag import WebRAG
from webrag.demo import serve_static_site
from webrag.embedding.bundled import BundledEmbedding
from webrag.settings import load_settings

READERS: dict[str, dict[str, Any]] = {
    "SimpleWebPageReader": {"html_to_text": True},
    "TrafilaturaWebReader": {},
}


def read_plainly(urls: Sequence[str]) -> list[Document]:
    documents = []
    for url in urls:
        html = httpx2.get(url).raise_for_status().text
        documents.append(Document(text=LexborHTMLParser(html).text(separator=" ")))
    return documents


async def webrag(base: str, urls: Sequence[str], data_dir: Path, runs: int) -> None:
    settings = load_settings(None, data_dir=data_dir, embedding_provider="bundled").allowing(
        [urlsplit(base).netloc]
    )
    async with WebRAG(settings) as rag:
        best, stored, chunks = float("inf"), 0, 0
        for _ in range(runs):
            await rag.clear()
            begin = time.perf_counter()
            report = await rag.ingest(urls)
            best = min(best, time.perf_counter() - begin)
            if report.failed:
                raise SystemExit(f"{len(report.failed)} pages were not stored: {report.failed}")
            stored, chunks = len(report.pages), sum(page.chunk_count for page in report.pages)
        show("WebRAG, into Postgres", stored, chunks, best)
        begin = time.perf_counter()
        report = await rag.ingest(urls, refresh=True)
        show("WebRAG, nothing changed", len(report.pages), 0, time.perf_counter() - begin)


def stock(name: str, load: Callable[[list[str]], Sequence[Document]], urls: Sequence[str]) -> None:
    begin = time.perf_counter()
    documents = list(load(list(urls)))
    nodes = SentenceSplitter().get_nodes_from_documents(documents)
    VectorStoreIndex(nodes, embed_model=BundledEmbedding())
    show(f"{name}, into memory", len(documents), len(nodes), time.perf_counter() - begin)


def show(name: str, pages: int, chunks: int, seconds: float) -> None:
    print(f"{name:34} {pages / seconds:7.1f} pages/s {pages:6} pages {chunks:7} chunks"
          f" {seconds:7.2f} s")  # fmt: skip


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
    with (
        serve_static_site(arguments.folder) as base,
        tempfile.TemporaryDirectory() as folder,
    ):
        urls = [base + quote(path.relative_to(arguments.folder).as_posix()) for path in paths]
        asyncio.run(webrag(base, urls, arguments.data_dir or Path(folder), arguments.runs))
        stock("stock pipeline", read_plainly, urls)
        for name in arguments.reader:
            reader = getattr(importlib.import_module("llama_index.readers.web"), name)
            stock(name, reader(**READERS[name]).load_data, urls)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process {peak:.0f} MB")


if __name__ == "__main__":
    main()

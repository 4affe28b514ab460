"""Workers on a simulated web: how fast several are, and what kills of them leave behind.

    python benchmarks/workers.py speed --workers 1 2 4   pages a second, memory, manners
    python benchmarks/workers.py kills --kills 200       kills of workers, connections and Postgres

The web is one server on loopback; to the workers its hosts have public names and addresses, so that
they are as polite as on the real one. Every host is a tree of pages, and each page takes as long as
`--page-ms` says. The hosts count what they see.
"""

import argparse
import asyncio
import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpcore2
from llama_index.node_parser.webrag import ParentChildNodeParser

from webrag.concurrency import in_background
from webrag.corpus.acquirer import PageAcquirer
from webrag.corpus.host_turns import HostTurns
from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import ensure_schema, queue_schema
from webrag.crawling.crawl import SiteCrawler
from webrag.crawling.report import CrawlOptions
from webrag.embedding.bundled import BundledEmbedding
from webrag.embedding.embedder import Embedder
from webrag.ingestion.extract import extract
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.models import FetchConfig
from webrag.ingestion.service import ExtractionPool, IngestionService
from webrag.jobs.models import WorkerOptions
from webrag.jobs.queue import JobQueue
from webrag.jobs.worker import JobWorker, Tools
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database

WORDS = ["node", "replica", "volume", "primary", "log", "retry", "quorum", "lease", "shard"]
ENCODER = BundledEmbedding()


class Web:
    """Hosts of so many pages each, and what they saw."""

    def __init__(self, *, pages: int, page_s: float, poison: str = "") -> None:
        self.pages, self.page_s, self.poison = pages, page_s, poison
        self.asked: Counter[str] = Counter()
        self.at_once: Counter[str] = Counter()
        self.most_at_once = 0
        self.begun: dict[str, float] = {}
        self.shortest_gap_s = float("inf")
        self.mutex = threading.Lock()
        self.was_asked = threading.Event()
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                status, body = web.answer(self.headers["Host"], self.path)
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    self.send_header("Content-Type", "text/html; charset=utf-8")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, host: str, path: str) -> tuple[int, bytes]:
        self.was_asked.set()
        with self.mutex:
            self.asked[f"{host}{path}"] += 1
            now = time.monotonic()
            if path != "/robots.txt":
                self.shortest_gap_s = min(
                    self.shortest_gap_s, now - self.begun.get(host, float("-inf"))
                )
                self.begun[host] = now
            self.at_once[host] += 1
            self.most_at_once = max(self.most_at_once, self.at_once[host])
        time.sleep(self.page_s)
        with self.mutex:
            self.at_once[host] -= 1
        number = path.strip("/").removesuffix(".html").removeprefix("p") or "0"
        if not number.isdigit() or int(number) >= self.pages:
            return 404, b"<html><body>Not found</body></html>"
        return 200, self.page(host, int(number)).encode()

    def page(self, host: str, number: int) -> str:
        chosen = random.Random(f"{host}{number}")
        paragraphs = "".join(
            f"<h2>Part {part} of {number}</h2><p>{' '.join(chosen.choices(WORDS, k=80))}.</p>"
            for part in range(4)
        )
        links = "".join(
            f'<li><a href="/p{n}.html">page {n}</a></li>'
            for n in (2 * number + 1, 2 * number + 2)
            if n < self.pages
        )
        mark = "POISON" if f"{host}/p{number}.html" == self.poison else ""
        return (
            f"<html><head><title>{host} {number}</title></head><body><main><h1>{host} {number}"
            f"</h1><p>{mark} Words of {host}, page {number}.</p>{paragraphs}<ul>{links}</ul></main>"
            "</body></html>"
        )

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Dialer(httpcore2.AsyncNetworkBackend):
    """Connects to the simulated web whichever address it is told."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(self, host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        del host, port
        return await self._network.connect_tcp("127.0.0.1", self._port, *args, **kwargs)


class InProcess:
    """Extracts in a thread, and dies of a poisoned page."""

    async def extract(self, page: Any) -> Any:
        if "POISON" in (page.text or ""):
            os._exit(9)
        return await in_background(extract, page)

    async def aclose(self) -> None:
        pass


async def resolver(_host: str, _port: int) -> list[str]:
    return ["93.184.215.14"]


async def work(data_dir: Path, port: int, options: WorkerOptions, *, pooled: bool) -> None:
    """A worker of the real parts until it is killed."""
    database = Database(DatabaseConfig(data_dir=data_dir, collection="web"))
    # A worker that is killed keeps its turn at a host for ten seconds more than this.
    config = FetchConfig(host_concurrency=1, host_delay_s=0.0, timeout_s=10)
    fetcher = HttpFetcher(
        config, resolver=resolver, dialer=Dialer(port), shared=HostTurns(database)
    )
    pool: Any = ExtractionPool(2, 10) if pooled else InProcess()
    corpus = Corpus(database)
    embedder = Embedder(ENCODER, ENCODER.dimensions)
    indexer = Indexer(corpus, ParentChildNodeParser(), embedder)
    service = IngestionService(fetcher, pool)
    acquirer = PageAcquirer(service, indexer.index, corpus)
    crawler = SiteCrawler(acquirer, database)

    async def tools() -> Tools:
        return Tools(crawler, acquirer)

    await JobWorker(JobQueue(database), tools, options).run()


def serve_forks() -> None:
    """Fork a worker for each line of arguments read, which costs no imports, and name it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    ENCODER.get_text_embedding("loads the model once for all")
    for line in sys.stdin:
        data_dir, port, pooled, *options = line.rstrip("\n").split("\t")
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            sys.stdin.close()
            with contextlib.suppress(KeyboardInterrupt):
                asyncio.run(
                    work(
                        Path(data_dir),
                        int(port),
                        WorkerOptions.model_validate_json(options[0]),
                        pooled=pooled == "1",
                    )
                )
            os._exit(0)
        print(pid, flush=True)


class Lab:
    """A database, a web and workers that can be started and killed."""

    def __init__(self, folder: Path, web: Web, options: WorkerOptions, *, pooled: bool) -> None:
        self.web, self.options, self.pooled = web, options, pooled
        self.database = Database(DatabaseConfig(data_dir=folder, collection="web"))
        self.queue = JobQueue(self.database)
        self.pids: list[int] = []
        self.forks = subprocess.Popen(
            [sys.executable, __file__, "forks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    async def start(self, hosts: int) -> None:
        await ensure_schema(
            self.database,
            embedding_model=ENCODER.model_name,
            embedding_dimensions=ENCODER.dimensions,
        )
        for number in range(hosts):
            await self.queue.enqueue_site(f"http://h{number}.test/", CrawlOptions(max_pages=5_000))

    def start_worker(self) -> int:
        assert self.forks.stdin
        assert self.forks.stdout
        folder = self.database.config.data_dir
        pooled = "1" if self.pooled else "0"
        line = f"{folder}\t{self.web.port}\t{pooled}\t{self.options.model_dump_json()}\n"
        self.forks.stdin.write(line)
        self.forks.stdin.flush()
        self.pids.append(int(self.forks.stdout.readline()))
        return self.pids[-1]

    def kill_worker(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self.pids.remove(pid)

    def keep_alive(self, count: int) -> None:
        self.pids = [pid for pid in self.pids if _is_alive(pid)]
        while len(self.pids) < count:
            self.start_worker()

    async def unfinished(self) -> int:
        return len(await self.queue.jobs(limit=10_000, unfinished=True))

    async def rows(self, statement: str) -> list[Any]:
        async def asked(connection: Any) -> list[Any]:
            return list(await (await connection.execute(statement)).fetchall())

        return await self.database.run(asked)

    async def close(self) -> None:
        for pid in list(self.pids):
            self.kill_worker(pid)
        self.forks.stdin.close()  # type: ignore[union-attr]
        self.forks.wait()
        self.forks.stdout.close()  # type: ignore[union-attr]
        await self.database.close()
        self.web.close()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


QUICK = WorkerOptions(
    concurrency=2, turn_s=1, heartbeat_s=0.2, stalled_s=1.2, poll_s=0.2, grace_s=1
)


async def kill_connections(lab: Lab) -> None:
    await lab.rows(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )


async def kill_postgres(lab: Lab) -> None:
    (found,) = lab.database.config.data_dir.rglob("postmaster.pid")
    os.kill(int(found.read_text().split()[0]), signal.SIGKILL)


VICTIMS = ("worker", "worker", "worker", "connections", "worker", "worker", "postgres")


async def survive(lab: Lab, *, kills: int, workers: int, seed: int, victims: Any) -> Counter[str]:
    """Kill so many victims while the jobs are done; what was killed."""
    chosen, killed = random.Random(seed), Counter[str]()
    for number in range(kills):
        lab.keep_alive(workers)
        await asyncio.sleep(chosen.uniform(0.05, 0.5))
        victim = victims[number % len(victims)]
        if victim == "worker" and lab.pids:
            lab.kill_worker(chosen.choice(lab.pids))
        elif victim == "connections":
            await kill_connections(lab)
        elif victim == "postgres":
            await kill_postgres(lab)
        killed[victim] += 1
        if number % 5 == 4 and not await lab.unfinished():
            await again(lab)
    return killed


async def again(lab: Lab) -> None:
    """All sites once more, each page asked for."""
    for job in await lab.queue.jobs(limit=10_000):
        if job.request.options:
            options = job.request.options.model_copy(update={"refresh": True})
            await lab.queue.enqueue_site(job.request.url, options)


async def finish(lab: Lab, *, workers: int, within_s: float) -> None:
    async with asyncio.timeout(within_s):
        while await lab.unfinished():
            lab.keep_alive(workers)
            await asyncio.sleep(0.1)


async def complaints(lab: Lab, hosts: int) -> list[str]:
    """What is wrong with the corpus and the jobs now that all is done."""
    pages = range(lab.web.pages)
    wanted = {
        f"http://h{host}.test/" + (f"p{n}.html" if n else "")
        for host in range(hosts)
        for n in pages
    }
    wanted -= {f"http://{lab.web.poison}"}
    stored = await lab.rows("select url, child_count from web.documents where gone_at is null")
    children = dict(
        await lab.rows(
            "select d.url, count(*) from web.data_children c join web.documents d"
            " on d.id = c.document group by d.url"
        )
    )
    why = dict(await lab.rows("select url, reason from web.page_outcomes"))
    found = [f"lost: {url}, {why.get(url)}" for url in sorted(wanted - {url for url, _ in stored})]
    found += [f"not asked for: {url}" for url in sorted({url for url, _ in stored} - wanted)]
    found += [f"half: {url}" for url, count in stored if children.get(url) != count or not count]
    twice = await lab.rows(
        "select char_start, document, count(*) from web.data_children"
        " group by document, char_start having count(*) > 1"
    )
    found += [f"twice: {row}" for row in twice]
    ends = await lab.rows(
        "select j.id, j.outcome, p.status::text from web.jobs j"
        f' left join "{queue_schema("web")}".procrastinate_jobs p on p.id = j.id'
    )
    found += [
        f"job {number}: {outcome}, {status}"
        for number, outcome, status in ends
        if outcome != "done"
    ]
    if lab.web.most_at_once > 1:
        found.append(f"{lab.web.most_at_once} requests at once at one host")
    return found


async def kill_main(kills: int, workers: int, hosts: int, pages: int) -> None:
    web = Web(pages=pages, page_s=0.02)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        lab = Lab(Path(folder), web, QUICK, pooled=False)
        try:
            await lab.start(hosts)
            started = time.monotonic()
            killed = await survive(lab, kills=kills, workers=workers, seed=1, victims=VICTIMS)
            await finish(lab, workers=workers, within_s=600)
            print(f"killed {dict(killed)} in {time.monotonic() - started:.0f} s")
            print(f"{hosts * pages} pages, {sum(web.asked.values())} requests")
            print("\n".join(await complaints(lab, hosts)) or "none lost, none twice")
        finally:
            await lab.close()


async def measure(workers: int, hosts: int, pages: int, page_s: float, concurrency: int) -> None:
    web = Web(pages=pages, page_s=page_s)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        options = WorkerOptions(concurrency=concurrency)
        lab = Lab(Path(folder), web, options, pooled=True)
        try:
            await lab.start(hosts)
            lab.keep_alive(workers)
            await asyncio.to_thread(web.was_asked.wait)
            started, memory = time.monotonic(), 0
            while await lab.unfinished():
                memory = max(memory, max(map(_memory_kb, lab.pids)))
                await asyncio.sleep(0.5)
            seconds = time.monotonic() - started
            children = resource.getrusage(resource.RUSAGE_CHILDREN)
            print(
                f"{workers} workers: {hosts * pages / seconds:.1f} pages/s ({hosts * pages} pages,"
                f" {seconds:.0f} s), {memory / 1024:.0f} MB each with its processes,"
                f" {web.most_at_once} at once at a host, load {os.getloadavg()[0]:.1f},"
                f" {children.ru_utime:.0f} s of others' processor time",
                flush=True,
            )
        finally:
            await lab.close()


def _memory_kb(pid: int) -> int:
    """Proportional memory of a process and of those it has started."""
    total = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            is_child = f"\nPPid:\t{pid}\n" in (folder / "status").read_text()
            if is_child or folder.name == str(pid):
                lines = (folder / "smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


async def speed_main(counts: list[int], hosts: int, pages: int, page_s: float, jobs: int) -> None:
    for count in counts:
        await measure(count, hosts, pages, page_s, jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["speed", "kills", "forks"])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--hosts", type=int)
    parser.add_argument("--pages", type=int, help="of each host")
    parser.add_argument("--page-ms", type=float, default=100)
    parser.add_argument("--concurrency", type=int, default=4)
    chosen = parser.parse_args()
    if chosen.what == "forks":
        serve_forks()
    elif chosen.what == "kills":
        asyncio.run(
            kill_main(chosen.kills, chosen.workers[-1], chosen.hosts or 6, chosen.pages or 40)
        )
    else:
        asyncio.run(
            speed_main(
                chosen.workers,
                chosen.hosts or 200,
                chosen.pages or 5,
                chosen.page_ms / 1000,
                chosen.concurrency,
            )
        )


if __name__ == "__main__":
    main()

"""Kills ingestion with SIGKILL at seeded points and looks whether a page was lost or half stored.

Usage: python benchmarks/kill_ingest.py [--kills 200] [--seed 1]

A child process brings pages into a corpus and says so when one is stored: the page is acknowledged.
At a point the child, or Postgres, is killed. Afterwards every acknowledged page must be there in
the acknowledged version, the page under way in its old or its new one, and the corpus must pass the
examination of `webrag corpus check --all`. Where Postgres was the victim, the child must finish the
page.

Nothing of the product knows of the points: the child wraps its parts, and triggers in the database
wait for a lock that this process holds.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
import psycopg
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.node_parser.webrag import ParentChildNodeParser

from webrag.corpus.acquirer import PageAcquirer
from webrag.corpus.indexer import Indexer
from webrag.corpus.maintenance.checking import check_corpus
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import ensure_schema
from webrag.corpus.writer import forget_page
from webrag.embedding.embedder import Embedder
from webrag.ingestion.addresses import content_hash
from webrag.ingestion.models import NormalizedDocument, OutgoingLink
from webrag.ingestion.service import IngestionService
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database
from webrag.postgres.embedded.server import EmbeddedPostgres

POINTS = ("after_fetch", "after_parse", "mid_insert", "before_commit", "after_commit")
VICTIMS = ("process", "postgres")

COLLECTION = "killed"
DIMENSIONS = 16
LOCK = 4711
CHUNKS = 24
PAGES = 4
DEADLINE_S = 100.0

# The trigger functions wait where the table `faults` says so, until this process lets go.
_TRIGGERS = f"""
create schema if not exists faults;
create table if not exists faults.armed (point text, ordinal int);
create or replace function faults.wait() returns trigger language plpgsql as $$
begin
    if exists (select from faults.armed where point = tg_argv[0]
               and (ordinal is null or ordinal = (to_jsonb(new) ->> 'ordinal')::int)) then
        perform pg_advisory_xact_lock_shared({LOCK});
    end if;
    return new;
end $$;
create or replace trigger wait before insert on {COLLECTION}.data_children
    for each row execute function faults.wait('mid_insert');
drop trigger if exists wait on {COLLECTION}.documents;
create constraint trigger wait after insert on {COLLECTION}.documents
    deferrable initially deferred for each row execute function faults.wait('before_commit');
"""


class TextEmbedding(BaseEmbedding):
    """A vector for every text, made from its hash."""

    def _get_text_embedding(self, text: str) -> list[float]:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        return [float(each) for each in np.random.default_rng(seed).normal(size=DIMENSIONS)]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def document(url: str, version: int) -> NormalizedDocument:
    """A page of which every version has other text in every chunk but the first."""
    sections = [f"# {url}\n\nThe page of {url}."]
    sections += [
        f"## Section {number}\n\nVersion {version} of section {number}: " + f"word{number} " * 15
        for number in range(CHUNKS)
    ]
    markdown = "\n\n".join(sections)
    return NormalizedDocument(
        url=url,
        requested_url=url,
        title=url,
        fetched_at=datetime.now(UTC),
        markdown=markdown,
        html="",
        content_hash=content_hash(markdown),
        links=tuple(OutgoingLink(url=f"{url}/{n}", anchor_text=f"link {n}") for n in range(9)),
        source="builtin",
    )


# --- the child ------------------------------------------------------------------------------------


class Fault:
    """Stops at a point until it is released, or killed."""

    def __init__(self, point: str, gate: Path) -> None:
        self._point = point
        self._gate = gate

    def reach(self, point: str) -> None:
        if point == self._point and not self._gate.exists():
            say(at=point)
            while not self._gate.exists():
                time.sleep(0.002)


class Site:
    """Stands for the network."""

    def __init__(self, version: int, fault: Fault) -> None:
        self._version = version
        self._fault = fault

    async def ingest(self, url: str, **_: Any) -> NormalizedDocument:
        page = document(url, self._version)
        await asyncio.to_thread(self._fault.reach, "after_fetch")
        return page


class FaultyParser(ParentChildNodeParser):
    _fault: Any = None

    def get_nodes_from_documents(self, *args: Any, **kwargs: Any) -> Any:
        nodes = super().get_nodes_from_documents(*args, **kwargs)
        if self._fault is not None:
            self._fault.reach("after_parse")
        return nodes


class FaultyCorpus(Corpus):
    fault: Fault

    async def replace_pages(self, pages: Any) -> Any:
        stored = await super().replace_pages(pages)
        await asyncio.to_thread(self.fault.reach, "after_commit")
        return stored


def say(**message: Any) -> None:
    os.write(1, (json.dumps(message) + "\n").encode())


async def ingest(data_dir: Path, job: dict[str, Any]) -> None:
    fault = Fault(job["point"], Path(job["gate"]))
    database = Database(DatabaseConfig(data_dir=data_dir, collection=COLLECTION))
    corpus = FaultyCorpus(database)
    corpus.fault = fault
    parser = FaultyParser(parent_tokens=60, child_tokens=40)
    parser._fault = fault
    indexer = Indexer(corpus, parser, Embedder(TextEmbedding(model_name="text"), DIMENSIONS))
    site = cast(IngestionService, Site(job["version"], fault))
    acquirer = PageAcquirer(site, indexer.index, corpus)
    await acquirer.acquire(job["url"], refresh=True)
    say(stored=job["url"])
    await database.close()


def child(data_dir: Path) -> None:
    """Fork for each job that comes in: starting Python anew would take most of the time."""
    ParentChildNodeParser().get_nodes_from_documents([])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    say(ready=True)
    for line in sys.stdin:
        pid = os.fork()
        if pid:
            say(pid=pid)
            continue
        try:
            asyncio.run(ingest(data_dir, json.loads(line)))
        except BaseException as error:  # noqa: BLE001 - reported, then the process ends
            say(failed=f"{type(error).__name__}: {error}")
        os._exit(0)


# --- the examiner ---------------------------------------------------------------------------------


class Examiner:
    """Runs the child, kills, and judges what is left."""

    def __init__(self, data_dir: Path, seed: int) -> None:
        self._data_dir = data_dir
        self._random = random.Random(seed)
        self._server = EmbeddedPostgres(data_dir)
        self._database = Database(DatabaseConfig(data_dir=data_dir, collection=COLLECTION))
        self._acknowledged: dict[str, int] = {}
        self._versions = 0
        self._control: psycopg.Connection[Any] | None = None

    async def start(self) -> None:
        """Make the corpus and the child."""
        await ensure_schema(self._database, embedding_model="text", embedding_dimensions=DIMENSIONS)
        self._connect().execute(_TRIGGERS)
        self._child = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs meanwhile
            [sys.executable, __file__, "--child", str(self._data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._buffer = b""
        self._messages: list[dict[str, Any]] = []
        self._hear("ready")

    async def close(self) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait(DEADLINE_S)
        self._child.stdout.close()
        self._connect().close()
        await self._database.close()
        self._server.release()

    async def kill(self, point: str, victim: str, *, is_update: bool) -> list[str]:
        """Kill once, and give what was wrong afterwards."""
        url = f"https://killed.test/{self._random.randrange(PAGES)}"
        if is_update and url not in self._acknowledged:
            self._ingest(url)
        if not is_update and self._acknowledged.pop(url, None) is not None:
            await forget_page(self._database, url)
        old = self._acknowledged.get(url)
        is_acknowledged = await self._interrupt(url, point, victim)
        faults = []
        if victim == "postgres" and not is_acknowledged:
            faults.append("the page was not finished after Postgres had come back")
        allowed = {self._versions} if is_acknowledged else {old, self._versions}
        # Between the commit and its acknowledgement the page is stored.
        if point == "after_commit":
            allowed = {self._versions}
        found = await self._stored_versions()
        if found.get(url) not in allowed:
            faults.append(f"version {found.get(url)}, allowed {allowed}")
        for other, version in self._acknowledged.items():
            if other != url and found.get(other) != version:
                faults.append(f"{other} has version {found.get(other)}, acknowledged {version}")
        faults += await self._examine()
        if url in found:
            self._acknowledged[url] = found[url]
        return faults

    async def race(self, writers: int) -> list[str]:
        """Write one page from several processes at once, read it meanwhile, and tell what is wrong.

        Every reading must be of one version, and the last one of a version that was written.
        """
        url = f"https://killed.test/{PAGES}"
        self._ingest(url)
        first = self._versions
        for _ in range(writers):
            self._send(url, "", self._data_dir / "none")
        faults, stored = [], 0
        while stored < writers:
            faults += [f"a mixture of {seen}" for seen in self._read(url) if len(seen) != 1]
            self._receive(0)
            failed = [each["failed"] for each in self._messages if "failed" in each]
            if failed:
                return failed
            stored = sum("stored" in each for each in self._messages)
        self._messages.clear()
        version = (await self._stored_versions())[url]
        if not first < version <= self._versions:
            faults.append(f"version {version}")
        self._acknowledged[url] = version
        return faults + await self._examine()

    def _read(self, url: str) -> list[set[str]]:
        """Versions of a page's text and chunks, as one statement sees them."""
        rows = self._connect().execute(
            f"select array_agg(distinct substring(text from 'Version (\\d+)'))"
            f" || array_agg(distinct substring(markdown from 'Version (\\d+)'))"
            f" from {COLLECTION}.data_children c join {COLLECTION}.documents d on d.id = c.document"
            " where d.url = %s",
            (url,),
        )
        return [set(filter(None, found or [])) for (found,) in rows]

    async def _interrupt(self, url: str, point: str, victim: str) -> bool:
        """Whether the child acknowledged the page in the end."""
        control = self._connect()
        ordinal = self._random.randrange(CHUNKS) if point == "mid_insert" else None
        control.execute("delete from faults.armed")
        control.execute("insert into faults.armed values (%s, %s)", (point, ordinal))
        control.execute("select pg_advisory_lock(%s)", (LOCK,))
        before = self._backends()
        self._messages.clear()
        gate = self._data_dir / f"gate-{time.monotonic_ns()}"
        pid = self._send(url, point, gate)
        if point in ("mid_insert", "before_commit"):
            self._until(self._is_waiting)
        else:
            self._hear("at")
        if victim == "process":
            os.kill(pid, signal.SIGKILL)
        else:
            self._kill_postgres()
        gate.touch()
        control = self._connect()
        control.execute("delete from faults.armed")
        control.execute("select pg_advisory_unlock_all()")
        finished = victim == "postgres" and "stored" in self._hear("stored", "failed")
        self._until(lambda: not self._backends() - before if victim == "process" else True)
        gate.unlink()
        return finished

    def _kill_postgres(self) -> None:
        pid_file = self._server.folder / "cluster" / "postmaster.pid"
        postmaster = int(pid_file.read_text().splitlines()[0])
        # Its backend answers for a moment after the postmaster is dead.
        self._connect().close()
        self._control = None
        os.kill(postmaster, signal.SIGKILL)

    def _ingest(self, url: str) -> None:
        self._send(url, "", self._data_dir / "none")
        if "stored" not in self._hear("stored", "failed"):
            raise SystemExit("A page could not be stored although nothing was killed.")
        self._acknowledged[url] = self._versions

    def _send(self, url: str, point: str, gate: Path) -> int:
        assert self._child.stdin is not None
        self._versions += 1
        job = {"url": url, "point": point, "version": self._versions, "gate": str(gate)}
        self._child.stdin.write((json.dumps(job) + "\n").encode())
        self._child.stdin.flush()
        return int(self._hear("pid")["pid"])

    def _hear(self, *wanted: str) -> dict[str, Any]:
        """The next message of a kind."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            for message in self._messages:
                if message.keys() & {*wanted}:
                    self._messages.remove(message)
                    return message
            self._receive(end - time.monotonic())
        raise SystemExit(f"The child never said {' or '.join(wanted)}.")

    def _receive(self, timeout_s: float) -> None:
        assert self._child.stdout is not None
        ready, _, _ = select.select([self._child.stdout], [], [], max(timeout_s, 0))
        if not ready:
            return
        data = os.read(self._child.stdout.fileno(), 65536)
        if not data:
            raise SystemExit("The child ended.")
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        self._messages += map(json.loads, lines)

    def _connect(self) -> psycopg.Connection[Any]:
        """The control connection, made anew when Postgres was killed."""
        if self._control is not None:
            with suppress(psycopg.Error):
                self._control.execute("select 1")
                return self._control
            self._control.close()
        end = time.monotonic() + DEADLINE_S
        while True:
            self._server.ensure()
            try:
                self._control = psycopg.connect(self._server.conninfo, autocommit=True)
            except psycopg.OperationalError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)
            else:
                return self._control

    def _is_waiting(self) -> bool:
        found = self._connect().execute(
            "select from pg_locks where locktype = 'advisory' and objid = %s and not granted",
            (LOCK,),
        )
        return found.fetchone() is not None

    def _backends(self) -> set[int]:
        rows = self._connect().execute(
            "select pid from pg_stat_activity where backend_type = 'client backend'"
        )
        return {pid for (pid,) in rows}

    def _until(self, is_done: Callable[[], bool]) -> None:
        end = time.monotonic() + DEADLINE_S
        while not is_done():
            if time.monotonic() > end:
                raise SystemExit("Waited too long.")
            time.sleep(0.005)

    async def _stored_versions(self) -> dict[str, int]:
        rows = self._connect().execute(
            f"select url, markdown from {COLLECTION}.documents where gone_at is null"
        )
        return {
            url: int(markdown.partition("Version ")[2].partition(" ")[0]) for url, markdown in rows
        }

    async def _examine(self) -> list[str]:
        checks = (await check_corpus(self._database, sample=None)).checks
        return [f"{check.name}: {check.found}" for check in checks if check.level != "ok"]


def _resident_mb() -> tuple[float, float]:
    """Memory of this process and of its children."""
    own, children = os.getpid(), 0.0
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[1]) == own:
                children += int(fields[21])
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    size = os.sysconf("SC_PAGE_SIZE") / 1e6
    return pages * size, children * size


async def main(kills: int, seed: int, verbose: bool) -> int:
    bad = 0
    counts: dict[tuple[str, str], int] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        examiner = Examiner(Path(folder), seed)
        await examiner.start()
        begin = time.perf_counter()
        curve: list[str] = []
        for number in range(kills):
            if number % max(1, kills // 20) == 0:
                own, children = _resident_mb()
                curve.append(f"{number} kills {own:.0f}+{children:.0f} MB")
            point = POINTS[number % len(POINTS)]
            victim = VICTIMS[number // len(POINTS) % 2]
            is_update = number // (2 * len(POINTS)) % 2 == 1
            started = time.perf_counter()
            faults = await examiner.kill(point, victim, is_update=is_update)
            if verbose:
                print(f"{time.perf_counter() - started:5.2f} s {victim} {point}")
            counts[point, victim] = counts.get((point, victim), 0) + 1
            bad += bool(faults)
            for fault in faults:
                print(f"kill {number}, {victim} {point}, update {is_update}: {fault}")
        seconds = time.perf_counter() - begin
        await examiner.close()
    print(f"{'point':15} {'process':>8} {'postgres':>8}")
    for point in POINTS:
        print(f"{point:15}", *(f"{counts.get((point, victim), 0):8}" for victim in VICTIMS))
    print("memory curve, this process and its children: " + ", ".join(curve))
    print(f"{kills} kills, seed {seed}, {seconds:.0f} s: {bad} with a lost or half page")
    return bad


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--verbose", action="store_true")
    options.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.child is not None:
        child(arguments.child)
    else:
        wrong = asyncio.run(main(arguments.kills, arguments.seed, arguments.verbose))
        raise SystemExit(1 if wrong else 0)

"""Whether memory stays flat while a corpus is imported and exported: peaks by number of pages.

Usage: python benchmarks/import_memory.py [--pages 200,1000,3000]

Every size runs in processes of its own and its own embedded Postgres, over made-up pages of about
9 kB, with the bundled embedding. Printed are the growth of the resident memory of the importing
and of the exporting process over what it had when the collection was open, and the peak of all
Postgres processes together without shared pages.
"""

import argparse
import asyncio
import json
import multiprocessing
import random
import resource
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from webrag import Settings, WebRAG
from webrag.corpus.maintenance.transfer import PortableHeader, PortableLink, PortablePage
from webrag.ingestion.addresses import content_hash

WORDS = [f"{first}{last}" for first in "bcdfghklmnprst" for last in ("ale", "ine", "ost", "urk")]
PARAGRAPHS = 24


def write_corpus(path: Path, pages: int) -> None:
    rng = random.Random(1)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    header = PortableHeader(
        collection="made_up", embedding_model="bundled", embedding_dimensions=256,
        documents=pages, links=pages * 20, exported_at=now,
    )  # fmt: skip
    with path.open("w", encoding="utf-8") as file:
        file.write(header.model_dump_json() + "\n")
        for number in range(pages):
            parts = [f"# Page {number}"]
            for place in range(PARAGRAPHS):
                if place % 6 == 0:
                    parts.append(f"## Section {place}")
                parts.append(" ".join(rng.choices(WORDS, k=70)).capitalize() + ".")
            markdown = "\n\n".join(parts) + "\n"
            url = f"https://made-up.test/{number}"
            links = tuple(
                PortableLink(url=f"https://made-up.test/{rng.randrange(pages)}", anchor_text="see")
                for _ in range(20)
            )
            page = PortablePage(
                url=url, requested_url=url, title=f"Page {number}", fetched_at=now, depth=0,
                markdown=markdown, html=f"<pre>{markdown}</pre>", links=links,
                content_hash=content_hash(markdown), source="builtin",
            )  # fmt: skip
            file.write(page.model_dump_json(exclude_none=True) + "\n")


def resident(process: str = "self") -> dict[str, int]:
    """Resident kB of a process by kind: anonymous memory, files, shared memory."""
    found = {}
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "RssAnon"):
            found[name] = int(value.split()[0])
    return found


@contextmanager
def watched(data_dir: Path, peak: dict[str, int]) -> Iterator[None]:
    """Record the largest anonymous memory of all Postgres processes of a data folder."""
    stop = threading.Event()

    def postgres() -> int:
        total = 0
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if (entry / "cwd").readlink().is_relative_to(data_dir):
                    total += resident(entry.name).get("RssAnon", 0)
            except OSError:
                continue  # it has ended
        return total

    def watch() -> None:
        while not stop.wait(0.2):
            peak["postgres"] = max(peak.get("postgres", 0), postgres())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


async def work(kind: str, data_dir: Path, path: Path, peak: dict[str, int]) -> None:
    settings = Settings(data_dir=data_dir, collection="memory", embedding_provider="bundled")
    async with WebRAG(settings) as rag:
        before = resident()["VmRSS"]
        if kind == "import":
            report = await rag.import_corpus(path)
            assert not report.failed, report.failed
        else:
            await rag.export_corpus(path.with_suffix(".out"))
        peak["start"] = before


def measure(kind: str, data_dir: Path, path: Path) -> None:
    peak: dict[str, int] = {}
    with watched(data_dir, peak):
        asyncio.run(work(kind, data_dir, path, peak))
    peak["grown"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak["start"]
    (path.parent / f"{kind}.json").write_text(json.dumps(peak))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pages", default="200,1000,3000")
    sizes = [int(each) for each in options.parse_args().pages.split(",")]
    spawn = multiprocessing.get_context("spawn")
    print(f"{'pages':>7}{'file MB':>9}{'import grew MB':>16}{'export grew MB':>16}"
          f"{'Postgres MB':>13}")  # fmt: skip
    for pages in sizes:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            path, data_dir = Path(folder, "corpus.jsonl"), Path(folder, "data").resolve()
            write_corpus(path, pages)
            found = {}
            for kind in ("import", "export"):
                process = spawn.Process(target=measure, args=(kind, data_dir, path))
                process.start()
                process.join()
                if process.exitcode:
                    sys.exit(f"The {kind} of {pages} pages failed.")
                found[kind] = json.loads((path.parent / f"{kind}.json").read_text())
            print(f"{pages:7}{path.stat().st_size / 1e6:9.1f}"
                  f"{found['import']['grown'] / 1024:16.1f}{found['export']['grown'] / 1024:16.1f}"
                  f"{found['import']['postgres'] / 1024:13.1f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()

"""Ingests pages made to exhaust a program, in a real process, and prints what each one cost.

Usage: python benchmarks/hostile_inputs.py [--case NAME ...] [--limit-mb 500]

For each case a process of its own ingests three pages over loopback HTTP, the hostile one between
two good ones, and asks a question. Printed are what became of the hostile page, seconds, and the
peak of resident memory of the process and of its largest worker. The exit status is 1 when a good
page was lost, the question failed, or the process went beyond the limit.
"""

import argparse
import asyncio
import gzip
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MB = 1_000_000
TEN_MB = 9_900_000  # what a page may be when it is unpacked
TIMEOUT_S = 300


def _page(body: str) -> bytes:
    return f"<!doctype html><title>Hostile</title><body><main><h1>Page</h1>{body}</main>".encode()


def _fill(unit: str, size: int = 4_500_000) -> str:
    return unit * (size // len(unit.encode()))


def _numbered(make: Callable[[int], str], count: int) -> str:
    return "".join(make(number) for number in range(count))


def _letters(number: int) -> str:
    found = ""
    for _ in range(6):
        number, rest = divmod(number * 7 + 3, 26)
        found += chr(97 + rest)
    return found + str(number % 97)


PROSE = "The pump of the station is primed before it is started, in any weather. "
PARAGRAPH = f"<p>{PROSE.strip()}</p>"
GOOD = _page("<h2>Pump</h2>" + PARAGRAPH * 3)

CASES: dict[str, Callable[[], tuple[str, bytes, bool]]] = {
    "ordinary": lambda: ("text/html", GOOD, False),
    "heading_of_1_mb": lambda: ("text/html", _page(
        f"<h2>{_fill('word ', MB)}</h2>" + PARAGRAPH * 5_000), False),
    "nested_long_headings": lambda: ("text/html", _page("".join(
        f"<h{level}>{_fill(f'level{level} ', MB // 2)}</h{level}>" for level in range(2, 7)
        ) + PARAGRAPH * 5_000), False),
    "tiny_headings": lambda: ("text/html", _page("<h2>a</h2>" * 300_000), False),
    "tiny_sections": lambda: ("text/html", _page("<h2>a</h2><p>b" * 100_000), False),
    "tiny_headings_markdown": lambda: ("text/markdown", b"# a\n\nb\n\n" * 300_000, False),
    "one_word": lambda: ("text/html", _page(f"<p>{_fill('a')}"), False),
    "one_word_text": lambda: ("text/plain", b"a" * 4_500_000, False),
    "no_spaces_cjk": lambda: ("text/html", _page(f"<p>{_fill('漢字')}"), False),
    "combining_marks": lambda: ("text/html", _page("<p>a" + "\u0301" * (2 * MB)), False),
    "different_words": lambda: ("text/html", _page(
        "<p>" + _numbered(lambda n: _letters(n) + " ", 500_000)), False),
    "nested_divs": lambda: ("text/html", _page("<div>" * 5_000 + "x"), False),
    "nested_lists": lambda: ("text/html", _page("<ul><li>" * 5_000 + "x"), False),
    "nested_quotes": lambda: ("text/html", _page("<blockquote>" * 5_000 + "x"), False),
    "nested_below_the_limit": lambda: ("text/html", _page(
        "<blockquote>" * 400 + _fill("<p>x y z", 2 * MB)), False),
    "markdown_quotes": lambda: ("text/markdown", (b">" * 5_000 + b" x\n") * 200, False),
    "markdown_lists": lambda: ("text/markdown", b"".join(
        b" " * (2 * n) + b"- x\n" for n in range(2_000)), False),
    "wide_row": lambda: ("text/html", _page(
        "<table><tr>" + "<td>x</td>" * 100_000 + "</table>"), False),
    "long_table": lambda: ("text/html", _page(
        "<table>" + "<tr><td>a<td>b<sup>2</sup>" * 150_000 + "</table>"), False),
    "brackets": lambda: ("text/markdown", b"[" * MB, False),
    "stars": lambda: ("text/markdown", b"*" * MB, False),
    "stars_apart": lambda: ("text/markdown", b"*a " * (MB // 3), False),
    "backticks": lambda: ("text/markdown", b"".join(b"`" * n + b" " for n in range(1_400)), False),
    "pipes": lambda: ("text/markdown", b"|" * MB + b"\n" + b"|-" * (MB // 2), False),
    "tex_openers": lambda: ("text/plain", b"\\[" * (2 * MB), False),
    "code_block": lambda: ("text/html", _page("<pre><code>" + _fill("x = 1\n")), False),
    "code_of_one_line": lambda: ("text/html", _page(f"<pre><code>{_fill('x')}"), False),
    "links": lambda: ("text/html", _page(
        _numbered(lambda n: f"<a href=/{n}>l</a>", 200_000)), False),
    "images_in_a_figure": lambda: ("text/html", _page(
        "<figure>" + "<img src=a alt=b>" * 50_000 + PARAGRAPH
        + f"<figcaption>{_fill('c ', MB)}"), False),
    "alternative_text": lambda: ("text/html", _page(
        PARAGRAPH + f"<img src=a alt='{_fill('word ', 4 * MB)}'>" + PARAGRAPH), False),
    "title_of_19_kb": lambda: ("text/markdown",
        b"---\ntitle: " + b"t" * 19_000 + b"\n---\n\n"
        + (PARAGRAPH[3:-4] + "\n\n").encode() * 20_000, False),
    "attribute_around_everything": lambda: ("text/html", _page(
        f"<table class='{_fill('c ', MB)}'>" + f"<tr><td>{PARAGRAPH}" * 5_000), False),
    "many_attributes": lambda: ("text/html", _page(
        "<p " + _numbered(lambda n: f"a{n}=1 ", 500_000) + ">x"), False),
    "entities": lambda: ("text/html", _page("<p>" + "&lang;" * 200_000), False),
    "blank_inlines": lambda: ("text/html", _page(
        "<p>" + "<b> </b>" * 300_000 + "x<table><tr><td>1</table>"), False),
    "deep_json": lambda: ("application/json", b"[" * (2 * MB) + b"]" * (2 * MB), False),
    "gzip_bomb": lambda: ("text/html", gzip.compress(b"<p>x" * (50 * MB), 1), True),
    "ten_mb_of_one_word": lambda: ("text/plain", gzip.compress(b"a" * TEN_MB), True),
    "ten_mb_of_cjk": lambda: (
        "text/plain", gzip.compress(_fill("漢字かな", TEN_MB).encode()), True),
    "ten_mb_of_marks": lambda: (
        "text/plain", gzip.compress(b"a" + _fill("\u0301", TEN_MB).encode()), True),
    "ten_mb_of_spaces": lambda: ("text/plain", gzip.compress(b"a" + b" " * TEN_MB + b"b"), True),
    "ten_mb_of_prose": lambda: ("text/plain", gzip.compress(_fill(PROSE, TEN_MB).encode()), True),
    "ten_mb_of_one_emoji": lambda: (
        "text/plain", gzip.compress(_fill("\U0001f469\u200d", TEN_MB).encode()), True),
    "gzip_of_a_full_page": lambda: (
        "text/html", gzip.compress(_page(_fill(PARAGRAPH, TEN_MB))), True),
    "prose_of_4_mb": lambda: ("text/html", _page(_fill(PARAGRAPH)), False),
}  # fmt: skip


class Site:
    """Serves each case at /hostile/<its name>, and good pages everywhere else."""

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/robots.txt":
                    self.send_error(404)
                    return
                kind, body, is_packed = "text/html", GOOD + self.path.encode(), False
                if self.path.startswith("/hostile/"):
                    kind, body, is_packed = CASES[self.path.rpartition("/")[2]]()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                if is_packed:
                    self.send_header("Content-Encoding", "gzip")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with suppress(OSError):
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def try_cases(host: str, names: Sequence[str], data_dir: Path) -> dict[str, Any]:
    """What a process that ingests hostile pages spent: outcomes, seconds, and peaks in MB."""
    collection = f"hostile_{names[0]}"
    command = [sys.executable, __file__, "--child", host, str(data_dir), collection, *names]
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peaks = {"worker": 0}
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, peaks, done))
    watcher.start()
    try:
        output, _ = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
    finally:
        done.set()
        watcher.join()
    lines = output.strip().splitlines()
    ended = dict.fromkeys(names, f"the process ended with {process.returncode}")
    found: dict[str, Any] = {"outcomes": ended, "good": 0, "found": 0, "peak": 0}
    with suppress(IndexError, ValueError):
        found = json.loads(lines[-1])
    return {**found, "worker": peaks["worker"], "seconds": time.monotonic() - started}


def _watch(parent: int, peaks: dict[str, int], done: threading.Event) -> None:
    while not done.wait(0.05):
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, ValueError, StopIteration):
                status = (folder / "status").read_text()
                if f"PPid:\t{parent}\n" in status:
                    command = (folder / "cmdline").read_bytes()
                    if b"webrag.process_pool" in command:
                        peaks["worker"] = max(peaks["worker"], _peak_mb(status))


def _peak_mb(status: str) -> int:
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


def _own_peak_mb() -> int:
    return _peak_mb(Path("/proc/self/status").read_text())


async def _ingest(host: str, data_dir: str, collection: str, *names: str) -> None:
    from webrag.app import WebRAG
    from webrag.settings import load_settings

    settings = load_settings(data_dir=Path(data_dir), collection=collection, allow_hosts=(host,))
    async with WebRAG(settings) as rag:
        base = _own_peak_mb()
        started = time.monotonic()
        hostile = {name: f"http://{host}/hostile/{name}" for name in names}
        report = await rag.ingest(
            [f"http://{host}/good1", *hostile.values(), f"http://{host}/good2"]
        )
        ingested = time.monotonic() - started
        result = await rag.search("When is the pump of the station primed?")
        stored = {
            page.requested_url: f"{page.outcome}, {page.chunk_count:,} chunks"
            for page in report.pages
        }
        became = stored | report.failed
        print(json.dumps({
            "outcomes": {name: became.get(url, "lost") for name, url in hostile.items()},
            "good": sum("/good" in url for url in stored),
            "found": len(result.chunks),
            "base": base,
            "ingest": ingested,
            "peak": _own_peak_mb(),
        }))  # fmt: skip


async def _main(names: list[str], limit_mb: int) -> int:
    from webrag.app import WebRAG
    from webrag.settings import load_settings

    failed = 0
    site = Site()
    with tempfile.TemporaryDirectory() as folder:
        # Keeps the database running between the cases.
        async with WebRAG(load_settings(data_dir=Path(folder))):
            print(f"{'case':30} {'seconds':>8} {'MB':>5} {'worker':>7}  outcome")
            for name in names:
                found = await asyncio.to_thread(try_cases, site.host, [name], Path(folder))
                peak = found["peak"]
                ok = found["good"] == 2 and found["found"] and 0 < peak <= limit_mb
                failed += not ok
                outcome = found["outcomes"][name][:160]
                print(
                    f"{name:30} {found.get('ingest', found['seconds']):8.1f} {peak:5}"
                    f" {found['worker']:7}  {'' if ok else 'FAILED: '}{outcome}",
                    flush=True,
                )
    site.close()
    return min(failed, 1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        asyncio.run(_ingest(*sys.argv[2:]))
        sys.exit(0)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--limit-mb", type=int, default=500)
    asked = parser.parse_args()
    sys.exit(asyncio.run(_main(asked.case, asked.limit_mb)))

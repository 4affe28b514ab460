"""Many clients at once over HTTP: errors, mixed-up answers, memory; and what a call costs.

    python benchmarks/mcp_load.py [SESSIONS] [SECONDS]
    python benchmarks/mcp_load.py cancels [CALLS]

Starts `webrag mcp --transport http` on an embedded database with pages that each hold one nonce.
Each session asks `search` about a random page again and again; an answer that holds another nonce
than that page's, or none, counts as mixed up. The server's memory is read every second; the slope
is that of the second half, when caches are warm. With `cancels` calls are given up by their client
after a random part of a second instead; the server must answer the next one. Every tenth prints how
far it is: each call has a session of its own, which takes most of a second.
"""

import asyncio
import contextlib
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import numpy as np
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from webrag import WebRAG
from webrag.settings import load_settings
from webrag.static_site import serve_static_site

PORT = 18768
URL = f"http://127.0.0.1:{PORT}/mcp"
QUESTION = "What is the code of the chamber?"
PAGES = 100
HANGING_S = 60.0
NONCE = re.compile(r"nonce[0-9a-f]{12}")


class Tally:
    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.errors: list[str] = []
        self.mixed = 0


async def session(until: float, nonces: dict[str, str], tally: Tally) -> None:
    async with (
        httpx2.AsyncClient(timeout=60) as http,
        Client(streamable_http_client(URL, http_client=http), mode="legacy") as client,
    ):
        while time.monotonic() < until:
            page, nonce = random.choice(list(nonces.items()))
            started = time.perf_counter()
            result = await client.call_tool("search", {"query": QUESTION, "source_urls": [page]})
            tally.seconds.append(time.perf_counter() - started)
            text = "".join(each.text for each in result.content if each.type == "text")
            if result.is_error:
                tally.errors.append(text[:200])
            elif set(NONCE.findall(text)) != {nonce}:
                tally.mixed += 1


async def guarded(until: float, nonces: dict[str, str], tally: Tally) -> None:
    try:
        await session(until, nonces, tally)
    except Exception as error:  # noqa: BLE001 - counted and printed
        tally.errors.append(repr(error)[:200])


async def watch_memory(pid: int, readings: list[tuple[float, float]]) -> None:
    while True:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])  # noqa: ASYNC240
        readings.append((time.monotonic(), pages * os.sysconf("SC_PAGE_SIZE") / 1e6))
        await asyncio.sleep(1)


async def overhead(folder: str, calls: int) -> None:
    """Median of the same search through the protocol and through Python, alternately."""
    taken: dict[str, list[float]] = {"python": [], "http": []}
    async with (
        WebRAG(load_settings(data_dir=Path(folder))) as rag,
        httpx2.AsyncClient(timeout=60) as http,
        Client(streamable_http_client(URL, http_client=http)) as client,
    ):
        for _ in range(calls):
            started = time.perf_counter()
            rag.brief(await rag.search(QUESTION), include_guide=True, nonce="0" * 8)
            taken["python"].append(time.perf_counter() - started)
            started = time.perf_counter()
            await client.call_tool("search", {"query": QUESTION})
            taken["http"].append(time.perf_counter() - started)
    python, over = (statistics.median(taken[name][5:]) * 1000 for name in ("python", "http"))
    print(f"one search: Python {python:.1f} ms, HTTP {over:.1f} ms, +{over - python:.1f} ms")


def write_site(folder: Path) -> dict[str, str]:
    """Pages with a nonce each: path to nonce."""
    nonces = {f"{number}.html": f"nonce{uuid.uuid4().hex[:12]}" for number in range(PAGES)}
    for name, nonce in nonces.items():
        body = f"<h1>Chamber</h1><p>The code of the chamber is {nonce}, and nobody may know it.</p>"
        filler = "".join(f"<p>Paragraph {n} tells of stones, moss and rain.</p>" for n in range(40))
        text = f"<html><title>{name}</title><main>{body}{filler}</main></html>"
        (folder / name).write_text(text)
    return nonces


def print_curve(readings: list[tuple[float, float]], points: int = 20) -> None:
    """The server's memory in even steps."""
    begin = readings[0][0]
    step = max(1, -(-len(readings) // points))
    shown = [f"{moment - begin:.0f} s {size:.0f} MB" for moment, size in readings[::step]]
    print("memory curve: " + ", ".join(shown))


async def main(sessions: int, seconds: float, cancels: int = 0) -> int:
    with tempfile.TemporaryDirectory() as data, tempfile.TemporaryDirectory() as site:
        nonces = write_site(Path(site))
        with serve_static_site(Path(site)) as base:
            settings = load_settings(data_dir=Path(data)).allowing([urlsplit(base).netloc])
            async with WebRAG(settings) as rag:
                await rag.ingest([base + name for name in nonces])
        command = [str(Path(sys.executable).with_name("webrag")), "mcp", "--transport", "http"]
        server = subprocess.Popen(  # noqa: ASYNC220
            [*command, "--port", str(PORT), "--data-dir", data],
            stderr=subprocess.DEVNULL,
            env=os.environ
            | {"MCP_LOG_LEVEL": "WARNING", "WEBRAG_ALLOW_HOSTS": urlsplit(base).netloc},
        )
        try:
            await until_ready()
            await overhead(data, 10 if seconds < 10 else 60)
            pages = {base + name: nonce for name, nonce in nonces.items()}
            if cancels:
                return await cancel_calls(server.pid, pages, cancels)
            return await load(server.pid, pages, sessions, seconds)
        finally:
            server.terminate()
            server.wait(20)


async def load(pid: int, nonces: dict[str, str], sessions: int, seconds: float) -> int:
    tally = Tally()
    readings: list[tuple[float, float]] = []
    memory = asyncio.create_task(watch_memory(pid, readings))
    until = time.monotonic() + seconds
    await asyncio.gather(*(guarded(until, nonces, tally) for _ in range(sessions)))
    memory.cancel()
    calls = len(tally.seconds)
    middle = np.percentile(np.array(tally.seconds) * 1000, [50, 99])
    half = np.array(readings[len(readings) // 2 :])
    slope = np.polyfit(half[:, 0], half[:, 1], 1)[0] * 60
    print(f"{sessions} sessions, {seconds:g} s: {calls} calls, {calls / seconds:.0f} per second")
    print(f"p50 {middle[0]:.0f} ms, p99 {middle[1]:.0f} ms")
    print(f"errors: {len(tally.errors)}, mixed-up answers: {tally.mixed}")
    print(f"memory: {readings[0][1]:.0f} to {half[-1, 1]:.0f} MB, then {slope:+.1f} MB per minute")
    print_curve(readings)
    for reason in tally.errors[:5]:
        print(f"  {reason}")
    return int(bool(tally.errors or tally.mixed))


async def cancel_calls(pid: int, nonces: dict[str, str], calls: int) -> int:
    tally = Tally()
    readings: list[tuple[float, float]] = []
    memory = asyncio.create_task(watch_memory(pid, readings))
    begun, done = time.monotonic(), 0
    for number in range(calls):
        page = random.choice(list(nonces))
        patience_s = random.random() * 0.5
        try:
            async with (
                httpx2.AsyncClient(timeout=60) as http,
                Client(streamable_http_client(URL, http_client=http), mode="legacy") as client,
            ):
                arguments: dict[str, object] = {"query": f"{QUESTION} {number}", "url": page}
                tool = "answer" if number % 2 else "ingest"
                if tool == "ingest":
                    arguments = {"url": page, "refresh": True}
                call = asyncio.create_task(client.call_tool(tool, arguments))
                finished, _ = await asyncio.wait({call}, timeout=patience_s)
                done += bool(finished)
                call.cancel()
                _, waiting = await asyncio.wait({call}, timeout=HANGING_S)
                if waiting:
                    tally.errors.append(f"call {number} had not ended {HANGING_S:g} s after it")
        except Exception as error:  # noqa: BLE001 - counted and printed
            tally.errors.append(repr(error)[:200])
        if (number + 1) % 10 == 0:
            print(f"{number + 1} of {calls} after {time.monotonic() - begun:.0f} s", flush=True)
    await guarded(time.monotonic() + 1, nonces, tally)
    await asyncio.sleep(1)
    memory.cancel()
    print(f"{calls} calls given up, {done} of them had ended; then {len(tally.seconds)} answered")
    print(f"errors: {len(tally.errors)}, mixed-up answers: {tally.mixed}")
    print_curve(readings)
    for reason in tally.errors[:5]:
        print(f"  {reason}")
    return int(bool(tally.errors or tally.mixed or not tally.seconds))


async def until_ready() -> None:
    async with httpx2.AsyncClient() as http:
        for _ in range(600):
            with contextlib.suppress(httpx2.TransportError):
                answer = await http.get(f"http://127.0.0.1:{PORT}/healthz")
                if answer.json()["status"] == "ok":
                    return
            await asyncio.sleep(0.1)
    raise SystemExit("the server did not start")


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[:1] == ["cancels"]:
        raise SystemExit(asyncio.run(main(0, 0, int(given[1]) if given[1:] else 100)))
    raise SystemExit(
        asyncio.run(main(int(given[0]) if given else 64, float(given[1]) if given[1:] else 40))
    )

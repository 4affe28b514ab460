import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes import children
from webrag.errors import InputError, UnusablePageError
from webrag.ingestion.models import FetchedPage
from webrag.ingestion.service import ExtractionPool

MakePage = Callable[..., FetchedPage]
# Quadratic in the converter, and yet nothing a scan can tell from a real page.
SLOW = "<table>" + "<tr><td>a<td>b<sup>2</sup>" * 300_000


@pytest.fixture
def kept_workers() -> None:
    """None: the processes themselves are what is tried here."""


async def test_page_is_converted_in_another_process(
    pool: ExtractionPool, make_page: MakePage
) -> None:
    document = await pool.extract(make_page("<body><p>Hello <a href='/x'>you</a>.</p></body>"))

    assert document.markdown == "Hello you."
    assert document.links[0].url == "https://site.test/x"


async def test_failures_come_back_with_their_message(
    pool: ExtractionPool, make_page: MakePage
) -> None:
    with pytest.raises(UnusablePageError, match="holds no readable text") as caught:
        await pool.extract(make_page("<body></body>"))

    assert caught.value.url == "https://site.test/docs/page"


async def test_pages_share_the_workers(pool: ExtractionPool, make_page: MakePage) -> None:
    pages = [make_page(f"<body><p>page {number}</p>") for number in range(20)]

    documents = await asyncio.gather(*map(pool.extract, pages))

    assert [document.markdown for document in documents] == [f"page {n}" for n in range(20)]


async def test_deadline_kills_the_worker_and_the_next_page_gets_another(
    make_page: MakePage,
) -> None:
    before = children()
    pool = ExtractionPool(workers=1, timeout_s=0.5)
    started = time.monotonic()

    with pytest.raises(UnusablePageError, match=r"longer than 0\.5 seconds"):
        await pool.extract(make_page(SLOW))

    assert time.monotonic() - started < 15
    assert children() == before
    assert (await pool.extract(make_page("<body><p>ok</p>"))).markdown == "ok"
    await pool.aclose()


async def test_cancelling_leaves_no_process_behind(make_page: MakePage) -> None:
    before = children()
    pool = ExtractionPool(workers=1, timeout_s=20)
    await pool.extract(make_page("<body><p>warm</p>"))
    task = asyncio.create_task(pool.extract(make_page(SLOW)))
    await asyncio.sleep(0.2)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task

    assert children() == before
    await pool.aclose()


async def test_worker_that_died_idle_is_replaced(pool: ExtractionPool, make_page: MakePage) -> None:
    before = children()
    await pool.extract(make_page("<body><p>one</p>"))
    for pid in children() - before:
        os.kill(pid, signal.SIGKILL)

    assert (await pool.extract(make_page("<body><p>two</p>"))).markdown == "two"


async def test_closing_ends_every_process(make_page: MakePage) -> None:
    before = children()
    pool = ExtractionPool(workers=2, timeout_s=20)
    await asyncio.gather(*(pool.extract(make_page("<body><p>x</p>")) for _ in range(4)))
    await pool.aclose()

    assert children() == before


async def test_closing_ends_a_conversion_under_way(make_page: MakePage) -> None:
    before = children()
    pool = ExtractionPool(workers=1, timeout_s=30)
    await pool.extract(make_page("<body><p>warm</p>"))
    task = asyncio.create_task(pool.extract(make_page(SLOW)))
    await asyncio.sleep(0.2)
    await pool.aclose()

    with pytest.raises(InputError, match="closed"):
        await task

    assert children() == before


async def test_closed_pool_converts_nothing(make_page: MakePage) -> None:
    pool = ExtractionPool(workers=1, timeout_s=20)
    await pool.aclose()

    with pytest.raises(InputError, match="closed"):
        await pool.extract(make_page("<p>x"))


def test_worker_ends_when_its_input_ends() -> None:
    command = [sys.executable, "-m", "webrag.process_pool.process"]

    result = subprocess.run(command, input=b"", capture_output=True, timeout=30, check=False)

    assert (result.returncode, result.stdout[4:]) == (0, b"\x00ready")


def test_worker_whose_parent_was_killed_ends_without_a_word() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "webrag.process_pool.process"]
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)

    assert (result.returncode, result.stderr) == (0, b"")


def test_worker_starts_without_heavy_imports() -> None:
    code = (
        "import sys, webrag.process_pool.process;"
        "print([m for m in ('llama_index', 'httpx2', 'psycopg', 'numpy') if m in sys.modules])"
    )

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert result.stdout.strip() == b"[]"


async def test_nothing_in_the_current_directory_is_imported(
    make_page: MakePage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json.py", "pyromark.py", "selectolax.py", "webrag.py"):
        (tmp_path / name).write_text("raise SystemExit('imported from the current directory')")
    monkeypatch.chdir(tmp_path)
    pool = ExtractionPool(workers=1, timeout_s=10.0)

    document = await pool.extract(make_page("<body><p>ok</p></body>"))

    assert document.markdown == "ok"
    await pool.aclose()


async def test_worker_is_not_given_the_keys_of_the_environment(
    make_page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    before = children()
    pool = ExtractionPool(workers=1, timeout_s=10.0)
    await pool.extract(make_page("<body><p>ok</p></body>"))

    environments = [Path(f"/proc/{pid}/environ").read_bytes() for pid in children() - before]

    assert environments
    assert not any(b"sk-canary" in environment for environment in environments)
    await pool.aclose()

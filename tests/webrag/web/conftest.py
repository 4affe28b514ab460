"""One server, one browser and one site for all journeys of a module."""

import asyncio
import os
import re
import socket
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.loopback import QuietHandler, serving

# A machine that does something else meanwhile is slow, not wrong.
expect.set_options(timeout=60_000)
_HTML = {"Content-Type": "text/html; charset=utf-8"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class WebSite:
    """A site whose pages a test may change while it runs.

    Attributes:
        pages: HTML by path.
        delays: Seconds until a path is answered.
        statuses: What a path is answered with, where that is not 200 or 404.
    """

    base: str = ""
    pages: dict[str, str] = field(default_factory=dict)
    delays: dict[str, float] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)

    def add(self, path: str, title: str, body: str, *, year: int | None = None) -> str:
        """Put a page on the site; gives its address."""
        dated = f'<meta property="article:published_time" content="{year}-03-01">' if year else ""
        self.pages[path] = (
            f'<html lang="en"><head><title>{title}</title>{dated}</head>'
            f"<body><main>{body}</main></body></html>"
        )
        return f"{self.base}{path}"


@pytest.fixture(scope="module")
def web_site() -> Iterator[WebSite]:
    """A site on loopback."""
    site = WebSite()

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            time.sleep(site.delays.get(self.path, 0))
            found = site.pages.get(self.path)
            status = site.statuses.get(self.path, 200 if found else 404)
            self.send(status, (found or "<h1>Not found</h1>").encode(), _HTML)

        do_HEAD = do_GET

    with ExitStack() as stack:
        site.base = stack.enter_context(serving(Handler))
        yield site


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web_address(
    postgres_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    """Where `webrag web` serves an empty collection of its own, as a process of its own."""
    collection = f"page_{uuid.uuid4().hex[:12]}"
    ours = ("WEBRAG_", "MCP_", "DATABASE_")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    environment["WEBRAG_ALLOW_DIRS"] = str(tmp_path_factory.getbasetemp())
    environment["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "webrag", "web", "--no-open", "--port", str(_free_port())),
        *("--data-dir", str(postgres_dir), "--collection", collection),
        *("--allow-host", "127.0.0.1"),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    line = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
    found = re.search(r"http://\S+/", line)
    assert found, line
    yield found[0]
    process.terminate()
    await process.wait()
    await _drop(postgres_dir, collection)


async def _drop(data_dir: Path, collection: str) -> None:
    from webrag.corpus.schema import drop_collection
    from webrag.postgres.config import DatabaseConfig
    from webrag.postgres.database import Database

    database = Database(DatabaseConfig(data_dir=data_dir, collection=collection))
    await drop_collection(database)
    await database.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(chromium: Path) -> AsyncIterator[Browser]:
    """Chromium without a screen."""
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield started
        await started.close()


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser, web_address: str) -> AsyncIterator[Page]:
    """A tab at the start page; fails when anything asks another host or breaks the policy."""
    context = await browser.new_context(base_url=web_address)
    context.set_default_timeout(60_000)
    opened = await context.new_page()
    strays: list[str] = []

    def note_request(request: Any) -> None:
        if not request.url.startswith(web_address):
            strays.append(request.url)

    def note_message(message: Any) -> None:
        if "Content Security Policy" in message.text:
            strays.append(message.text)

    opened.on("request", note_request)
    opened.on("console", note_message)
    opened.on("pageerror", lambda error: strays.append(str(error)))
    opened.on("dialog", lambda dialog: strays.append(f"dialog: {dialog.message}"))
    await opened.goto("/")
    yield opened
    await context.close()
    assert strays == []

"""Runs what README and docs tell users to type, on a site on loopback that has every page."""

import ast
import inspect
import json
import re
import shlex
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner

from webrag.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TOPICS = "A timeout is set with asyncio.timeout. A database is opened read only by its address."

# Commands that are no part of WebRAG, and where else they are run.
OTHERS = {
    "pip install uv": "the continuous integration begins with it",
    "python3 -m venv": "the continuous integration begins with it",
    "uv run webrag demo": "tests of the command line",
    "uv run pytest": "it is what runs this",
    "bash .ci/run": "it is what runs this",
    "python3 -m http.server": "Python's own",
}


def blocks(path: Path, language: str) -> list[str]:
    fence = rf"^```{language}\n(.*?)^```"
    return re.findall(fence, path.read_text(encoding="utf-8"), re.M | re.S)


def pages_with(language: str) -> list[Any]:
    found = [path for path in PAGES if blocks(path, language)]
    return [pytest.param(path, id=str(path.relative_to(ROOT))) for path in found]


class AnyPage(BaseHTTPRequestHandler):
    """Has a page under every address but those a crawler probes for."""

    def do_GET(self) -> None:
        known = not re.search(r"robots\.txt|sitemap|llms|\.md$|\.gz$", self.path)
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        links = "".join(f'<a href="/linked/{n}">How to open it</a> ' for n in range(3))
        text = f"<p>This is {self.path}. {TOPICS} See also the pages linked below. {links}</p>"
        self.wfile.write(f"<title>{self.path}</title><main><h1>Manual</h1>{text}</main>".encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def netloc() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), AnyPage)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def here(netloc: str) -> Callable[[str], str]:
    """Point every address of a text to the site of the test."""

    def rewrite(text: str) -> str:
        text = re.sub(r"https?://[\w.-]+(:\d+)?(?=[/\"\s]|$)", f"http://{netloc}", text)
        return re.sub(r"(--(?:site|allow-host)[ =])\S+", rf"\g<1>{netloc}", text)

    return rewrite


@pytest.fixture
async def corpus(
    postgres_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[str]:
    """A collection of its own, named by the environment as a user would."""
    from webrag import WebRAG

    name = f"test_{uuid.uuid4().hex[:16]}"
    monkeypatch.setenv("WEBRAG_DATA_DIR", str(postgres_dir))
    monkeypatch.setenv("WEBRAG_COLLECTION", name)
    monkeypatch.setenv("WEBRAG_ALLOW_HOSTS", "127.0.0.1")
    monkeypatch.chdir(tmp_path)
    yield name
    await WebRAG().drop_collection()


@pytest.mark.parametrize("path", pages_with("python"))
async def test_the_python_of_a_page_runs(
    path: Path, corpus: str, here: Callable[[str], str], netloc: str
) -> None:
    names: dict[str, Any] = {"URL": f"http://{netloc}/"}
    for block in blocks(path, "python"):
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        value = eval(compile(here(block), str(path), "exec", flags=flags), names)
        if inspect.isawaitable(value):
            await value


def commands(block: str) -> list[str]:
    lines = block.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


@pytest.mark.parametrize("path", pages_with("bash"))
def test_the_commands_of_a_page_run(
    path: Path, corpus: str, here: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in [each for block in blocks(path, "bash") for each in commands(block)]:
        if command.startswith(tuple(OTHERS)):
            continue
        words = shlex.split(here(command).removeprefix("uv run "), comments=True)
        assert words[0] == "webrag", f"{command!r} is neither run nor among OTHERS"
        result = CliRunner().invoke(main, words[1:])
        assert result.exit_code == 0, f"{command}\n{result.output}"


@pytest.mark.parametrize("path", pages_with("json"))
def test_the_json_of_a_page_is_valid(path: Path) -> None:
    for block in blocks(path, "json"):
        json.loads(block)

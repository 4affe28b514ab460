"""Runs what README and docs tell users to type, on a site on loopback that has every page."""

import ast
import inspect
import json
import re
import shlex
import textwrap
import tomllib
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner
from llama_index_instrumentation import root_dispatcher

from webrag.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TOPICS = "A timeout is set with asyncio.timeout. A database is opened read only by its address."

# Commands that are not run here, and what else keeps them right.
OTHERS = {
    "webrag mcp": "test_mcp_command.py and test_clients.py write, print and start",
    "uv run webrag mcp": "the same",
    "webrag setup --server http": "it needs a language model; test_setup_command.py has one",
    "webrag web": "it serves until it is stopped; test_web_command.py starts one",
    "uv run webrag web": "the same",
    "webrag login wiki.": "it opens a window; test_window.py signs in in one",
    "webrag jobs work": "it works until it is stopped; the tests of the jobs start some",
    "MCP_AUTH_TOKEN=": "they serve until they are stopped; test_deployment.py starts one",
    "uv sync --inexact --extra": "a test below looks for the extra",
    "export EMBEDDING_PROVIDER=fastembed": "its weights are downloaded; tests of the providers",
    "export WEBRAG_MODELS=small": "the same",
    "apt-get install": "the continuous integration does it",
    "webrag ingest git+": "test_app_git.py clones one",
    "git clone": "the continuous integration begins with it",
    "pip install uv": "the continuous integration begins with it",
    "uv run --group dev pytest": "it is what runs this",
    "bash .ci/run": "it is what runs this",
    "python benchmarks/": "test_benchmarks.py runs each; a test below looks for their options",
    "webrag eval benchmarks/": "the sites are downloaded; eval is run with others below",
}

# Blocks with these names are only compiled, by `test_docs.py`.
HEAVY = {
    "SentenceTransformerRerank": "needs PyTorch; `WebRAG(reranker=...)` is tested with another",
}

# What must be there before a command can do anything.
BEFORE = {
    "webrag eval questions.jsonl --stored": "webrag ingest https://docs.example.org/",
    "webrag forget https": "webrag ingest https://docs.example.org/old-page",
    "webrag forget ./docs": "webrag ingest ./docs",
    'webrag ask "How do I open a database read only?"': "webrag ingest https://docs.python.org/",
    "webrag search docs.python.org": "webrag ingest https://docs.python.org/",
    'webrag search "retry a failed upload" --site': "webrag ingest https://docs.example.com/",
    "webrag corpus import": "webrag corpus drop shared --yes",
    "uv run webrag verify": "webrag ingest https://docs.example.org/",
}

QUESTION = {
    "id": "timeout",
    "query": "How is a timeout set?",
    "site": "docs",
    "gold": [{"page": "index.html", "quote": "A timeout is set with asyncio.timeout"}],
}


def blocks(path: Path, language: str) -> list[str]:
    fence = rf"^ *```{language}\n(.*?)^ *```"
    found = re.findall(fence, path.read_text(encoding="utf-8"), re.M | re.S)
    return [textwrap.dedent(block) for block in found]


def pages_with(language: str) -> list[Any]:
    found = [path for path in PAGES if blocks(path, language)]
    return [pytest.param(path, id=str(path.relative_to(ROOT))) for path in found]


class AnyPage(BaseHTTPRequestHandler):
    """Has a page under every address but those a crawler probes for; is a server of models and
    a Firecrawl, too."""

    def do_GET(self) -> None:
        known = not re.search(r"robots\.txt|sitemap|llms|\.md$|\.gz$", self.path)
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        links = "".join(f'<a href="/linked/{n}">How to open it</a> ' for n in range(3))
        text = f"<p>This is {self.path}. {TOPICS} See also the pages linked below. {links}</p>"
        text += (
            "<pre><code>retry(upload, times=3)</code></pre><h2>How to work with SQLite URIs</h2>"
        )
        self.wfile.write(b'<meta property="article:published_time" content="2025-06-01">')
        self.wfile.write(f"<title>{self.path}</title><main><h1>Manual</h1>{text}</main>".encode())

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answers = {"/v1/embeddings": embeddings, "/v1/chat/completions": declined}
        body = json.dumps(answers.get(self.path, scraped)(asked)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


def embeddings(asked: dict[str, Any]) -> dict[str, Any]:
    vectors = [[1.0, float(len(text)), *[0.0] * 766] for text in asked["input"]]
    return {"data": [{"index": i, "embedding": each} for i, each in enumerate(vectors)]}


def declined(asked: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": "NOT FOUND"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    whole = {"id": "1", "object": "chat.completion", "created": 1, "model": asked["model"]}
    return {**whole, "choices": [choice]}


def scraped(asked: dict[str, Any]) -> dict[str, Any]:
    metadata = {"sourceURL": asked["url"], "url": asked["url"], "statusCode": 200}
    page = {"markdown": TOPICS, "rawHtml": f"<p>{TOPICS}</p>", "links": [], "metadata": metadata}
    return {"success": True, "data": page}


@pytest.fixture
def netloc() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), AnyPage)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
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
        text = re.sub(r"(--(?:site|allow-host)[ =]|search (?=docs\.))\S+", rf"\g<1>{netloc}", text)
        return text.replace('URL "a quotation"', f'http://{netloc}/ "{TOPICS}"')

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
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    yield name
    await WebRAG().drop_collection()


@pytest.fixture(autouse=True)
def no_listener_stays() -> Iterator[None]:
    """What an example adds to LlamaIndex's instrumentation would hear of every later test."""
    before = list(root_dispatcher.event_handlers), list(root_dispatcher.span_handlers)
    yield
    root_dispatcher.event_handlers[:], root_dispatcher.span_handlers[:] = before


@pytest.fixture
def questions(corpus: str) -> None:
    """Files of questions and wordings and a site here, as the page on evaluation has them."""
    Path("questions.jsonl").write_text(json.dumps(QUESTION), encoding="utf-8")
    wordings = {"id": QUESTION["id"], "phrasings": ["asyncio.timeout limits the time"]}
    Path("wordings.jsonl").write_text(json.dumps(wordings), encoding="utf-8")
    Path("docs").mkdir()
    Path("docs/limits.md").write_text(f"# Limits\n\n{TOPICS}", encoding="utf-8")
    Path("notes.md").write_text("# Notes\n\nSome words to be read.", encoding="utf-8")
    cookie = "docs.example.com\tFALSE\t/\tTRUE\t4102444800\tsession\tof-the-user"
    Path("cookies.txt").write_text(f"# Netscape HTTP Cookie File\n{cookie}\n", encoding="utf-8")
    Path("build/sites/docs").mkdir(parents=True)
    text = f"<title>Docs</title><main><h1>Docs</h1><p>{TOPICS}</p></main>"
    Path("build/sites/docs/index.html").write_text(text, encoding="utf-8")


# LlamaIndex's workflows look at every attribute of an agent, deprecated ones included.
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")
@pytest.mark.parametrize("path", pages_with("python"))
async def test_the_python_of_a_page_runs(
    path: Path, corpus: str, questions: None, here: Callable[[str], str], netloc: str
) -> None:
    names: dict[str, Any] = {"URL": f"http://{netloc}/"}
    for block in blocks(path, "python"):
        if any(name in block for name in HEAVY):
            continue
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        value = eval(compile(here(block), str(path), "exec", flags=flags), names)
        if inspect.isawaitable(value):
            await value


def commands(block: str) -> list[str]:
    lines = block.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


@pytest.mark.parametrize("path", pages_with("bash"))
def test_the_commands_of_a_page_run(
    path: Path,
    corpus: str,
    questions: None,
    here: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for command in [each for block in blocks(path, "bash") for each in commands(block)]:
        if command.startswith(tuple(OTHERS)):
            continue
        for needed in [BEFORE[start] for start in BEFORE if command.startswith(start)]:
            CliRunner().invoke(main, shlex.split(here(needed))[1:])
        words = shlex.split(here(command).removeprefix("uv run "), comments=True)
        words = words[1:] if words[0] == "export" else words
        while words and re.match(r"[A-Z_]+=", words[0]):
            monkeypatch.setenv(*words.pop(0).split("=", 1))
        if not words:
            continue
        assert words[0] == "webrag", f"{command!r} is neither run nor among OTHERS"
        result = CliRunner().invoke(main, words[1:])
        assert result.exit_code == 0, f"{command}\n{result.output}"


ALL_COMMANDS = [
    each for path in PAGES for block in blocks(path, "bash") for each in commands(block)
]


@pytest.mark.parametrize("start", [*OTHERS, *BEFORE])
def test_every_exception_is_still_needed(start: str) -> None:
    assert any(command.startswith(start) for command in ALL_COMMANDS)


def test_every_extra_that_a_page_names_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {
        extra
        for path in PAGES
        for extra in re.findall(r"(?:webrag\[|--extra )(\w+)", path.read_text(encoding="utf-8"))
    }

    assert named
    assert named - set(project["optional-dependencies"]) == set()


@pytest.mark.parametrize("command", [each for each in ALL_COMMANDS if "python benchmarks/" in each])
def test_benchmark_takes_the_options_it_is_shown_with(command: str) -> None:
    ((script, arguments),) = re.findall(r"(?s)(benchmarks/\w+\.py)(.*)", command)
    shown = set(re.findall(r"(?<![\w-])--[a-z-]+", arguments))

    assert shown - _options((ROOT / script).read_text(encoding="utf-8")) == set()


def _options(script: str) -> set[str]:
    """The options that a script adds to its parser."""
    calls = (node for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Call))
    return {
        arg.value
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"
        for arg in call.args
        if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
    }


@pytest.mark.parametrize("path", pages_with("json"))
def test_the_json_of_a_page_is_valid(path: Path) -> None:
    for block in blocks(path, "json"):
        json.loads(block)

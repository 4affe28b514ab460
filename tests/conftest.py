"""What every test gets: no network, a clean environment, one Postgres, sites on loopback.

Worker processes, too, which start once and not for each test.
"""

import gc
import hashlib
import importlib
import ipaddress
import os
import socket
import ssl
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, suppress
from email.utils import formatdate
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import certifi
import psycopg
import pytest
from hypothesis import HealthCheck, settings

from tests.chromium import NoBrowserError, find_or_bring_chromium, without_suggestions
from tests.kept_collections import KeptCollections
from tests.kept_workers import KeptWorkers
from tests.loopback import QuietHandler, serving
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database
from webrag.postgres.embedded.server import EmbeddedPostgres

# A machine that does something else meanwhile is slow, not wrong. Every run tries other inputs.
settings.register_profile(
    "webrag", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("webrag")

_OUR_VARIABLES = (
    "AGENT_", "ANSWER_", "ANTHROPIC_", "COHERE_", "CO_API_", "DATABASE_", "EMBEDDING_",
    "EXPANSION_", "FIRECRAWL_", "FUSION_", "JINA_", "LANGCHAIN_", "LANGSMITH_", "MCP_", "OPENAI_",
    "ORCHESTRATION_", "OTEL_", "PG", "RERANKER_", "RETRIEVAL_", "WEBRAG_", "ZEROENTROPY_",
)  # fmt: skip
# These take long without either: they start processes or servers, measure growth, or try very
# many inputs.
_SLOW = (
    "tests/node_parsers/",
    "tests/notebooks/",
    "tests/postprocessors/",
    "tests/test_benchmarks.py",
    "tests/test_deployment.py",
    "tests/test_docs_run.py",
    "tests/test_imports.py",
    "tests/test_patterns.py",
    "tests/test_scripts.py",
    "tests/webrag/cli/",
    "tests/webrag/corpus/test_kills.py",
    "tests/webrag/corpus/test_page_worker.py",
    "tests/webrag/crawling/test_crawl_traps.py",
    "tests/webrag/crawling/test_sitemap.py",
    "tests/webrag/demo/",
    "tests/webrag/embedding/",
    "tests/webrag/ingestion/files/test_gitignore.py",
    "tests/webrag/ingestion/firecrawl/",
    "tests/webrag/ingestion/test_git",
    "tests/webrag/ingestion/http/test_fetcher",
    "tests/webrag/ingestion/http/test_hostile_servers.py",
    "tests/webrag/ingestion/site_maps/test_generators.py",
    "tests/webrag/ingestion/test_browser.py",
    "tests/webrag/ingestion/test_extraction_pool.py",
    "tests/webrag/ingestion/test_offset_mutants.py",
    "tests/webrag/jobs/",
    "tests/webrag/llamaindex/test_store_postings.py",
    "tests/webrag/mcp_server/",
    "tests/webrag/postgres/",
    "tests/webrag/presentation/test_brief_guarantees.py",
    "tests/webrag/process_pool/",
    "tests/webrag/settings/test_fields.py",
    "tests/webrag/test_app",
    "tests/webrag/test_hostile_texts.py",
    "tests/webrag/test_settings_matter.py",
    "tests/webrag/web/",
    "tests/webrag/wiring/",
)
_CHROMIUM = pytest.StashKey[Path | NoBrowserError]()
_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """A million objects stay until the end: a quarter of collecting was to look for garbage there.

    Later garbage is found as ever.
    """
    gc.disable()
    try:
        _import_other_parts_first(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _import_other_parts_first(config: pytest.Config) -> None:
    """Each process of pytest-xdist begins elsewhere, and finds there what others have compiled.

    Else all would compile every module, half of their collecting.
    """
    workers = getattr(config, "workerinput", None)
    if workers is None or config.args_source is not config.ArgsSource.TESTPATHS:
        return
    modules = sorted((config.rootpath / "tests").rglob("test_*.py"))
    first = len(modules) * int(workers["workerid"].removeprefix("gw")) // workers["workercount"]
    for module in modules[first:] + modules[:first]:
        with suppress(Exception):  # told when it is collected
            importlib.import_module(
                ".".join(module.relative_to(config.rootpath).with_suffix("").parts)
            )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as fast what needs neither the database nor a browser nor processes or servers."""
    for item in items:
        needed = {"postgres_dir", "chromium"} & set(getattr(item, "fixturenames", ()))
        if not needed and not item.nodeid.startswith(_SLOW):
            item.add_marker("fast")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Brings the browser when a test needs one that is not there; in no test's time.

    In a process of pytest-xdist, too, as only these know the tests.
    """
    needed = any("chromium" in getattr(item, "fixturenames", ()) for item in session.items)
    if not needed or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled():
            sys.stderr.write(f"\n{line}\n")
            sys.stderr.flush()

    try:
        session.config.stash[_CHROMIUM] = find_or_bring_chromium(say)
    except NoBrowserError as error:
        session.config.stash[_CHROMIUM] = error
        say(str(error))


@pytest.fixture(scope="session")
def chromium(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The browser; which tests ask for it is known before the first one runs."""
    found = request.config.stash[_CHROMIUM]
    if isinstance(found, NoBrowserError):
        pytest.fail(str(found), pytrace=False)
    return without_suggestions(found, tmp_path_factory.mktemp("browser"))


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only loopback and Unix sockets can be reached; other names do not resolve."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex
    resolve = socket.getaddrinfo

    def refuse_strangers(sock: socket.socket, address: Any) -> None:
        if sock.family != socket.AF_UNIX and not _is_local(address[0]):
            pytest.fail(f"a test tried to reach {address!r}")

    def guarded_connect(self: socket.socket, address: Any) -> None:
        refuse_strangers(self, address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        refuse_strangers(self, address)
        return connect_ex(self, address)

    def guarded_resolve(host: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name and not _is_local(name) and not _is_address(name):
            raise socket.gaierror(socket.EAI_NONAME, f"names do not resolve in tests: {name}")
        return resolve(host, *args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_resolve)


@pytest.fixture(scope="session", autouse=True)
def _no_public_authorities() -> Iterator[None]:
    """No host of a test has a certificate of an authority that this machine trusts.

    To read those takes 25 ms, for each of a thousand clients. A test's own authority is trusted.
    """
    public = {None, certifi.where(), *ssl.get_default_verify_paths()}
    load = ssl.SSLContext.load_verify_locations

    def load_own(
        self: ssl.SSLContext, cafile: Any = None, capath: Any = None, cadata: Any = None
    ) -> None:
        if cadata is not None or not {cafile, capath} <= public:
            load(self, cafile, capath, cadata)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ssl.SSLContext, "load_verify_locations", load_own)
        patched.setattr(ssl.SSLContext, "load_default_certs", lambda *_: None)
        yield


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _is_local(host: str) -> bool:
    if _is_address(host):
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    return host == "localhost" or host.endswith(".localhost")


@pytest.fixture(autouse=True)
def _clean_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No setting of this machine reaches a test, and no test reaches the user's folders."""
    for name in os.environ:
        if name.upper().startswith(_OUR_VARIABLES) or name.upper() in _PROXY_VARIABLES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    home = tmp_path_factory.getbasetemp() / "home"
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(home / name.lower()))


@pytest.fixture(scope="session")
def postgres_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Data folder of one embedded server that runs during the whole session."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    server = EmbeddedPostgres(shared / "data")
    server.ensure()
    _spare_the_disk(server.conninfo)
    yield shared / "data"
    server.release()


@pytest.fixture(scope="session")
def made_cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new server's files, for `<data folder>/postgres/cluster`.

    Copying them takes a tenth of the time of making them.
    """
    server = EmbeddedPostgres(tmp_path_factory.mktemp("made"))
    server.ensure()
    server.release()
    cluster = server.folder / "cluster"
    deadline = time.monotonic() + 20
    while (cluster / "postmaster.pid").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return cluster


def _spare_the_disk(conninfo: str) -> None:
    """Commits of the tests need survive no loss of power, only the killing of processes."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("ALTER SYSTEM SET full_page_writes = off")
        # Kept collections would be filled with the statistics of rows that are gone.
        connection.execute("ALTER SYSTEM SET autovacuum = off")
        connection.execute("SELECT pg_reload_conf()")


@pytest.fixture(scope="session")
def all_workers() -> Iterator[KeptWorkers]:
    """The processes that no pool has at the moment."""
    keeper = KeptWorkers()
    yield keeper
    keeper.end()


@pytest.fixture(autouse=True)
def kept_workers(monkeypatch: pytest.MonkeyPatch, all_workers: KeptWorkers) -> None:
    """Pools take over the processes of earlier pools; tests of the processes start their own."""
    monkeypatch.setattr("webrag.process_pool.pool._Worker", all_workers.lend)


@pytest.fixture(scope="session")
def all_collections() -> KeptCollections:
    """The collections that no test has at the moment."""
    return KeptCollections()


@pytest.fixture
def kept_collections(
    monkeypatch: pytest.MonkeyPatch, all_collections: KeptCollections
) -> KeptCollections:
    """Gives new collections the tables of earlier ones; `take_back` stands for dropping one."""
    monkeypatch.setattr("webrag.corpus.schema.create_tables", all_collections.create)
    return all_collections


@pytest.fixture
async def database(
    postgres_dir: Path, kept_collections: KeptCollections
) -> AsyncIterator[Database]:
    """A database whose collection does not exist yet and is gone after the test."""
    name = f"test_{uuid.uuid4().hex[:16]}"
    opened = Database(DatabaseConfig(data_dir=postgres_dir, collection=name))
    yield opened
    await kept_collections.take_back(opened)
    await opened.close()


class SiteRequest(NamedTuple):
    """One request a site received; header names are lower case."""

    method: str
    path: str
    query: str
    headers: dict[str, str]


class SiteResponse(NamedTuple):
    """What a route answers."""

    status: int
    headers: dict[str, str]
    body: bytes


Handler = Callable[[SiteRequest], tuple[int, Mapping[str, str], str | bytes]]
Route = str | bytes | Handler


class StaticSite(str):
    """The base URL of a running site, without a slash at the end.

    Attributes:
        requests: Every request received so far, oldest first.
    """

    requests: list[SiteRequest]

    @property
    def url(self) -> str:
        """The base URL as a plain string."""
        return str(self)

    @property
    def paths(self) -> list[str]:
        """Paths of the requests received so far, without robots.txt."""
        return [request.path for request in self.requests if request.path != "/robots.txt"]


@pytest.fixture
def static_site() -> Iterator[Callable[..., StaticSite]]:
    """Starts sites: `static_site({"/": "<html>..."})` or `static_site(folder)`.

    A route is a path, with its query if that matters, and its text (HTML), bytes (type by the
    path's suffix), or a function of the request that returns (status, headers, body). Routes may
    be changed while the site runs. With `validators=True` answers carry ETag and Last-Modified,
    and conditional requests get 304.
    """
    with ExitStack() as running:

        def start(routes: Mapping[str, Route] | Path, *, validators: bool = False) -> StaticSite:
            requests: list[SiteRequest] = []
            handler = _handler_class(routes, requests, validators)
            site = StaticSite(running.enter_context(serving(handler)))
            site.requests = requests
            return site

        yield start


def _handler_class(
    routes: Mapping[str, Route] | Path, requests: list[SiteRequest], validators: bool
) -> type[QuietHandler]:
    class SiteHandler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = SiteRequest(self.command, unquote(parts.path), parts.query, headers)
            requests.append(request)
            answer = _answer(routes, self.path, request)
            answer = _conditional(answer, request) if validators else answer
            self.send(answer.status, answer.body, answer.headers)

        do_HEAD = do_GET

    return SiteHandler


def _answer(routes: Mapping[str, Route] | Path, target: str, request: SiteRequest) -> SiteResponse:
    route: Route | None
    if isinstance(routes, Path):
        route = _file(routes, request.path)
    else:
        route = routes.get(target, routes.get(request.path))
    if route is None:
        return SiteResponse(404, {"Content-Type": "text/html"}, b"<h1>Not found</h1>")
    if callable(route):
        status, headers, body = route(request)
        return SiteResponse(status, dict(headers), _encode(body))
    return SiteResponse(200, {"Content-Type": _content_type(request.path, route)}, _encode(route))


def _file(folder: Path, path: str) -> bytes | None:
    file = folder / path.lstrip("/")
    if file.is_dir():
        file /= "index.html"
    return file.read_bytes() if file.is_file() else None


def _encode(body: str | bytes) -> bytes:
    return body.encode() if isinstance(body, str) else body


def _content_type(path: str, body: str | bytes) -> str:
    known = {
        ".txt": "text/plain; charset=utf-8",
        ".md": "text/markdown; charset=utf-8",
        ".xml": "application/xml",
        ".json": "application/json",
        ".pdf": "application/pdf",
        ".png": "image/png",
    }
    suffix = Path(path).suffix.lower()
    is_page = isinstance(body, str) or suffix in ("", ".html", ".htm")
    return known.get(suffix, "text/html; charset=utf-8" if is_page else "application/octet-stream")


def _conditional(answer: SiteResponse, request: SiteRequest) -> SiteResponse:
    etag = f'"{hashlib.sha256(answer.body).hexdigest()[:16]}"'
    headers = {"ETag": etag, "Last-Modified": formatdate(0, usegmt=True)} | answer.headers
    if answer.status == 200 and request.headers.get("if-none-match") == etag:
        return SiteResponse(304, headers, b"")
    return answer._replace(headers=headers)

"""Repositories, cloned over loopback HTTP from git's own server program."""

import os
import shutil
import subprocess
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http.server import CGIHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from webrag import WebRAG
from webrag.errors import FetchError
from webrag.ingestion.git.address import parse_git
from webrag.ingestion.git.clone import GitClones
from webrag.settings import Settings

QUESTION = "When is an idle connection closed?"
Open = Callable[..., AbstractAsyncContextManager[WebRAG]]


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, env=environment, check=True, capture_output=True
    )
    return done.stdout.decode().strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of two pages, a tag, and things that a careless client would run."""
    root = tmp_path / "served" / "owner" / "repo"
    (root / "docs").mkdir(parents=True)
    git(root, "init", "-q")
    (root / "docs" / "limits.md").write_text(
        "# Limits\n\nThe broker closes a connection\nthat is idle for 95 seconds.\n"
    )
    (root / "README.md").write_text("# Broker\n\nSee [limits](docs/limits.md).\n")
    (root / "leak.md").symlink_to("/etc/hostname")
    (root / ".gitattributes").write_text("*.md filter=evil\n")
    (root / ".gitmodules").write_text(
        '[submodule "x"]\n\tpath = x\n\turl = ext::sh -c "touch /tmp/run"\n'
    )
    git(root, "add", ".")
    git(root, "commit", "-qm", "One")
    git(root, "tag", "v1")
    return root


@pytest.fixture
def host(repository: Path, tmp_path: Path) -> Iterator[str]:
    """Serves it, without a detour through a login."""
    program = Path(subprocess.check_output(["git", "--exec-path"], text=True).strip())
    served = tmp_path / "served"

    class Handler(CGIHTTPRequestHandler):
        have_fork = False

        def is_cgi(self) -> bool:
            self.cgi_info = "", self.path.removeprefix("/")
            return True

        def run_cgi(self) -> None:
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            done = subprocess.run(
                [str(program / "git-http-backend")],
                input=body,
                capture_output=True,
                check=True,
                env={
                    "GIT_PROJECT_ROOT": str(served),
                    "GIT_HTTP_EXPORT_ALL": "1",
                    "GIT_CONFIG_COUNT": "1",
                    "GIT_CONFIG_KEY_0": "safe.directory",
                    "GIT_CONFIG_VALUE_0": "*",
                    "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                    "PATH_INFO": path,
                    "QUERY_STRING": query,
                    "REQUEST_METHOD": self.command,
                    "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                    "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                },
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(fields.pop("Status", "200")[:3]))
            for name, value in fields.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def opened(postgres_dir: Path) -> Iterator[Open]:
    """Opens a WebRAG that may ask loopback, on a collection of its own."""

    @asynccontextmanager
    async def make() -> AsyncIterator[WebRAG]:
        settings = Settings(
            data_dir=postgres_dir,
            collection=f"test_{uuid.uuid4().hex[:16]}",
            allow_hosts=["127.0.0.1"],
        )
        async with WebRAG(settings) as rag:
            try:
                yield rag
            finally:
                await rag.drop_collection()

    yield make
    shutil.rmtree(postgres_dir / "repositories", ignore_errors=True)


async def test_repository_is_answered_from_with_links_to_the_commit(
    opened: Open, host: str, repository: Path
) -> None:
    async with opened() as rag:
        report = await rag.ingest(f"git+http://{host}/owner/repo@v1#docs")
        result = await rag.answer(f"git+http://{host}/owner/repo@v1", QUESTION)
        brief = rag.brief(result)

    commit = git(repository, "rev-parse", "v1")
    assert [page.url for page in report.pages] == [
        f"git+http://{host}/owner/repo.git@v1/docs/limits.md"
    ]
    link = f"http://{host}/owner/repo/src/commit/{commit}/docs/limits.md#L3"
    assert f"passage: {link} (docs/limits.md:3)" in brief


async def test_next_run_reads_the_new_commit_and_marks_deleted_files(
    opened: Open, host: str, repository: Path
) -> None:
    address = f"git+http://{host}/owner/repo"
    async with opened() as rag:
        await rag.ingest(address)
        (repository / "docs" / "limits.md").unlink()
        (repository / "README.md").write_text("# Broker\n\nNo limits any more.\n")
        git(repository, "commit", "-qam", "Two")
        report = await rag.ingest(address)

    outcomes = {page.url.rpartition("/")[2]: page.outcome for page in report.pages}
    assert outcomes["README.md"] == "updated"
    assert [url.rpartition("/")[2] for url in report.gone] == ["limits.md"]


async def test_links_in_the_tree_lead_nowhere_and_nothing_is_run(host: str, tmp_path: Path) -> None:
    clones = GitClones(tmp_path / "clones", allowed_hosts=["127.0.0.1"])

    clone = await clones.refresh(parse_git(f"git+http://{host}/owner/repo"))

    assert (clone / "leak.md").read_text() == "/etc/hostname"
    assert not (clone / "leak.md").is_symlink()
    assert list((clone / ".git").glob("hooks/*")) == []
    assert not (clone / "x").exists() or not any((clone / "x").iterdir())


async def test_private_host_is_refused_before_git_dials(host: str, tmp_path: Path) -> None:
    clones = GitClones(tmp_path / "clones")

    with pytest.raises(FetchError, match="may not be contacted"):
        await clones.refresh(parse_git(f"git+https://{host}/owner/repo"))


async def test_clone_above_the_limit_is_ended(host: str, tmp_path: Path) -> None:
    clones = GitClones(tmp_path / "clones", allowed_hosts=["127.0.0.1"], max_bytes=10)

    with pytest.raises(FetchError, match="more than 10 bytes"):
        await clones.refresh(parse_git(f"git+http://{host}/owner/repo"))

    assert list((tmp_path / "clones").iterdir()) == []


async def test_unknown_ref_is_named(opened: Open, host: str) -> None:
    async with opened() as rag:
        report = await rag.ingest(f"git+http://{host}/owner/repo@v9")

    assert "has no 'v9'" in next(iter(report.failed.values()))

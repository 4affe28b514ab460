from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from threading import Thread
from typing import Any

import pytest

from tests.git_host import git, served_repositories
from webrag.errors import FetchError, PageGoneError
from webrag.ingestion.addresses import parse_git
from webrag.ingestion.git import GitClones, listed_commit

ONE, TWO, THREE = "1" * 40, "2" * 40, "3" * 40


@pytest.mark.parametrize(
    ("ref", "commit"),
    [
        pytest.param("HEAD", ONE, id="what the host shows first"),
        pytest.param("main", ONE, id="a branch, not another one whose name ends alike"),
        pytest.param("v1", THREE, id="the commit a tag is put on"),
        pytest.param("feature/main", TWO, id="a branch with a slash"),
        pytest.param("v2", None, id="none"),
    ],
)
def test_commit_of_a_ref_is_found_as_git_finds_it(ref: str, commit: str | None) -> None:
    listing = (
        f"{ONE}\tHEAD\n{TWO}\trefs/heads/feature/main\n{ONE}\trefs/heads/main\n"
        f"{ONE}\trefs/heads/v1\n{TWO}\trefs/tags/v1\n{THREE}\trefs/tags/v1^{{}}\n"
    )

    assert listed_commit(listing.splitlines(), ref) == commit


@pytest.fixture
def older_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A git that, as before 2.32, does not know the variable that names a file of settings."""
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nunset GIT_CONFIG_GLOBAL\nexec {which("git")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


@pytest.mark.usefixtures("older_git")
async def test_redirects_are_not_followed_by_any_git(tmp_path: Path) -> None:
    repository = tmp_path / "served" / "repo"
    repository.mkdir(parents=True)
    git(repository, "init", "-q")
    git(repository, "commit", "-qm", "One", "--allow-empty")

    with served_repositories(tmp_path / "served") as host:

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(302)
                self.send_header("Location", f"http://{host}{self.path}")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Keep quiet."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        clones = GitClones(tmp_path / "clones", allowed_hosts=["127.0.0.1"])
        try:
            with pytest.raises(FetchError, match="could not be cloned"):
                await clones.refresh(parse_git(f"git+http://127.0.0.1:{server.server_port}/repo"))
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
        assert host.asked == []
        await clones.refresh(parse_git(f"git+http://{host}/repo"))


async def test_program_that_prints_more_than_a_pipe_holds_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "served" / "repo"
    repository.mkdir(parents=True)
    git(repository, "init", "-q")
    git(repository, "commit", "-qm", "One", "--allow-empty")
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    printing = 'case "$*" in *" init "*|*" checkout "*) printf "%0200000d" 0 ;; esac'
    program.write_text(f'#!/bin/sh\n{printing}\nexec {which("git")} "$@"\n')
    program.chmod(0o755)

    with served_repositories(tmp_path / "served") as host:
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        clones = GitClones(tmp_path / "clones", allowed_hosts=["127.0.0.1"])

        assert (await clones.refresh(parse_git(f"git+http://{host}/repo"))).is_dir()


async def test_nothing_is_cloned_without_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webrag.ingestion.git._SETTINGS", tmp_path / "gone.gitconfig")
    clones = GitClones(tmp_path / "clones", allowed_hosts=["127.0.0.1"])

    with pytest.raises(FetchError, match="could not be cloned: No such file"):
        await clones.refresh(parse_git("git+http://127.0.0.1:9/owner/repo"))


@pytest.mark.parametrize(
    ("said", "kind", "shown"),
    [
        ("warning: " + "x" * 400 + "\nfatal: repository not found", PageGoneError, "has no 'main'"),
        ("not found\nfatal: Out of memory, malloc failed", FetchError, "bytes of memory"),
        ("x" * 400, FetchError, "cloned: " + "x" * 300 + "$"),
    ],
)
async def test_failure_of_git_is_told_from_all_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, kind: type[FetchError], shown: str
) -> None:
    program = tmp_path / "git"
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\nexit 128\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    clones = GitClones(tmp_path / "clones", allowed_hosts=["127.0.0.1"])

    with pytest.raises(FetchError, match=shown) as caught:
        await clones.refresh(parse_git("git+http://127.0.0.1:9/owner/repo@main"))

    assert type(caught.value) is kind

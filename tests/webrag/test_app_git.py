"""Repositories, cloned over loopback HTTP from git's own server program."""

import asyncio
import os
import shutil
import subprocess
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.git_host import Host, git, served_repositories
from tests.kept_collections import KeptCollections
from webrag import WebRAG
from webrag.concurrency import all_of
from webrag.errors import FetchError
from webrag.ingestion.addresses import parse_git
from webrag.ingestion.git import GitClones, GitSource
from webrag.ingestion.models import FetchedPage
from webrag.settings import Settings

QUESTION = "When is an idle connection closed?"
Open = Callable[..., AbstractAsyncContextManager[WebRAG]]


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
        f'[submodule "x"]\n\tpath = x\n\turl = ext::sh -c touch% {tmp_path / "by_submodule"}\n'
    )
    git(root, "add", ".")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},x")
    git(root, "commit", "-qm", "One")
    git(root, "tag", "v1")
    return root


@pytest.fixture
def host(repository: Path, tmp_path: Path) -> Iterator[Host]:
    """Serves it, without a detour through a login."""
    with served_repositories(tmp_path / "served") as host:
        yield host


@pytest.fixture
def opened(postgres_dir: Path, kept_collections: KeptCollections, host: Host) -> Iterator[Open]:
    """Opens a WebRAG that may ask loopback, on a collection of its own."""

    @asynccontextmanager
    async def make(**given: Any) -> AsyncIterator[WebRAG]:
        settings = Settings(
            data_dir=postgres_dir,
            collection=f"test_{uuid.uuid4().hex[:16]}",
            allow_hosts=["127.0.0.1"],
            **given,
        )
        async with WebRAG(settings) as rag:
            try:
                yield rag
            finally:
                await kept_collections.take_back_from(rag)

    yield make
    # Others, of tests beside this one, are in the same folder.
    for said in postgres_dir.glob("repositories/*/.git/FETCH_HEAD"):
        with suppress(FileNotFoundError):
            if host.address in said.read_text():
                shutil.rmtree(said.parents[1])


async def test_repository_is_answered_from_with_links_to_the_commit(
    opened: Open, host: Host, repository: Path
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
    opened: Open, host: Host, repository: Path
) -> None:
    address = f"git+http://{host}/owner/repo"
    async with opened(recrawl_after=0) as rag:
        await rag.ingest(address)
        (repository / "docs" / "limits.md").unlink()
        (repository / "README.md").write_text("# Broker\n\nNo limits any more.\n")
        git(repository, "commit", "-qam", "Two")
        report = await rag.ingest(address)

    outcomes = {page.url.rpartition("/")[2]: page.outcome for page in report.pages}
    assert outcomes["README.md"] == "updated"
    assert [url.rpartition("/")[2] for url in report.gone] == ["limits.md"]


async def test_repository_is_not_asked_for_again_while_its_clone_is_young(
    opened: Open, host: Host
) -> None:
    address = f"git+http://{host}/owner/repo"
    async with opened() as rag:
        await rag.answer(address, QUESTION)
        asked = len(host.asked)
        await rag.answer(address, QUESTION)
        await rag.ingest(address)

    assert len(host.asked) == asked


async def test_old_clone_is_taken_as_it_is_when_the_host_has_the_same_commit(
    opened: Open, host: Host
) -> None:
    address = f"git+http://{host}/owner/repo@v1"
    async with opened(recrawl_after=0) as rag:
        await rag.ingest(address)
        host.asked.clear()
        report = await rag.ingest(address)

    assert set(host.asked) == {"names"}
    assert {page.outcome for page in report.pages} == {"unchanged"}


async def test_refresh_asks_the_host_about_a_young_clone(
    opened: Open, host: Host, repository: Path
) -> None:
    address = f"git+http://{host}/owner/repo"
    async with opened() as rag:
        await rag.ingest(address)
        (repository / "README.md").write_text("# Broker\n\nNo limits any more.\n")
        git(repository, "commit", "-qam", "Two")
        young = await rag.ingest(address)
        fresh = await rag.ingest(address, refresh=True)

    assert {page.outcome for page in young.pages} == {"unchanged"}
    assert sorted(page.outcome for page in fresh.pages) == ["unchanged", "unchanged", "updated"]


async def test_old_clone_serves_while_its_host_is_down_and_the_result_says_so(
    opened: Open, host: Host
) -> None:
    address = f"git+http://{host}/owner/repo"
    async with opened(recrawl_after=0) as rag:
        await rag.ingest(address)
        host.is_down = True
        report = await rag.ingest(address)
        result = await rag.answer(address, QUESTION)
        forced = await rag.ingest(address, refresh=True)

    assert {page.outcome for page in report.pages} == {"unchanged"}
    assert "The clone from before is used." in report.degraded[0]
    assert "The clone from before is used." in result.warnings[0]
    assert "could not be cloned" in next(iter(forced.failed.values()))


@pytest.fixture
def careless_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own git runs things: a filter, hooks, submodules. Where they leave traces."""
    traces = tmp_path / "traces"
    hooks, home = tmp_path / "hooks", tmp_path / "home"
    for folder in (traces, hooks, home):
        folder.mkdir()
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {traces}/{name}\n")
        (hooks / name).chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {hooks}\n\tsymlinks = true\n"
        f'[filter "evil"]\n\tsmudge = "touch {traces}/filter; cat"\n'
        "[submodule]\n\trecurse = true\n[fetch]\n\trecurseSubmodules = true\n"
        '[protocol "ext"]\n\tallow = always\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    return traces


async def test_links_in_the_tree_lead_nowhere_and_nothing_is_run(
    host: Host, repository: Path, careless_git: Path, tmp_path: Path
) -> None:
    careless = {"env": {**os.environ, "PATH": os.environ["PATH"]}, "check": True}
    subprocess.run(["git", "clone", "-q", repository, tmp_path / "careless"], **careless)
    shown = {path.name for path in careless_git.iterdir()}
    for trace in careless_git.iterdir():
        trace.unlink()

    clones = GitClones(tmp_path / "clones", allowed_hosts=["127.0.0.1"])
    clone = await clones.refresh(parse_git(f"git+http://{host}/owner/repo"))

    assert {"filter", "post-checkout"} <= shown
    assert list(careless_git.iterdir()) == []
    assert not (tmp_path / "by_submodule").exists()
    assert (clone / "leak.md").read_text() == "/etc/hostname"
    assert not (clone / "leak.md").is_symlink()
    assert list((clone / ".git").glob("hooks/*")) == []
    assert list((clone / "x").iterdir()) == []


async def test_two_who_ask_for_a_repository_share_one_clone(host: Host, tmp_path: Path) -> None:
    clones = GitClones(tmp_path / "clones", allowed_hosts=["127.0.0.1"], keep_s=60)
    asked = parse_git(f"git+http://{host}/owner/repo")

    places = await all_of(clones.refresh(asked) for _ in range(3))

    assert host.asked.count("commits") == 1
    assert list((tmp_path / "clones").iterdir()) == [places[0]]


async def test_file_is_not_gone_while_another_clone_takes_the_place_of_the_first(
    host: Host, tmp_path: Path
) -> None:
    clones = GitClones(tmp_path / "clones", allowed_hosts=["127.0.0.1"])
    source = GitSource(clones, max_bytes=1_000, max_document_bytes=1_000)
    asked = parse_git(f"git+http://{host}/owner/repo")
    (url,) = [each for each in (await source.files_of(asked.url)).urls if "limits" in each]

    async with clones.lock(asked):
        clones.of(asked).rename(tmp_path / "aside")
        reading = asyncio.create_task(source.fetch(url))
        await asyncio.wait([reading], timeout=1)
        (tmp_path / "aside").rename(clones.of(asked))

    page = await reading
    assert isinstance(page, FetchedPage)
    assert "95 seconds" in page.text


async def test_folder_of_clones_that_cannot_be_made_is_a_failure_of_the_page(
    host: Host, tmp_path: Path
) -> None:
    (tmp_path / "clones").write_text("a file")
    clones = GitClones(tmp_path / "clones", allowed_hosts=["127.0.0.1"])

    with pytest.raises(FetchError, match="could not be cloned: "):
        await clones.refresh(parse_git(f"git+http://{host}/owner/repo"))


async def test_private_host_is_refused_before_git_dials(host: Host, tmp_path: Path) -> None:
    clones = GitClones(tmp_path / "clones")

    with pytest.raises(FetchError, match="may not be contacted"):
        await clones.refresh(parse_git(f"git+https://{host}/owner/repo"))


async def test_clone_above_the_limit_is_ended(host: Host, tmp_path: Path) -> None:
    clones = GitClones(tmp_path / "clones", allowed_hosts=["127.0.0.1"], max_bytes=10)

    with pytest.raises(FetchError, match="more than 10 bytes"):
        await clones.refresh(parse_git(f"git+http://{host}/owner/repo"))

    assert list((tmp_path / "clones").iterdir()) == []


async def test_what_could_not_be_used_is_told_beside_the_answer(
    opened: Open, host: Host, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "good.md").write_text("# Notes\n\nNothing about the broker.\n")
    (tmp_path / "notes" / "damaged.ipynb").write_text("{")
    named = [
        f"git+http://{host}/owner/repo",
        f"git+http://{host}/owner/repo@v9",
        tmp_path / "notes",
    ]
    async with opened() as rag:
        result = await rag.answer(named, QUESTION)
        said = await rag.ask(QUESTION, url=named)

    for told in (result.warnings, said.degraded):
        assert any("damaged.ipynb" in each for each in told)
        assert any("has no 'v9'" in each for each in told)


async def test_files_of_a_folder_that_the_repository_no_longer_has_are_gone(
    opened: Open, host: Host, repository: Path
) -> None:
    address = f"git+http://{host}/owner/repo#docs"
    async with opened(recrawl_after=0) as rag:
        await rag.ingest(address)
        git(repository, "rm", "-qr", "docs")
        git(repository, "commit", "-qm", "Two")
        report = await rag.ingest(address)

    assert [url.rpartition("/")[2] for url in report.gone] == ["limits.md"]
    assert "has no 'docs/'" in next(iter(report.failed.values()))


async def test_file_named_as_a_folder_is_stored_under_its_own_address(
    opened: Open, host: Host, repository: Path
) -> None:
    address = f"git+http://{host}/owner/repo#docs/limits.md"
    async with opened(recrawl_after=0) as rag:
        first = await rag.ingest(address)
        git(repository, "rm", "-qr", "docs")
        git(repository, "commit", "-qm", "Two")
        second = await rag.ingest(address)

    url = f"git+http://{host}/owner/repo.git@HEAD/docs/limits.md"
    assert [page.url for page in first.pages] == [url]
    assert second.gone == (url,)


async def test_what_a_killed_process_left_is_removed_by_the_next_clone(
    host: Host, tmp_path: Path
) -> None:
    clones = GitClones(tmp_path / "clones", allowed_hosts=["127.0.0.1"])
    left, under_way = (tmp_path / "clones" / name for name in ("new-left", "new-under-way"))
    for folder in (left, under_way):
        folder.mkdir(parents=True)
    os.utime(left, (0, 0))

    await clones.refresh(parse_git(f"git+http://{host}/owner/repo"))

    assert (left.exists(), under_way.exists()) == (False, True)


def test_repository_is_cloned_by_loops_that_start_no_processes(host: Host, tmp_path: Path) -> None:
    class Loop(asyncio.SelectorEventLoop):
        """As on Windows."""

        async def subprocess_exec(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    clones = GitClones(tmp_path / "clones", allowed_hosts=["127.0.0.1"])
    with asyncio.Runner(loop_factory=Loop) as runner:
        clone = runner.run(clones.refresh(parse_git(f"git+http://{host}/owner/repo")))

    assert (clone / "README.md").is_file()


async def test_unknown_ref_is_named(opened: Open, host: Host) -> None:
    async with opened() as rag:
        report = await rag.ingest(f"git+http://{host}/owner/repo@v9")

    assert "has no 'v9'" in next(iter(report.failed.values()))

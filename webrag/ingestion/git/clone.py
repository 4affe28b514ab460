"""Shallow clones of repositories that nobody vouches for: nothing in them is run."""

import asyncio
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from webrag.errors import FetchError, InputError, PageGoneError, SourceUnavailableError
from webrag.ingestion.git.address import GitFile
from webrag.ingestion.http.guard import AddressCheck, Resolver, resolve

__all__ = ["GitClones"]

_SAID_CHARS: Final = 300
_WATCHED_S: Final = 0.2
_SETTINGS: Final = {
    "protocol.allow": "never",
    "http.followRedirects": "false",
    "http.proxy": "",
    "http.maxRequests": "2",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "20",
    "credential.helper": "",
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    # A link in the tree becomes a file that holds its target.
    "core.symlinks": "false",
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "fetch.recurseSubmodules": "false",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "advice.detachedHead": "false",
    "init.defaultBranch": "main",
}


class GitClones:
    """Keeps one shallow clone of each repository and ref that was asked for.

    Neither the user's nor the system's configuration of git counts, nor its credentials, proxies
    and hooks; filters, submodules and LFS are left alone. The host's addresses are checked as for
    pages, and git is bound to those.

    Args:
        folder: Where the clones are.
        allowed_hosts: `host` or `host:port` entries that may be asked although private, and by
            plain http.
        max_bytes: Of a clone, its history included.
        timeout_s: For one.
        resolver: Gives the addresses of a host.
    """

    def __init__(
        self,
        folder: Path,
        *,
        allowed_hosts: Iterable[str] = (),
        max_bytes: int = 300_000_000,
        timeout_s: float = 180.0,
        resolver: Resolver = resolve,
    ) -> None:
        self._folder = folder
        self._addresses = AddressCheck(allowed_hosts, resolver=resolver)
        self._allowed = frozenset(allowed_hosts)
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s

    @property
    def folder(self) -> Path:
        """Below it are the clones and nothing else."""
        return self._folder

    def of(self, file: GitFile) -> Path:
        """Where the clone is that holds a file, once there is one."""
        name = hashlib.sha256(f"{file.repository}@{file.ref}".encode()).hexdigest()[:32]
        return self._folder / name

    async def refresh(self, file: GitFile) -> Path:
        """Clone the repository of a file as it is now, in the place of an older clone.

        Raises:
            InputError: Plain http, to a host that is not allowed by its name.
            RefusedAddressError: The host's address is private, or its port unusual.
            PageGoneError: The host has no such repository or ref.
            SourceUnavailableError: git is not installed.
            FetchError: It is too large, took too long, or failed; the older clone stays.
        """
        if file.scheme == "http" and not self._allowed & {file.host, file.host.partition(":")[0]}:
            raise InputError(f"{file.url} would be read over plain http; only https is allowed.")
        pinned = await self._addresses.pinned(file.repository)
        await asyncio.to_thread(self._folder.mkdir, parents=True, exist_ok=True, mode=0o700)
        fresh = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=self._folder, prefix="new-"))
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._clone(file, fresh, pinned)
            await asyncio.to_thread(_swap, fresh, self.of(file))
        except TimeoutError as error:
            raise FetchError(
                f"{file.repository} could not be cloned within {self._timeout_s:g} seconds.",
                url=file.url,
            ) from error
        finally:
            await asyncio.to_thread(shutil.rmtree, fresh, ignore_errors=True)
        return self.of(file)

    async def _clone(self, file: GitFile, folder: Path, pinned: str) -> None:
        git = [f"--git-dir={folder / '.git'}", f"--work-tree={folder}"]
        await self._run(file, folder, ["init", "--quiet", "--template=", str(folder)], pinned)
        fetch = [*git, "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules"]
        await self._run(file, folder, [*fetch, "--", file.repository, file.ref], pinned)
        await self._run(
            file, folder, [*git, "checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"], pinned
        )

    async def _run(
        self, file: GitFile, folder: Path, arguments: Sequence[str], pinned: str
    ) -> None:
        settings = {**_SETTINGS, f"protocol.{file.scheme}.allow": "always"}
        settings["http.curloptResolve"] = pinned
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        program = await asyncio.to_thread(shutil.which, "git")
        try:
            process = await asyncio.create_subprocess_exec(
                program or "git",
                *options,
                *arguments,
                cwd=folder,
                env=_environment(folder),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise SourceUnavailableError(
                "git is not installed.", url=file.url, hint="Install git, and try again."
            ) from error
        try:
            _, said = await self._watched(process, file, folder)
        finally:
            if process.returncode is None:
                _kill(process.pid)
                await process.wait()
        if process.returncode:
            raise _failure(file, said.decode("utf-8", errors="replace"))

    async def _watched(
        self, process: asyncio.subprocess.Process, file: GitFile, folder: Path
    ) -> tuple[bytes, bytes]:
        """Wait for the end, and raise when the clone grows too large."""
        done = asyncio.create_task(process.communicate())
        try:
            while True:
                await asyncio.wait([done], timeout=_WATCHED_S)
                size = await asyncio.to_thread(_size, folder)
                if size > self._max_bytes:
                    raise FetchError(
                        f"{file.repository} has more than {self._max_bytes:,} bytes, the most that"
                        " is cloned.",
                        url=file.url,
                    )
                if done.done():
                    return done.result()
        finally:
            if not done.done():
                _kill(process.pid)
                await asyncio.wait([done])


def _environment(home: Path) -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_ASKPASS": "true",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _kill(pid: int) -> None:
    # git asks by a helper, which would go on without it.
    try:
        os.killpg(pid, 9)
    except ProcessLookupError:
        return


def _size(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118 - many files
            except OSError:
                continue
    return total


def _swap(fresh: Path, place: Path) -> None:
    if place.exists():
        shutil.rmtree(place)
    fresh.rename(place)


def _failure(file: GitFile, said: str) -> FetchError:
    text = " ".join(said.split())
    missing = ("not found", "couldn't find remote ref", "could not read Username", "not our ref")
    if any(each in text for each in missing):
        return PageGoneError(
            f"{file.repository} has no {file.ref!r}, or there is no such public repository.",
            url=file.url,
        )
    return FetchError(f"{file.repository} could not be cloned: {text[:_SAID_CHARS]}", url=file.url)

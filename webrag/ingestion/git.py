"""Files of cloned repositories as pages: nobody vouches for them, and nothing in them is run."""

import asyncio
import hashlib
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from webrag.concurrency import settled
from webrag.errors import (
    FetchError,
    InputError,
    PageGoneError,
    RefusedAddressError,
    SourceUnavailableError,
)
from webrag.ingestion.addresses import GitFile, file_url, parse_git
from webrag.ingestion.fetch_context import note
from webrag.ingestion.files.folder import FilesBelow, list_files
from webrag.ingestion.files.source import FileAccess, FileSource
from webrag.ingestion.models import FetchedPage, NotModified, Validators

if TYPE_CHECKING:
    from webrag.ingestion.http.guard import AddressCheck

_T = TypeVar("_T")

_SAID_CHARS: Final = 300
_SAID_BYTES: Final = 10_000
_MAX_REFS: Final = 100_000
# Longer paths cannot be written: 4,096 bytes, of which git writes each as up to four.
_LINE_BYTES: Final = 20_000
_WATCHED_S: Final = 0.2
_LEFT_S: Final = 3600.0  # nobody clones for so long
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# Files are written byte for byte: attributes can make them a dozen times as long.
_ATTRIBUTES: Final = "* -text -eol -ident -filter -working-tree-encoding\n"
_TOO_LONG_SIGNAL: Final = 25  # SIGXFSZ, which Windows does not know
_TOO_LONG: Final = re.compile(rf"died of signal {_TOO_LONG_SIGNAL}\b|File too large")
_NO_MEMORY: Final = re.compile(r"(?i)out of memory|cannot allocate memory|mmap failed")
_MISSING: Final = re.compile(
    "not found|couldn't find remote ref|could not read Username|not our ref"
)
# In the order in which git itself looks for what a short name stands for.
_FULL_NAMES: Final = ("{}", "refs/{}", "refs/tags/{}", "refs/heads/{}", "refs/remotes/{}")
_SETTINGS: Final = Path(__file__).with_name("clone.gitconfig")


class _Held(NamedTuple):
    """A clone that is there, and the seconds since its host confirmed it."""

    commit: str
    age_s: float


class GitClones:
    """Keeps one shallow clone of each repository and ref that was asked for, below a folder.

    Neither the user's nor the system's configuration of git counts, nor its credentials, proxies
    and hooks; filters, submodules and LFS are left alone. The host's addresses are checked as for
    pages, and git is bound to those. Allowed hosts may be asked although private, and by plain
    http. A clone is checked with its host from the age `keep_s` on, None for never. Limits are of
    one clone, its history and folders included, `max_memory` of one process of git.
    """

    def __init__(
        self,
        folder: Path,
        *,
        allowed_hosts: Iterable[str] = (),
        keep_s: float | None = 0.0,
        max_bytes: int = 300_000_000,
        max_files: int = 100_000,
        max_memory: int = 1_000_000_000,
        timeout_s: float = 180.0,
    ) -> None:
        self.folder = folder
        self._allowed = frozenset(allowed_hosts)
        self._keep_s = keep_s
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._max_memory = max_memory
        self._timeout_s = timeout_s
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    @cached_property
    def _addresses(self) -> "AddressCheck":
        # An HTTP client comes with it, which commands that clone nothing do without.
        from webrag.ingestion.http.guard import AddressCheck

        return AddressCheck(self._allowed)

    def of(self, file: GitFile) -> Path:
        """Give the folder of the clone that holds a file, once there is one."""
        name = hashlib.sha256(f"{file.repository}@{file.ref}".encode()).hexdigest()[:32]
        return self.folder / name

    def lock(self, file: GitFile) -> asyncio.Lock:
        """Give the lock under which the clone that holds a file is checked or replaced."""
        return self._locks.setdefault(self.of(file), asyncio.Lock())

    async def commit(self, file: GitFile) -> str | None:
        """The commit of the clone that holds a file; None when there is no clone."""
        held = await asyncio.to_thread(_held, self.of(file))
        return None if held is None else held.commit

    async def refresh(self, file: GitFile, *, forced: bool = False) -> Path:
        """Make sure that the repository of a file is cloned, as its host has it now.

        A clone that the host confirmed less than `keep_s` ago is taken as it is, unless `forced`,
        as is one of a commit that was named itself. Of an older one the host is asked for the
        commit, and only another commit is cloned in its place. When the host cannot be asked, the
        older clone is used, and the caller is told so, unless `forced`.

        Raises:
            InputError: Plain http, to a host that is not allowed by its name.
            RefusedAddressError: The host's address is private, or its port unusual.
            PageGoneError: The host has no such repository or ref.
            FetchError: It is too large, took too long, or failed; the older clone stays.
        """
        if file.scheme == "http" and not self._allowed & {file.host, file.host.partition(":")[0]}:
            raise InputError(f"{file.url} would be read over plain http; only https is allowed.")
        place = self.of(file)
        async with self.lock(file):
            held = await asyncio.to_thread(_held, place)
            keep_s = math.inf if self._keep_s is None else self._keep_s
            is_current = held and (held.commit == file.ref or (held.age_s < keep_s and not forced))
            if not is_current:
                try:
                    await self._renewed(file, held)
                except (PageGoneError, RefusedAddressError):
                    raise
                except FetchError as error:
                    if held is None or forced:
                        raise
                    note(f"{error} The clone from before is used.")
        return place

    async def _renewed(self, file: GitFile, held: _Held | None) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                pinned = await self._addresses.pinned(file.repository)
                if held is not None and await self._commit_at_host(file, pinned) == held.commit:
                    await asyncio.to_thread(os.utime, self.of(file) / ".git" / "FETCH_HEAD")
                    return
                async with self._scratch() as fresh:
                    await self._clone(file, fresh, pinned)
                    await asyncio.to_thread(_swap, fresh, self.of(file))
        except OSError as error:
            late = f" within {self._timeout_s:g} seconds"
            why = late if isinstance(error, TimeoutError) else f": {error.strerror or error}"
            message = f"{file.repository} could not be cloned{why}."
            raise FetchError(message, url=file.url) from error

    @asynccontextmanager
    async def _scratch(self) -> AsyncIterator[Path]:
        await asyncio.to_thread(self.folder.mkdir, parents=True, exist_ok=True, mode=0o700)
        await asyncio.to_thread(_sweep, self.folder)
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=self.folder, prefix="new-"))
        try:
            yield folder
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _commit_at_host(self, file: GitFile, pinned: str) -> str | None:
        def commit(output: IO[bytes]) -> str | None:
            return listed_commit(_lines(file, output, _MAX_REFS, "refs"), file.ref)

        asked = ["ls-remote", "--quiet", "--", file.repository, file.ref, f"{file.ref}^{{}}"]
        async with self._scratch() as folder:
            return await self._run(file, folder, pinned, asked, commit)

    async def _clone(self, file: GitFile, folder: Path, pinned: str) -> None:
        own = folder / ".git"
        git = [f"--git-dir={own}", f"--work-tree={folder}"]
        run = partial(self._run, file, folder, pinned)
        await run(["init", "--quiet", "--template=", str(folder)], _silent)
        attributes = own / "info" / "attributes"
        await asyncio.to_thread(attributes.parent.mkdir, exist_ok=True)
        await asyncio.to_thread(attributes.write_text, _ATTRIBUTES, encoding="ascii")
        fetch = [*git, "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules"]
        await run([*fetch, "--", file.repository, file.ref], _silent)
        left = self._max_bytes - await asyncio.to_thread(_size, own)

        def check(output: IO[bytes]) -> None:
            lines = _lines(file, output, self._max_files, "files and folders")
            sizes = (line.split(maxsplit=4)[3] for line in lines)
            if sum(int(size) for size in sizes if size != "-") > left:
                raise self._too_large(file)

        await run([*git, "ls-tree", "-r", "-t", "--long", "FETCH_HEAD"], check)
        await run([*git, "checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"], _silent)

    async def _run(
        self,
        file: GitFile,
        folder: Path,
        pinned: str,
        arguments: Sequence[str],
        read: Callable[[IO[bytes]], _T],
    ) -> _T:
        allow, resolve = f"protocol.{file.scheme}.allow=always", f"http.curloptResolve={pinned}"
        program = await asyncio.to_thread(shutil.which, "git")
        if program is None:
            hint = "Install git, and try again."
            raise SourceUnavailableError("git is not installed.", url=file.url, hint=hint)
        limits = {"memory": self._max_memory, "file_bytes": self._max_bytes}
        await asyncio.to_thread(_SETTINGS.stat)  # git would do without it, and say nothing
        # By -c they outrank every file, and git before 2.32 knows them too.
        options = ("-c", f"include.path={_SETTINGS}", "-c", allow, "-c", resolve)
        command = [program, *options, *arguments]
        command = _under_limits(command, **limits, seconds=int(self._timeout_s) + 1)
        with await asyncio.to_thread(lambda: tempfile.TemporaryFile(dir=self.folder)) as said:
            # Not by asyncio, whose selecting loops start no processes on Windows.
            process = subprocess.Popen(  # noqa: ASYNC220, S603 - as quick as asyncio's
                command,
                cwd=folder,
                env=_environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,
            )
            result = await self._watched(process, file, folder, read)
            if process.returncode:
                raise self._failure(file, process.returncode, await asyncio.to_thread(_end, said))
            return result

    async def _watched(
        self,
        process: subprocess.Popen[bytes],
        file: GitFile,
        folder: Path,
        read: Callable[[IO[bytes]], _T],
    ) -> _T:
        """Wait for the end, and raise when the clone grows too large; nothing is left running."""
        done = asyncio.create_task(asyncio.to_thread(_result, process, read))
        try:
            while not done.done():
                await asyncio.wait([done], timeout=_WATCHED_S)
                if await asyncio.to_thread(_size, folder / ".git") > self._max_bytes:
                    raise self._too_large(file)
            return done.result()
        finally:
            # git asks by a helper, which would go on without it.
            _end_group(process)
            await settled([done])

    def _too_large(self, file: GitFile) -> FetchError:
        most = f"more than {self._max_bytes:,} bytes, the most that is cloned"
        return FetchError(f"{file.repository} has {most}.", url=file.url)

    def _failure(self, file: GitFile, status: int, said: str) -> FetchError:
        if status == -_TOO_LONG_SIGNAL or _TOO_LONG.search(said):
            return self._too_large(file)
        text = " ".join((said or f"git ended with status {status}.").split())
        if _NO_MEMORY.search(text):
            text = f"git would need more than {self._max_memory:,} bytes of memory."
        elif _MISSING.search(text):
            text = f"{file.repository} has no {file.ref!r}, or there is no such public repository."
            return PageGoneError(text, url=file.url)
        text = text[:_SAID_CHARS]
        return FetchError(f"{file.repository} could not be cloned: {text}", url=file.url)


def _under_limits(command: list[str], *, memory: int, file_bytes: int, seconds: int) -> list[str]:
    """A command, by its absolute path, with limits for it and each process it starts.

    They are set by a shell that then becomes the program: code of ours between fork and exec might
    wait for a lock that another thread held. Windows has no such limits, macOS none of memory.
    """
    if sys.platform == "win32":
        return command
    limits = {"c": 0, "v": memory // 1024, "f": -(-file_bytes // 512), "t": seconds}
    lower = "".join(f"ulimit -{name} {value} 2>/dev/null; " for name, value in limits.items())
    return ["/bin/sh", "-c", f'{lower}exec "$@"', "sh", *command]


def _end_group(leader: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        leader.kill()
        return
    with suppress(ProcessLookupError, PermissionError):  # all of them have ended
        os.killpg(leader.pid, signal.SIGKILL)


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


def _result(process: subprocess.Popen[bytes], read: Callable[[IO[bytes]], _T]) -> _T:
    assert process.stdout is not None
    try:
        with process.stdout as output:
            return read(output)
    except FetchError:
        _end_group(process)
        raise
    finally:
        process.wait()


def _silent(output: IO[bytes]) -> None:
    output.read()


def _end(said: IO[bytes]) -> str:
    said.seek(max(0, said.seek(0, os.SEEK_END) - _SAID_BYTES))
    return said.read().decode("utf-8", errors="replace")


def _lines(file: GitFile, output: IO[bytes], most: int, what: str) -> Iterator[str]:
    """Yield the lines of a list; FetchError where there are too many, or one is too long."""
    for count, line in enumerate(iter(partial(output.readline, _LINE_BYTES), b"")):
        if count == most or len(line) == _LINE_BYTES:
            long = f"{what} with names of more than {_LINE_BYTES:,} bytes"
            found = f"more than {most:,} {what}" if count == most else long
            said = f"{file.repository} has {found}, the most that is cloned."
            raise FetchError(said, url=file.url)
        if line.endswith(b"\n"):  # or it ended in the middle, which its status tells
            yield line.decode("utf-8", errors="replace")[:-1]


def _size(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118 - many files
    return total


def _held(place: Path) -> _Held | None:
    try:
        commit = (place / ".git" / "HEAD").read_text(encoding="utf-8", errors="replace").strip()
        asked_at = (place / ".git" / "FETCH_HEAD").stat().st_mtime
    except OSError:
        return None
    return _Held(commit, time.time() - asked_at) if _COMMIT.fullmatch(commit) else None


def _sweep(folder: Path) -> None:
    for path in (*folder.glob("new-*"), *folder.glob("old-*")):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _LEFT_S:
                shutil.rmtree(path, ignore_errors=True)


def _swap(fresh: Path, place: Path) -> None:
    """Put a clone in the place of an older one, which stays when that fails."""
    aside = place.with_name(f"old-{uuid.uuid4().hex}")
    with suppress(FileNotFoundError):
        place.rename(aside)
    try:
        fresh.rename(place)
    except OSError:
        with suppress(OSError):
            aside.rename(place)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def listed_commit(listing: Iterable[str], ref: str) -> str | None:
    """The commit that a branch or tag stands for in the lines of `git ls-remote`; None for none."""
    names = {form.format(ref) + peeled for form in _FULL_NAMES for peeled in ("", "^{}")}
    commits: dict[str, str] = {}
    for line in listing:
        commit, _, name = line.partition("\t")
        if name in names and _COMMIT.fullmatch(commit):
            commits[name] = commit
    for form in _FULL_NAMES:
        name = form.format(ref)
        # Of a tag with a message, the commit that it is put on.
        if found := commits.get(f"{name}^{{}}") or commits.get(name):
            return found
    return None


class GitSource:
    """Reads what `GitClones` holds, within the limits of `FileSource`; `files_of` asks the host.

    A page's `last_modified` is the commit it was read at, which is not read again.
    """

    name = "git"

    def __init__(self, clones: GitClones, *, max_bytes: int, max_document_bytes: int) -> None:
        self._clones = clones
        self._max_bytes = max_bytes
        self._files = FileSource(
            FileAccess([clones.folder]),
            max_bytes=max_bytes,
            max_document_bytes=max_document_bytes,
        )

    async def files_of(self, address: str, *, refresh: bool = False) -> FilesBelow:
        """Make sure that a repository is cloned, and give the files worth reading.

        The address is of the repository, a folder in it, or one of its files; with `refresh` its
        host is asked whatever the clone's age.

        Raises:
            InputError: It is no address of a repository.
            FetchError: It could not be cloned.
        """
        asked = parse_git(address)
        clone = await self._clones.refresh(asked, forced=refresh)
        return await asyncio.to_thread(_listed, asked, clone, self._max_bytes)

    async def fetch(
        self, url: str, *, validators: Validators | None = None, fresh: bool = False
    ) -> FetchedPage | NotModified:
        """Read one file of the clone that is there, as `PageSource` says."""
        del fresh
        asked = parse_git(url)
        commit = await self._clones.commit(asked)
        if validators is not None and validators.last_modified == commit is not None:
            return NotModified(url=url, fetched_at=datetime.now(UTC))
        commit, found = await self._read(asked)
        version = "" if found.manifest is None else found.manifest.version
        read = found.text.encode() + found.body + version.encode()
        etag = hashlib.sha256(read).hexdigest()[:32]
        if validators is not None and validators.etag == etag:
            return NotModified(url=url, fetched_at=found.fetched_at)
        places = {"requested_url": asked.url, "url": asked.url, "source": self.name}
        return found.model_copy(update={**places, "etag": etag, "last_modified": commit})

    async def _read(self, asked: GitFile) -> tuple[str, FetchedPage]:
        with suppress(PageGoneError):
            commit = await self._clones.commit(asked)
            if commit is not None:
                found = await self._page(asked)
                if commit == await self._clones.commit(asked):
                    return commit, found
        # Or another clone took the place of this one, and left none for a moment.
        async with self._clones.lock(asked):
            commit = await self._clones.commit(asked)
            if commit is None:
                hint = f"Ingest git+{asked.repository}@{asked.ref}."
                said = f"{asked.repository} is not cloned here."
                raise FetchError(said, url=asked.url, hint=hint)
            return commit, await self._page(asked)

    async def _page(self, asked: GitFile) -> FetchedPage:
        try:
            found = await self._files.fetch(file_url(self._clones.of(asked) / asked.name))
        except (PageGoneError, RefusedAddressError) as error:
            raise _not_there(asked) from error
        if asked.name.endswith("/"):
            raise _not_there(asked)
        assert isinstance(found, FetchedPage)
        return found

    async def aclose(self) -> None:
        """Do nothing: clones stay for the next time."""


def _listed(asked: GitFile, clone: Path, max_bytes: int) -> FilesBelow:
    clone = clone.resolve()
    named = clone / asked.name
    if named.is_file() and not named.is_symlink():
        return FilesBelow((_within(asked, clone, named),))
    if not named.is_dir():
        return FilesBelow((), why_none=str(_not_there(asked)))
    address = partial(_within, asked, clone)
    return list_files(named, max_bytes=max_bytes, where=f"in {asked.url}", address=address)


def _within(asked: GitFile, clone: Path, path: Path) -> str:
    return replace(asked, name=path.relative_to(clone).as_posix()).url


def _not_there(asked: GitFile) -> PageGoneError:
    return PageGoneError(f"{asked.repository} has no {asked.name!r}.", url=asked.url)

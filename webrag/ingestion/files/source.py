"""Files of this machine as pages, following `webrag.ingestion.models.PageSource`."""

import errno
import itertools
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from webrag.concurrency import Threads
from webrag.errors import FetchError, PageGoneError, RefusedAddressError, UnusablePageError
from webrag.ingestion.addresses import file_path, file_url
from webrag.ingestion.formats.kinds import FileKind, kind_of_name
from webrag.ingestion.http.decode import UnreadableContent, decode, page_kind
from webrag.ingestion.models import FetchedPage, NotModified, Validators
from webrag.ingestion.versions import MANIFESTS, MAX_MANIFEST_BYTES, Manifest, read_manifest

_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = getattr(os, "O_DIRECTORY", 0)
# Those on the way may be closed to listing, as the folder above a home often is.
_ON_THE_WAY = getattr(os, "O_PATH", _OPEN) | getattr(os, "O_CLOEXEC", 0) | _FOLDER
_HAS_DESCRIPTORS = bool(_NO_LINK) and os.open in os.supports_dir_fd


class FileAccess:
    """The folders and files that may be read: some always, others once the user names them.

    Symbolic links are resolved first, and the way is then walked without following any, so that
    one put there in between leads nowhere. Naming a path makes it readable at a terminal alone.
    """

    def __init__(self, allowed: Iterable[Path] = (), *, takes_names: bool = True) -> None:
        self._roots = dict.fromkeys(each.resolve() for each in allowed)
        self.takes_names = takes_names

    def name(self, path: Path) -> None:
        """Note that the user named a file or folder: it may be read from now on."""
        if self.takes_names:
            self._roots[path.resolve()] = None

    def allows(self, path: Path) -> bool:
        """Tell paths, symbolic links resolved, that are below what may be read."""
        return any(path == root or root in path.parents for root in self._roots)

    def resolve(self, url: str) -> Path:
        """The file or folder an address stands for, or RefusedAddressError."""
        path = file_path(url)
        # Not even asked about when it is elsewhere: that would tell what there is.
        named = Path(os.path.normpath(path))
        if not (self.allows(named) or self.takes_names):
            raise self._refused(url)
        try:
            found = path.resolve()
        except (OSError, RuntimeError) as error:
            raise self._refused(url) from error
        if not self.allows(found):
            raise self._refused(url)
        return found

    def read(self, url: str, path: Path, *, at_most: int) -> tuple[bytes, os.stat_result]:
        """The bytes of a file that `resolve` gave, and what the system says of it.

        Raises:
            PageGoneError: There is no such file.
            RefusedAddressError: A symbolic link was put in its way, or its rights forbid it.
            UnusablePageError: It is no file, or longer than `at_most` bytes.
        """
        try:
            with os.fdopen(_opened(path), "rb") as file:
                facts = os.fstat(file.fileno())
                if not stat.S_ISREG(facts.st_mode):
                    raise UnusablePageError(f"{path} is not a file.", url=url, kind="not_text")
                if facts.st_size > at_most:
                    said = f"{path} has {facts.st_size:,} bytes; at most {at_most:,} are read."
                    raise UnusablePageError(said, url=url, kind="too_large")
                return file.read(at_most + 1), facts
        except (FileNotFoundError, NotADirectoryError) as error:
            raise PageGoneError(f"There is no file {path}.", url=url) from error
        except OSError as error:
            said = f"{path} cannot be read ({error.strerror or type(error).__name__})."
            raise RefusedAddressError(said, url=url) from error

    def _refused(self, url: str) -> RefusedAddressError:
        if self.takes_names:
            said = f"{url} is refused: it is not below a file or folder that was named."
            return RefusedAddressError(said, url=url)
        said = f"{url} is refused: here only files below the folders of WEBRAG_ALLOW_DIRS are read."
        hint = "Whoever runs this server can add its folder to WEBRAG_ALLOW_DIRS."
        return RefusedAddressError(said, url=url, hint=hint)


@contextmanager
def opened_folder(path: Path, above: int | None = None) -> Iterator[int | None]:
    """Keep a folder open for what is opened in it, no link followed on the way.

    Gives its descriptor, None where the system opens no folders and paths have to do, or raises
    OSError. `above` is the folder that it lies in, as this gave it; None to walk the whole path.
    """
    if not _HAS_DESCRIPTORS:
        yield None
        return
    folder = _opened(path, _FOLDER, above)
    try:
        yield folder
    finally:
        os.close(folder)


def opened_file(path: Path, above: int | None) -> int:
    """A regular file of an open folder, as a descriptor; OSError for links, pipes and none."""
    file = _opened(path, 0, above)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise FileNotFoundError(errno.ENOENT, "no regular file", str(path))


def _opened(path: Path, flags: int = 0, above: int | None = None) -> int:
    if not _HAS_DESCRIPTORS:
        return os.open(path, _OPEN | flags)
    if above is not None:
        return os.open(path.name, _OPEN | _NO_LINK | flags, dir_fd=above)
    with ExitStack() as stack:
        folder = os.open(path.anchor, _ON_THE_WAY)
        stack.callback(os.close, folder)
        for part in path.parts[1:-1]:
            folder = os.open(part, _ON_THE_WAY | _NO_LINK, dir_fd=folder)
            stack.callback(os.close, folder)
        return os.open(path.name or ".", _OPEN | _NO_LINK | flags, dir_fd=folder)


# A network drive that does not answer keeps its thread.
_DISK = Threads("webrag-files", 4)
_REMEMBERED_MANIFESTS = 256
_MOST_FOLDERS = 8
_BYTES_KINDS = frozenset({"pdf", "mail", "office"})


class FileSource:
    """Reads files that the user named, or that lie below a folder that may be read.

    A file that is as it was when it was stored, by its size and the time it was changed, is not
    read again. Limits are bytes: of a file of text, and of a PDF, an office document or a book.
    """

    name = "files"

    def __init__(
        self,
        access: FileAccess,
        *,
        max_bytes: int = 10_000_000,
        max_document_bytes: int = 20_000_000,
    ) -> None:
        self._access = access
        self._max_bytes = max_bytes
        self._max_document_bytes = max_document_bytes
        # Every file below a package asks for the package's.
        self._read_once = lru_cache(maxsize=_REMEMBERED_MANIFESTS)(self._read_manifest)

    async def fetch(
        self, url: str, *, validators: Validators | None = None, fresh: bool = False
    ) -> FetchedPage | NotModified:
        """Read one file, as `PageSource` says; nothing keeps copies of files."""
        del fresh
        return await _DISK.run(self._read, url, validators)

    async def aclose(self) -> None:
        """Do nothing: no file stays open."""

    def _read(self, url: str, validators: Validators | None) -> FetchedPage | NotModified:
        now = datetime.now(UTC)
        path = self._access.resolve(url)
        if path.is_dir():
            said = f"{path} is a folder; `ingest` reads the files below it."
            raise UnusablePageError(said, url=url, kind="not_text")
        named = kind_of_name(path.name)
        limit = self._max_document_bytes if named in _BYTES_KINDS else self._max_bytes
        manifest = self._manifest(path)
        with suppress(OSError):
            if validators is not None and validators.etag == _etag(path.stat(), manifest):
                return NotModified(url=url, fetched_at=now)
        body, facts = self._access.read(url, path, at_most=limit)
        kind = named if named in _BYTES_KINDS else _text_kind(url, path, body, named)
        is_text = kind not in _BYTES_KINDS
        return FetchedPage(
            requested_url=url,
            url=file_url(path),
            kind=kind,
            text=decode(body) if is_text else "",
            body=b"" if is_text else body,
            etag=_etag(facts, manifest),
            fetched_at=now,
            source=self.name,
            manifest=manifest,
        )

    def _manifest(self, path: Path) -> Manifest | None:
        folders = itertools.takewhile(self._access.allows, path.parents[:_MOST_FOLDERS])
        files = (folder / name for folder in folders for name in MANIFESTS)
        for found in filter(Path.is_file, files):
            with suppress(FetchError, OSError):
                target = self._access.resolve(file_url(found))
                manifest = self._read_once(found, target, _etag(target.stat(), None))
                if manifest is not None:
                    return manifest
        return None

    def _read_manifest(self, named: Path, target: Path, _etag: str) -> Manifest | None:
        """One version of a package's metadata; `target` is its file, links resolved."""
        body, _ = self._access.read(file_url(named), target, at_most=MAX_MANIFEST_BYTES)
        return read_manifest(named.name, decode(body), file_url(named.parent).rstrip("/"))


def _text_kind(url: str, path: Path, body: bytes, named: FileKind | None) -> FileKind:
    try:
        seen = page_kind("", body, path.name)
    except UnreadableContent as error:
        said = f"{path} holds no text but {error}."
        raise UnusablePageError(said, url=url, kind="not_text") from error
    return seen if seen in _BYTES_KINDS else named or seen


def _etag(facts: os.stat_result, manifest: Manifest | None) -> str:
    """A file is another one when its package has got another version."""
    read = f"{facts.st_mtime_ns:x}-{facts.st_size:x}"
    return read if manifest is None else f"{read}-{manifest.version}"

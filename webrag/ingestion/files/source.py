"""Files of this machine as pages, following `webrag.ingestion.models.PageSource`."""

import itertools
import os
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from webrag.concurrency import Threads
from webrag.errors import FetchError, UnusablePageError
from webrag.ingestion.addresses import file_url
from webrag.ingestion.files.access import FileAccess
from webrag.ingestion.formats.kinds import FileKind, kind_of_name
from webrag.ingestion.http.decode import UnreadableContent, decode, page_kind
from webrag.ingestion.models import FetchedPage, NotModified, Validators
from webrag.ingestion.versions import MANIFESTS, MAX_MANIFEST_BYTES, Manifest, read_manifest

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
    return "pdf" if seen == "pdf" else named or seen


def _etag(facts: os.stat_result, manifest: Manifest | None) -> str:
    """A file is another one when its package has got another version."""
    read = f"{facts.st_mtime_ns:x}-{facts.st_size:x}"
    return read if manifest is None else f"{read}-{manifest.version}"

"""Files of cloned repositories as pages, following `webrag.ingestion.models.PageSource`."""

import asyncio
import hashlib
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from webrag.errors import FetchError, PageGoneError, RefusedAddressError
from webrag.ingestion.addresses import GitFile, file_url, parse_git
from webrag.ingestion.files.access import FileAccess
from webrag.ingestion.files.folder import list_files
from webrag.ingestion.files.naming import FilesBelow
from webrag.ingestion.files.source import FileSource
from webrag.ingestion.git.clone import GitClones
from webrag.ingestion.models import FetchedPage, NotModified, Validators


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
    listing = list_files(named, max_bytes=max_bytes)
    urls = tuple(_within(asked, clone, path) for path in listing.files)
    return FilesBelow(urls, listing.left_out, listing.why_none(f"in {asked.url}"))


def _within(asked: GitFile, clone: Path, path: Path) -> str:
    return replace(asked, name=path.relative_to(clone).as_posix()).url


def _not_there(asked: GitFile) -> PageGoneError:
    return PageGoneError(f"{asked.repository} has no {asked.name!r}.", url=asked.url)

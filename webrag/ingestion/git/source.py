"""Files of cloned repositories as pages, following `webrag.ingestion.models.PageSource`."""

import hashlib
from pathlib import Path

from webrag.errors import FetchError, PageGoneError, RefusedAddressError
from webrag.ingestion.addresses import file_url
from webrag.ingestion.files.access import FileAccess
from webrag.ingestion.files.folder import FolderListing, list_files
from webrag.ingestion.files.source import FileSource
from webrag.ingestion.git.address import GitFile, parse_git
from webrag.ingestion.git.clone import GitClones
from webrag.ingestion.models import FetchedPage, NotModified, Validators

__all__ = ["GitSource"]


class GitSource:
    """Reads what `GitClones` holds; the host is asked only by `files_of`.

    A page's `last_modified` is the commit it was read at.

    Args:
        clones: Where the repositories are.
        max_bytes: Of a file of text.
        max_document_bytes: Of a PDF, an office document or a book.
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

    async def files_of(self, address: str) -> tuple[list[str], FolderListing]:
        """Clone a repository as it is now, and give the addresses of the files worth reading.

        Raises:
            InputError: It is no address of a repository.
            FetchError: It could not be cloned, or has no such folder.
        """
        asked = parse_git(address)
        clone = await self._clones.refresh(asked)
        folder = clone / asked.name
        if not folder.is_dir():
            if folder.is_file():
                return [asked.url], FolderListing((folder,))
            raise PageGoneError(f"{asked.repository} has no {asked.name!r}.", url=asked.url)
        listing = list_files(folder, max_bytes=self._max_bytes)
        return [_within(asked, clone, path).url for path in listing.files], listing

    async def fetch(
        self, url: str, *, validators: Validators | None = None, fresh: bool = False
    ) -> FetchedPage | NotModified:
        """Read one file of the clone that is there.

        Raises:
            PageGoneError: The repository has no such file.
            FetchError: It was never cloned here.
            UnusablePageError: The file is too large, or holds no text.
        """
        asked = parse_git(url)
        clone = self._clones.of(asked)
        if not clone.is_dir():
            raise FetchError(
                f"{asked.repository} is not cloned here.",
                url=url,
                hint=f"Ingest {asked.repository}.",
            )
        try:
            found = await self._files.fetch(file_url(clone / asked.name), fresh=fresh)
        except RefusedAddressError as error:
            raise PageGoneError(f"{asked.repository} has no {asked.name!r}.", url=url) from error
        assert isinstance(found, FetchedPage)
        version = "" if found.manifest is None else found.manifest.version
        read = found.text.encode() + found.body + version.encode()
        etag = hashlib.sha256(read).hexdigest()[:32]
        if validators is not None and validators.etag == etag:
            return NotModified(url=url, fetched_at=found.fetched_at)
        commit = (clone / ".git" / "HEAD").read_text(encoding="ascii").strip()
        return found.model_copy(
            update={
                "requested_url": asked.url,
                "url": asked.url,
                "etag": etag,
                "last_modified": commit,
                "source": self.name,
            }
        )

    async def aclose(self) -> None:
        """Do nothing: clones stay for the next time."""


def _within(asked: GitFile, clone: Path, path: Path) -> GitFile:
    name = path.relative_to(clone).as_posix()
    return GitFile(asked.scheme, asked.host, asked.path, asked.ref, name)

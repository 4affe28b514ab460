"""Opens the files of this machine that may be read; nothing else opens one."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from webrag.errors import PageGoneError, RefusedAddressError, UnusablePageError
from webrag.ingestion.addresses import file_path

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

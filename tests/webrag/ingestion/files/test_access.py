import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from webrag.errors import PageGoneError, RefusedAddressError, UnusablePageError
from webrag.ingestion.addresses import file_url
from webrag.ingestion.files.folder import list_files
from webrag.ingestion.files.source import FileAccess


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with a page, beside a file with a secret."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "page.md").write_text("A page.")
    (tmp_path / "secret.txt").write_text("A secret.")
    return folder


def test_what_the_user_named_is_read_with_all_below_it(docs: Path) -> None:
    access = FileAccess()
    access.name(docs)

    url = file_url(docs / "page.md")

    assert access.read(url, access.resolve(url), at_most=100)[0] == b"A page."


@pytest.mark.parametrize("address", ["secret.txt", "docs/../secret.txt", "docs2/page.md"])
def test_what_lies_outside_is_refused(docs: Path, address: str) -> None:
    access = FileAccess([docs])

    with pytest.raises(RefusedAddressError):
        access.resolve(f"file://{docs.parent}/{address}")


def test_naming_allows_nothing_where_names_are_not_taken(docs: Path) -> None:
    access = FileAccess(takes_names=False)
    access.name(docs)

    with pytest.raises(RefusedAddressError, match="WEBRAG_ALLOW_DIRS"):
        access.resolve(file_url(docs / "page.md"))


def test_a_link_that_leads_outside_is_refused(docs: Path) -> None:
    (docs / "link.txt").symlink_to(docs.parent / "secret.txt")

    with pytest.raises(RefusedAddressError):
        FileAccess([docs]).resolve(file_url(docs / "link.txt"))


def test_refusal_is_the_same_whether_the_file_exists(docs: Path) -> None:
    access = FileAccess([docs], takes_names=False)

    said = []
    for name in ("secret.txt", "missing.txt"):
        with pytest.raises(RefusedAddressError) as refused:
            access.resolve(f"file://{docs.parent}/{name}")
        said.append(str(refused.value).replace(name, "NAME"))

    assert said[0] == said[1]


def test_a_folder_exchanged_for_a_link_after_it_was_judged_leads_nowhere(docs: Path) -> None:
    access = FileAccess([docs.parent / "open"])
    folder = docs.parent / "open" / "inner"
    folder.mkdir(parents=True)
    (folder / "secret.txt").write_text("Harmless.")
    url = file_url(folder / "secret.txt")
    path = access.resolve(url)
    (folder / "secret.txt").unlink()
    folder.rmdir()
    folder.symlink_to(docs.parent)

    with pytest.raises((RefusedAddressError, PageGoneError)):
        access.read(url, path, at_most=100)


def test_a_pipe_is_not_waited_for(docs: Path) -> None:
    os.mkfifo(docs / "pipe.md")
    access = FileAccess([docs])

    with pytest.raises(UnusablePageError, match="is not a file"):
        access.read(file_url(docs / "pipe.md"), docs / "pipe.md", at_most=100)


def test_a_file_above_the_limit_is_named_too_large(docs: Path) -> None:
    with pytest.raises(UnusablePageError, match="at most 3") as refused:
        FileAccess([docs]).read(file_url(docs / "page.md"), docs / "page.md", at_most=3)

    assert refused.value.kind == "too_large"


@pytest.fixture
def unlisted() -> Iterator[Path]:
    """A folder below one that may be passed and not listed, for a user who is not root."""
    user, nobody = os.geteuid(), 65_534
    with TemporaryDirectory() as above:
        docs = Path(above).resolve() / "docs"
        docs.mkdir()
        (docs / "a.md").write_text("hello")
        docs.parent.chmod(0o111)
        os.seteuid(user or nobody)
        try:
            yield docs
        finally:
            os.seteuid(user)
            docs.parent.chmod(0o700)


def test_a_folder_above_may_be_closed_to_listing(unlisted: Path) -> None:
    file = unlisted / "a.md"

    assert list_files(unlisted, max_bytes=100).urls == (file_url(file),)
    assert FileAccess([unlisted]).read(file_url(file), file, at_most=100)[0] == b"hello"

import os
from collections import Counter
from pathlib import Path

import pytest

from webrag.errors import PageGoneError, UnusablePageError
from webrag.ingestion.addresses import file_url
from webrag.ingestion.files.source import FileAccess, FileSource
from webrag.ingestion.models import FetchedPage, NotModified, Validators


async def read(path: Path, etag: str | None = None) -> FetchedPage | NotModified:
    validators = None if etag is None else Validators(etag=etag)
    return await FileSource(FileAccess([path.parent])).fetch(file_url(path), validators=validators)


OPEN_DOCUMENT = b"PK\x03\x04" + bytes(26) + b"mimetypeapplication/vnd.oasis.opendocument.textPK"


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.md", b"# A", "markdown"),
        ("a.mdx", b"# A", "markdown"),
        ("a.html", b"<p>A", "html"),
        ("a.rst", b"A\n=", "rst"),
        ("a.adoc", b"= A", "asciidoc"),
        ("a.ipynb", b"{}", "notebook"),
        ("a.py", b"a = 1", "code"),
        ("Makefile", b"all:", "code"),
        ("LICENSE", b"Free", "text"),
        ("notes.unknown", b"Words", "text"),
        ("a.pdf", b"%PDF-1.4", "pdf"),
        ("renamed.txt", b"%PDF-1.4", "pdf"),
        ("a.odt", b"PK", "office"),
        ("renamed.unknown", OPEN_DOCUMENT, "office"),
    ],
)
async def test_kind_follows_from_name_and_content(
    tmp_path: Path, name: str, content: bytes, kind: str
) -> None:
    (tmp_path / name).write_bytes(content)

    page = await read(tmp_path / name)

    assert isinstance(page, FetchedPage)
    assert page.kind == kind


async def test_binary_content_is_refused_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"\x7fELF\x02\x01\x00\x00\x01\x02" * 20)

    with pytest.raises(UnusablePageError) as refused:
        await read(tmp_path / "a.md")

    assert refused.value.kind == "not_text"


async def test_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A")
    first = await read(tmp_path / "a.md")
    assert isinstance(first, FetchedPage)

    assert isinstance(await read(tmp_path / "a.md", first.etag), NotModified)


async def test_changed_file_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A")
    first = await read(tmp_path / "a.md")
    assert isinstance(first, FetchedPage)
    (tmp_path / "a.md").write_text("B")
    os.utime(tmp_path / "a.md", ns=(1, 1))

    again = await read(tmp_path / "a.md", first.etag)

    assert isinstance(again, FetchedPage)
    assert again.text == "B"


async def test_missing_file_is_gone(tmp_path: Path) -> None:
    with pytest.raises(PageGoneError, match=r"no file .*a\.md"):
        await read(tmp_path / "a.md")


async def test_link_within_the_folder_gives_the_file_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A")
    (tmp_path / "b.md").symlink_to("a.md")

    page = await read(tmp_path / "b.md")

    assert isinstance(page, FetchedPage)
    assert (page.requested_url, page.url) == (
        file_url(tmp_path / "b.md"),
        file_url(tmp_path / "a.md"),
    )


class CountingAccess(FileAccess):
    """Counts how often each file is read."""

    def __init__(self, *allowed: Path) -> None:
        super().__init__(allowed)
        self.reads: Counter[str] = Counter()

    def read(self, url: str, path: Path, *, at_most: int) -> tuple[bytes, os.stat_result]:
        self.reads[path.name] += 1
        return super().read(url, path, at_most=at_most)


async def test_a_package_is_read_once_for_all_files_below_it(tmp_path: Path) -> None:
    access = CountingAccess(tmp_path)
    source = FileSource(access)
    package = tmp_path / "pyproject.toml"
    package.write_text('[project]\nname = "kiln"\nversion = "1.2"')
    files = [tmp_path / f"docs{number % 3}" / f"{number}.md" for number in range(9)]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text("Words")

    manifests = [(await source.fetch(file_url(file))).manifest for file in files]

    assert {each and each.version for each in manifests} == {"1.2"}
    assert access.reads["pyproject.toml"] == 1

    package.write_text('[project]\nname = "kiln"\nversion = "1.10"')
    page = await source.fetch(file_url(files[0]))

    assert page.manifest
    assert page.manifest.version == "1.10"


async def test_a_package_of_endless_text_says_nothing_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"version": "1.2"}' + " " * 200_000)
    (tmp_path / "a.md").write_text("Words")

    page = await read(tmp_path / "a.md")

    assert isinstance(page, FetchedPage)
    assert page.manifest is None

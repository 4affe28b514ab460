"""Versions: read from addresses and packages, ordered as releases are, told apart by library."""

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import grows_as_its_input
from webrag.errors import InputError
from webrag.ingestion.versions import (
    MAX_NAME_CHARS,
    Manifest,
    checked_version,
    edition_of,
    is_version,
    newest_version,
    plain_version,
    read_manifest,
    version_order,
)


@pytest.mark.parametrize(
    ("url", "library", "version"),
    [
        ("https://docs.python.org/3.12/library/os.html", "docs.python.org", "3.12"),
        ("https://docs.python.org/3/library/os.html", "docs.python.org", "3"),
        (
            "https://docs.djangoproject.com/en/5.0/topics/",
            "docs.djangoproject.com/en",
            "5.0",
        ),
        ("https://docs.rs/tokio/1.35.0/tokio/", "docs.rs/tokio", "1.35.0"),
        ("https://scikit-learn.org/1.5/modules/svm.html", "scikit-learn.org", "1.5"),
        ("https://requests.readthedocs.io/en/v2.31.0/", "requests.readthedocs.io/en", "2.31.0"),
        ("https://www.postgresql.org/docs/16/sql.html", "postgresql.org/docs", "16"),
        ("https://angular.test/v17/guide", "angular.test", "17"),
        ("https://laravel.com/docs/10.x/routing", "laravel.com/docs", "10.x"),
        ("https://v2.vuejs.org/guide/", "vuejs.org", "2"),
        ("https://docs.test/release-2.1/a", "docs.test", "2.1"),
        ("https://docs.test/2.0rc1/a", "docs.test", "2.0rc1"),
        ("git+https://host.test/owner/lib.git@v1.2.3/docs/a.md", "host.test/owner/lib", "1.2.3"),
        ("git+https://host.test/owner/lib.git@lib-2.0/a.md", "host.test/owner/lib", "2.0"),
        ("git+https://host.test/owner/lib.git@REL_16_2/a.md", "host.test/owner/lib", "16.2"),
        ("file:///home/u/kiln-3.1/docs/a.md", "file:kiln", "3.1"),
        ("file:///home/u/kiln/3.1/a.md", "file:kiln", "3.1"),
    ],
)
def test_addresses_name_library_and_version(url: str, library: str, version: str) -> None:
    found = edition_of(url)

    assert found is not None
    assert (found.library, found.version) == (library, version)


@pytest.mark.parametrize(
    "url",
    [
        "https://blog.test/2024/05/a-post",
        "https://docs.test/stable/guide",
        "https://docs.test/releases/v1.2.3",
        "https://docs.test/whatsnew/3.12.html",
        "https://docs.test/users/12/profile",
        "git+https://host.test/owner/lib.git@main/docs/a.md",
        "file:///home/u/docs/a.md",
        "document:notes-1",
    ],
)
def test_addresses_without_a_version_name_none(url: str) -> None:
    assert edition_of(url) is None


def test_label_of_an_address_gets_the_number_that_the_page_names() -> None:
    found = edition_of("https://docs.test/en/stable/guide", marked="1.6.1")

    assert found is not None
    assert (found.library, found.root, found.version) == (
        "docs.test/en",
        "docs.test/en/stable",
        "1.6.1",
    )


def test_version_that_was_named_counts_before_all_others() -> None:
    found = edition_of("https://docs.test/1.5/a", marked="1.5.2", given="1.4")

    assert found is not None
    assert (found.version, found.is_given) == ("1.4", True)


def test_address_counts_before_the_marks_of_the_page() -> None:
    found = edition_of("https://docs.test/1.5/a", marked="1.6")

    assert found is not None
    assert found.version == "1.5"


def test_package_names_the_library_of_a_file() -> None:
    manifest = Manifest(name="kiln", version="2.1", folder="file:///home/u/work")

    found = edition_of("file:///home/u/work/docs/a.md", manifest=manifest)

    assert found is not None
    assert (found.library, found.root, found.version) == ("file:kiln", manifest.folder, "2.1")


def test_folder_that_was_named_is_the_library_of_its_files() -> None:
    folder = "file:///home/u/handbook/"

    found = edition_of("file:///home/u/handbook/guide/a.md", given="3", folder=folder)

    assert found is not None
    assert (found.library, found.root) == ("file:handbook", folder)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pyproject.toml", '[project]\nname = "kiln"\nversion = "1.2"', ("kiln", "1.2")),
        ("pyproject.toml", '[tool.poetry]\nname = "kiln"\nversion = "1.2"', ("kiln", "1.2")),
        ("Cargo.toml", '[package]\nname = "kiln"\nversion = "0.3.1"', ("kiln", "0.3.1")),
        ("package.json", '{"name": "@kiln/core", "version": "4.0.0"}', ("@kiln/core", "4.0.0")),
        ("composer.json", '{"name": "kiln/core", "version": "v4.0"}', ("kiln/core", "v4.0")),
        ("pubspec.yaml", 'name: kiln\nversion: "1.0.0+3"\n', ("kiln", "1.0.0+3")),
        ("pyproject.toml", '[project]\nname = "kiln"\ndynamic = ["version"]', None),
        ("package.json", '{"name": "kiln", "version": "workspace:*"}', None),
        ("package.json", "[1]", None),
        ("Cargo.toml", "[package", None),
    ],
)
def test_packages_say_their_version(name: str, text: str, expected: tuple[str, str] | None) -> None:
    found = read_manifest(name, text)

    assert (None if found is None else (found.name, found.version)) == expected


@pytest.mark.parametrize(
    ("begin", "part", "end"),
    [
        ("[", "a.", "a]"),
        ("[", '"a" . ', "a]"),
        ("[", r'"\"".', "a]"),
        ("[", r'"\\".', "a]"),
        ("", "'a'.", "a = 1"),
        ("x = {", "a.", "a = 1}"),
        (r'x = "', r"\"", '"'),
        ("", "a.b.c.d.e.f = 1\n", ""),
        ("", "[[a.b.c.d.e.f]]\n", ""),
        ("x = ", "[", ""),
        ("x = [", "{a = 1},", "]"),
        ("", "a", ""),
        ("", '"', ""),
    ],
)
def test_reading_a_package_grows_as_its_text_does(begin: str, part: str, end: str) -> None:
    def work(size: int) -> None:
        read_manifest("pyproject.toml", begin + part * (size // len(part)) + end)

    assert grows_as_its_input(work, int, 50_000)


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a":' * 40_000, '{"version": 1' + "0" * 5_000 + "}"]
)
def test_a_package_that_cannot_be_read_says_no_version(text: str) -> None:
    assert read_manifest("package.json", text) is None


@pytest.mark.parametrize(
    ("versions", "newest"),
    [
        (["1.9", "1.10"], "1.10"),
        (["1.5", "2.0rc1"], "1.5"),
        (["2.0a1", "2.0rc1"], "2.0rc1"),
        (["1.x", "2.x"], "2.x"),
        (["8u20-b2", "8u3-b9"], "8u20-b2"),
    ],
)
def test_newest_is_the_last_released_version(versions: list[str], newest: str) -> None:
    assert newest_version(versions) == newest
    assert newest_version(reversed(versions)) == newest


@pytest.mark.parametrize(
    ("stored", "asked", "expected"),
    [
        ("1.5", "1.5", True),
        ("1.5.2", "1.5", True),
        ("1.5.2", "1.5.x", True),
        ("1.5.0", "v1.5", True),
        ("1.50", "1.5", False),
        ("1.5", "1.5.2", False),
        ("2.0", "2.0rc1", False),
        ("10.x", "10", True),
        ("8u20-b2", "8U20-B2", True),
    ],
)
def test_release_of_the_version_asked_for_is_that_version(
    stored: str, asked: str, expected: bool
) -> None:
    assert is_version(stored, asked) is expected


@given(st.lists(st.from_regex(r"\A[0-9]{1,3}(\.[0-9]{1,3}){0,3}([a-z]{1,5}[0-9]?)?\Z")))
def test_any_versions_can_be_ordered(versions: list[str]) -> None:
    ordered = sorted(versions, key=version_order)

    versions.reverse()
    assert sorted(versions, key=version_order) == ordered


@pytest.mark.parametrize("text", ["", "latest", "1.2 beta", "a" * 500, "1." * 90])
def test_other_texts_are_no_versions(text: str) -> None:
    assert plain_version(text) is None


def test_what_is_no_version_is_refused_with_an_example() -> None:
    with pytest.raises(InputError, match=r"'newest' cannot be used; .* such as 3\.2"):
        checked_version("newest")


def test_endless_addresses_fit_the_index() -> None:
    found = [edition_of(f"https://docs.test/{'a' * 1_500}{end}/1.5/x") for end in ("b", "c")]

    assert found[0] is not None
    assert found[1] is not None
    assert {len(found[0].library), len(found[0].root)} == {MAX_NAME_CHARS}
    assert found[0].library != found[1].library


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_package_and_address_can_be_stored(name: str, path: str) -> None:
    text = json.dumps({"name": name, "version": "1.0"})
    manifest = read_manifest("package.json", text, "file:///home/u/work")
    found = edition_of(f"file:///home/u/work/{quote(path, errors='replace')}", manifest=manifest)

    assert manifest is not None
    assert found is not None
    found.library.encode()
    assert "\0" not in found.library

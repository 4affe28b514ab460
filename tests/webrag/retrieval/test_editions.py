"""Which version is searched: the one asked for, else that of the named page, else the newest."""

import pytest

from webrag.corpus.models import StoredVersion
from webrag.errors import InputError
from webrag.retrieval.filters import SearchFilters, VersionChoice, choose_versions


def stored(
    *versions: str, library: str = "docs.test", site: str = "docs.test"
) -> list[StoredVersion]:
    return [StoredVersion(site, library, f"{library}/{each}", each) for each in versions]


def choose(
    versions: list[StoredVersion], near: dict[str, set[str]] | None = None, **filters: object
) -> VersionChoice:
    return choose_versions(SearchFilters.of(**filters), versions, near)  # type: ignore[arg-type]


def test_older_editions_are_left_out_and_named() -> None:
    choice = choose(stored("1.9", "1.10"))

    assert choice.pages is not None
    assert choice.pages.values == (["docs.test/1.9"],)
    assert choice.notes == {
        "docs.test": "Of docs.test, version 1.10 was searched; also stored: 1.9. Ask for"
        " docs.test@1.9 to search that one."
    }


def test_single_versions_need_no_note_and_restrict_nothing() -> None:
    choice = choose([*stored("1.9"), *stored("3", library="other.test")])

    assert choice.notes == {}
    assert choice.pages is not None
    assert choice.pages.text == "true"


def test_pages_of_one_edition_may_differ_in_version() -> None:
    same_place = [StoredVersion("docs.test", "docs.test", "docs.test", v) for v in ("1", "2")]

    assert choose(same_place).notes == {}


def test_version_that_is_asked_for_is_chosen_alone() -> None:
    choice = choose(stored("1.9", "1.10"), sites="docs.test@1.9")

    assert choice.pages is not None
    assert choice.pages.values == (["docs.test/1.9"], "1.9")
    assert choice.notes == {}


def test_newest_release_of_the_version_asked_for_is_chosen() -> None:
    choice = choose(stored("1.5.1", "1.5.2", "1.6"), sites="docs.test@1.5")

    assert choice.pages is not None
    assert choice.pages.values == (["docs.test/1.5.2"], "1.5.2")


def test_library_may_be_named_by_its_address() -> None:
    versions = [*stored("1", library="docs.rs/a"), *stored("1", library="docs.rs/b")]

    choice = choose(versions, sites="docs.rs/b@1")

    assert choice.pages is not None
    assert choice.pages.values == (["docs.rs/b/1"], "1")


def test_version_without_a_library_means_any() -> None:
    choice = choose([*stored("2"), *stored("2", library="file:kiln", site="file:")], sites="@2")

    assert choice.pages is not None
    assert choice.pages.values == (["docs.test/2"], "2", ["file:kiln/2"], "2")


def test_version_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(
        InputError, match=r"Version 2\.0 of docs\.test is not stored; there are 1\.10, 1\.9\."
    ):
        choose(stored("1.9", "1.10"), sites="docs.test@2.0")


def test_version_of_pages_that_say_none_is_refused() -> None:
    with pytest.raises(InputError, match=r"No stored page of docs\.test says its version"):
        choose([], sites="docs.test@2.0")


def test_repository_at_a_ref_is_a_site() -> None:
    site = "host.test/owner/lib@v1.2"
    versions = [
        StoredVersion(f"host.test/owner/lib@v{each}", "host.test/owner/lib", site, each)
        for each in ("1.2", "1.3")
    ]

    choice = choose(versions, sites=site)

    assert choice.pages is not None
    assert choice.pages.values == ([site], [site])


def test_pages_that_are_named_are_searched_whatever_their_version() -> None:
    choice = choose(stored("1.9", "1.10"), source_urls="https://docs.test/1.9/a")

    assert choice == VersionChoice()


def test_edition_of_the_named_pages_is_preferred_to_the_newest() -> None:
    choice = choose(stored("1.9", "1.10"), near={"docs.test": {"docs.test/1.9"}})

    assert choice.pages is not None
    assert choice.pages.values == (["docs.test/1.10"],)

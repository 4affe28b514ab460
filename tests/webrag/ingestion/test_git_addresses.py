import pytest

from webrag.errors import InputError
from webrag.ingestion.addresses import canonical_url, page_address, parse_git, site_of, web_link

FILE = "git+https://github.com/owner/repo.git@v1.2/docs/a%20b.md"


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("git+https://GitHub.com/o/r", "git+https://github.com/o/r.git@HEAD/"),
        ("git+https://github.com/o/r.git@v1.2", "git+https://github.com/o/r.git@v1.2/"),
        ("git+https://gitlab.com/a/b/c@x/y#docs", "git+https://gitlab.com/a/b/c.git@x%2Fy/docs/"),
        (FILE, FILE),
    ],
)
def test_repository_is_known_by_one_address(given: str, canonical: str) -> None:
    assert page_address(given) == canonical
    assert page_address(canonical) == canonical


@pytest.mark.parametrize(
    "given",
    [
        "git+ssh://github.com/o/r",
        "git+file:///etc",
        "git+https://github.com/o/r@--upload-pack=x",
        "git+https://github.com/o/r@a..b",
        "git+https://github.com/o/r#../../etc",
        "git+https://user:secret@github.com/o/r",
        "git+https://github.com/o/r.git@v1/%2e%2e/%2e%2e/etc/passwd",
    ],
)
def test_what_is_no_repository_is_refused(given: str) -> None:
    with pytest.raises(InputError):
        page_address(given)


@pytest.mark.parametrize(
    ("host", "link"),
    [
        ("github.com", "https://github.com/o/r/blob/c0ffee/a.md#L4"),
        ("gitlab.example.org", "https://gitlab.example.org/o/r/-/blob/c0ffee/a.md#L4"),
        ("bitbucket.org", "https://bitbucket.org/o/r/src/c0ffee/a.md#lines-4"),
        ("codeberg.org", "https://codeberg.org/o/r/src/commit/c0ffee/a.md#L4"),
    ],
)
def test_host_shows_the_line_at_the_commit(host: str, link: str) -> None:
    assert web_link(parse_git(f"git+https://{host}/o/r.git@v1/a.md"), "c0ffee", 4) == link


def test_a_file_links_within_its_repository_only() -> None:
    assert canonical_url("../x.md#part", FILE) == "git+https://github.com/owner/repo.git@v1.2/x.md"
    for outside in ("git+https://github.com/else/where.git@v1/x.md", "file:///etc/hosts"):
        with pytest.raises(InputError):
            canonical_url(outside, FILE)


def test_a_repository_and_its_ref_are_a_site() -> None:
    assert site_of(FILE) == "github.com/owner/repo@v1.2"

import pytest

from webrag.ingestion.git.clone import listed_commit

ONE, TWO, THREE = "1" * 40, "2" * 40, "3" * 40


@pytest.mark.parametrize(
    ("ref", "commit"),
    [
        pytest.param("HEAD", ONE, id="what the host shows first"),
        pytest.param("main", ONE, id="a branch, not another one whose name ends alike"),
        pytest.param("v1", THREE, id="the commit a tag is put on"),
        pytest.param("feature/main", TWO, id="a branch with a slash"),
        pytest.param("v2", None, id="none"),
    ],
)
def test_commit_of_a_ref_is_found_as_git_finds_it(ref: str, commit: str | None) -> None:
    listing = (
        f"{ONE}\tHEAD\n{TWO}\trefs/heads/feature/main\n{ONE}\trefs/heads/main\n"
        f"{ONE}\trefs/heads/v1\n{TWO}\trefs/tags/v1\n{THREE}\trefs/tags/v1^{{}}\n"
    )

    assert listed_commit(listing.splitlines(), ref) == commit

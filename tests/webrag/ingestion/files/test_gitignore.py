import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.growth import grows_as_its_input
from webrag.ingestion import globs
from webrag.ingestion.globs import ignore_lines, is_ignored, lines_below

# Git takes the stars of `a**/b` for folders, and `ab` with it, against its own documentation.
_STARS_OF_GIT = re.compile(r"[^*?\[\\]+\*{2,}")
_NAME = st.one_of(
    st.lists(
        st.sampled_from(
            (
                "a",
                "b",
                "é",
                ".",
                " ",
                "-",
                "#",
                "!",
                "*",
                "**",
                "?",
                "\\*",
                "\\a",
                "\\#",
                "\\!",
                "]",
                "[ab]",
                "[!a]",
                "[^b]",
                "[a-c]",
                "[b-a]",
                "[]a]",
                "[[:alpha:]]",
                "[[:digit:]a]",
                "[[:xdigit:]]",
                "[![:punct:]]",
                "[[:no:]]",
                "[a\\]b]",
                "[a\\-c]",
                "[a-\\c-]",
                "[a/b]",
                "[",
                "[[:",
                "\\",
                "\\/",
            )
        ),
        min_size=1,
        max_size=5,
    ).map("".join),
    st.sampled_from(["**", "***", "*"]),
).filter(lambda name: not _STARS_OF_GIT.fullmatch(name))
_LINES = st.lists(
    st.tuples(
        st.sampled_from(["", "!", "/", "!/"]),
        st.lists(_NAME, min_size=1, max_size=4).map("/".join),
        st.sampled_from(["", "/", "  ", "\\ ", "\r"]),
    ).map("".join),
    max_size=4,
)
_SEGMENT = st.text("aabbc[]-. :\\*#!", min_size=1, max_size=5).filter(lambda text: text.strip("."))
_NAMES = st.lists(st.lists(_SEGMENT, min_size=1, max_size=4).map("/".join), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


def verdicts_of_git(repository: Path, text: bytes, names: list[str]) -> list[bool | None]:
    (repository / ".gitignore").write_bytes(text)
    command = ["git", "-C", str(repository), "check-ignore", "--no-index", "--stdin", "-znv"]
    asked = "".join(f"./{name}\0" for name in names).encode()
    # Its status is 1 where no name is ignored.
    done = subprocess.run(command, input=asked, stdout=subprocess.PIPE, check=False)
    fields = done.stdout.split(b"\0")[:-1]
    assert len(fields) == 4 * len(names)
    return [
        not pattern.startswith(b"!") if source else None
        for source, pattern in zip(fields[::4], fields[2::4], strict=True)
    ]


def verdict(text: bytes, name: str) -> bool | None:
    """As of a walk, which does not enter a folder that is ignored."""
    lines = list(ignore_lines(text))
    *folders, last = name.split("/")
    for folder in folders:
        if is_ignored(folder, lines, is_folder=True):
            return True
        lines = lines_below(lines, folder)
    return is_ignored(last, lines, is_folder=False)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lines=_LINES, names=_NAMES)
def test_names_are_ignored_as_git_ignores_them(
    repository: Path, lines: list[str], names: list[str]
) -> None:
    text = "\n".join(lines).encode()

    found = [verdict(text, name) for name in names]

    assert found == verdicts_of_git(repository, text, names)


@pytest.mark.parametrize(
    ("line", "name", "ignored"),
    [
        ("a**********b", "a" * 60, None),
        ("a**********b", "a" * 60 + "b", True),
        ("*****b", "b" * 60 + "a", None),
        ("**a**a**a**b", "a" * 60 + "b", True),
        ("**?**?**?**?b", "a" * 60, None),
        ("!a**********b", "ab", False),
        ("/a**********b", "x/ab", None),
        ("a**********b/", "ab", None),
        ("*[!b]*[!b]*[!b]*[!b]*[!b]*b", "a" * 60, None),
        ("a/**/**/**/**/**/**/b", "a/" * 30 + "b", True),
        ("a/**/**/**/**/**/**/c", "a/" * 30 + "b", None),
    ],
)
def test_rows_of_wildcards_are_matched(line: str, name: str, ignored: bool | None) -> None:
    assert verdict(line.encode(), name) is ignored


def test_a_line_that_fits_no_name_leaves_the_others() -> None:
    assert verdict(b"!\na[\n[[:no:]]\n\\\n/\n*.txt\n", "a.txt") is True


@pytest.mark.parametrize(
    ("line", "fitting", "other"),
    [
        ("[[:xdigit:]]", "F", "g"),
        ("[[:punct:]]", "]", "a"),
        ("[![:punct:]]", "a", "-"),
        ("[[:no:]a]", None, "a"),
        ("[[:no]", "n", "a"),
        (r"[a\]b]", "]", "\\"),
        (r"[a\-c]", "-", "b"),
        ("[b-a]", "b", "a"),
        ("[a/b]", "b", "x/b"),
        (r"**\/b", "x/y/b", "b"),
        (r"a\/b", "a/b", "x/a/b"),
        ("a[", None, "a["),
        ("a\\", None, "a"),
        ("é", "é", "e"),
        ("?", "e", "é"),
        ("*.é", "x/é.é", "é"),
    ],
)
def test_sets_and_backslashes_mean_what_they_mean_to_git(
    repository: Path, line: str, fitting: str | None, other: str
) -> None:
    names = [name for name in (fitting, other) if name]

    found = [verdict(line.encode(), name) for name in names]

    assert found == [True, None][-len(names) :]
    assert found == verdicts_of_git(repository, line.encode(), names)


def test_a_name_that_is_no_text_is_matched() -> None:
    assert verdict(b"a?b", os.fsdecode(b"a\xffb")) is True


@pytest.mark.parametrize(
    "part", ["*", "**a", "*a", "**?", "*[!b]", "?", "a", "**/", "**/a/", "[", "[[:", "\\*", "**a\n"]
)
def test_reading_and_matching_grow_as_the_lines_do(part: str) -> None:
    def work(size: int) -> None:
        globs._matcher.cache_clear()
        verdict((part * size).encode() + b"b", "a" * 60)

    assert grows_as_its_input(work, int, 1_000)


@pytest.mark.parametrize(
    "line", ["a" + "*" * 10 + "b", "**a" * 9, "**?" * 9, "*[!b]" * 9, "**/a/b"]
)
def test_matching_grows_as_the_name_does(line: str) -> None:
    def work(name: str) -> None:
        verdict(line.encode(), name)

    assert grows_as_its_input(work, "a/".__mul__, 5_000)
    assert grows_as_its_input(work, "a".__mul__, 50_000)

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import grows_as_its_input
from webrag.crawling.report import CrawlOptions
from webrag.crawling.scope import CrawlScope, PathPattern, folder_of
from webrag.errors import InputError

START = "https://docs.test/manual/v2/index.html"


def matches(pattern: str, path: str) -> bool:
    return PathPattern.parse(pattern, option="include").matches(f"https://docs.test{path}")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/guide/*", "/guide/install.html"),
        ("/guide/**", "/guide/a/b/c"),
        ("/guide/**", "/guide/"),
        ("/guide/", "/guide/a/b"),
        ("*.html", "/any/where/x.html"),
        ("guide/*", "/v2/guide/x"),
        ("guide/", "/v2/guide/x/y"),
        ("/**/api/*.html", "/v1/python/api/x.html"),
        ("/**/api/*.html", "/api/x.html"),
        ("/a/?.html", "/a/b.html"),
        ("/caf\u00e9/*", "/caf%C3%A9/menu"),
        ("/caf%C3%A9/*", "/caf%C3%A9/menu"),
        ("/v[12]/*", "/v2/x"),
    ],
)
def test_pattern_matches(pattern: str, path: str) -> None:
    assert matches(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/guide/*", "/guide/a/b"),
        ("/guide/*", "/v2/guide/a"),
        ("/guide", "/guide/a"),
        ("*.html", "/x.htm"),
        ("/guide/", "/guidebook"),
        ("/a/?.html", "/a/bc.html"),
        ("/GUIDE/*", "/guide/x"),
    ],
)
def test_pattern_does_not_match(pattern: str, path: str) -> None:
    assert not matches(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("/", "is empty"),
        ("https://docs.test/guide/*", "holds a host name"),
        ("//docs.test/x", "holds a host name"),
        ("^/guide", "looks like a regular expression"),
        (r"/guide/\d+", "looks like a regular expression"),
        ("/guide/.*", "looks like a regular expression"),
        ("/{en,de}/**", "has braces"),
        ("/guide/a**", "has \\*\\* beside other characters"),
        ("/" + "a" * 600, "has 601 characters"),
    ],
)
def test_bad_pattern_is_named_with_what_is_allowed(pattern: str, problem: str) -> None:
    with pytest.raises(InputError, match=f"exclude pattern .*{problem}.*/guide/\\*\\*"):
        PathPattern.parse(pattern, option="exclude")


@given(st.lists(st.sampled_from(["a", "b", "**", "*"]), min_size=1, max_size=12), st.data())
def test_pattern_made_from_a_path_matches_it(parts: list[str], data: st.DataObject) -> None:
    names: list[str] = []
    for part in parts:
        many = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3)
        one = st.sampled_from(["a", "b", "c"])
        if part == "**":
            names += data.draw(many)
        else:
            names.append(data.draw(one) if part == "*" else part)

    assert matches("/" + "/".join(parts), "/" + "/".join(names))


def test_hostile_pattern_takes_no_time() -> None:
    assert not matches("/" + "**/a/" * 90 + "b", "/" + "a/" * 400)


@pytest.mark.parametrize(
    ("kind", "url", "reason"),
    [
        ("folder", "https://docs.test/manual/v2/deep/x.html", None),
        ("folder", "https://docs.test/manual/v1/x.html", "outside the folder of the start page"),
        ("site", "https://docs.test/manual/v1/x.html", None),
        ("site", "https://www.docs.test/x", None),
        ("site", "https://other.test/manual/v2/x", "another site"),
        ("site", "https://docs.test:8080/manual/v2/x", "another site"),
        ("folder", "https://docs.test/manual/v2/x.pdf", None),
        ("folder", "https://docs.test/manual/v2/x.zip", "a .zip file is not a page"),
        ("folder", "https://docs.test/manual/v2/login", "'login' is an action"),
    ],
)
def test_scope_judges_addresses(kind: str, url: str, reason: str | None) -> None:
    found = CrawlScope.of(CrawlOptions(scope=kind), [START]).reason_against(url)

    assert found is None if reason is None else reason in found


def test_patterns_narrow_the_scope() -> None:
    options = CrawlOptions(include=("guide/**",), exclude=("*.txt",))
    scope = CrawlScope.of(options, [START])

    reasons = [scope.reason_against(START.replace("index.html", name)) for name in
               ("guide/a.html", "guide/a.txt", "api/a.html")]  # fmt: skip

    assert reasons == [None, "excluded by a pattern", "matched by no include pattern"]


def test_start_page_known_under_two_addresses_gives_two_folders() -> None:
    scope = CrawlScope.of(CrawlOptions(), [START, "https://docs.test/manual/latest/"])

    assert scope.in_folder("https://docs.test/manual/latest/x")
    assert scope.in_folder("https://docs.test/manual/v2/x")


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("https://docs.test/", "/"),
        ("https://docs.test/a", "/"),
        ("https://docs.test/a/", "/a/"),
        ("https://docs.test/a/b.html?x=/y/", "/a/"),
    ],
)
def test_folder_of_a_page(url: str, folder: str) -> None:
    assert folder_of(url) == folder


@pytest.mark.parametrize("part", ["*a", "?*", "*[!b]", "[!a]*", "*/", "**/a/", "["])
@pytest.mark.parametrize("name", ["a", "a/"])
def test_matching_grows_as_the_address_does(part: str, name: str) -> None:
    pattern = PathPattern.parse(f"/{part * (480 // len(part))}b", option="exclude")

    def work(size: int) -> None:
        pattern.matches(f"https://a.test/{name * size}")

    assert grows_as_its_input(work, int, 1_000)

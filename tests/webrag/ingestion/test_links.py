import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.errors import InputError
from webrag.ingestion.addresses import canonical_url, content_hash, parent_urls, site_of


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("HTTPS://Example.COM", "https://example.com/"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("http://example.com:8080/a", "http://example.com:8080/a"),
        ("https://example.com/a#part", "https://example.com/a"),
        ("https://example.com/#!/route", "https://example.com/#!/route"),
        ("https://user:secret@example.com/", "https://example.com/"),
        ("https://example.com/%7euser/%c3%a9", "https://example.com/~user/%C3%A9"),
        ("https://example.com/a%2fb", "https://example.com/a%2Fb"),
        ("https://example.com/a/./b/../c", "https://example.com/a/c"),
        ("https://example.com/a//b/", "https://example.com/a//b/"),
        ("https://example.com/?b=2&a=1", "https://example.com/?b=2&a=1"),
        ("https://example.com/?utm_source=x&q=1&fbclid=y", "https://example.com/?q=1"),
        ("https://example.com/?GCLID=1", "https://example.com/"),
        ("https://example.com/?", "https://example.com/"),
        ("https://bücher.example/é", "https://xn--bcher-kva.example/%C3%A9"),
        ("  https://example.com/a\n", "https://example.com/a"),
        ("http://2130706433/", "http://127.0.0.1/"),
    ],
)
def test_canonical_form_of_an_address(written: str, canonical: str) -> None:
    assert canonical_url(written) == canonical


@pytest.mark.parametrize(
    ("href", "target"),
    [
        ("../b.html?x=1#y", "https://example.com/b.html?x=1"),
        ("", "https://example.com/docs/a.html"),
        ("//other.example/x", "https://other.example/x"),
        ("my page.html", "https://example.com/docs/my%20page.html"),
        ("c\n.html", "https://example.com/docs/c.html"),
    ],
)
def test_links_are_resolved_against_their_page(href: str, target: str) -> None:
    assert canonical_url(href, "https://example.com/docs/a.html") == target


def test_tracking_parameters_stay_when_asked() -> None:
    url = "https://example.com/?utm_source=x"

    assert canonical_url(url, keep_tracking=True) == url


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("example.com/page", "does not start with http:// or https://"),
        ("localhost:8000/x", "does not start with http:// or https://"),
        ("//example.com/", "does not start with http:// or https://"),
        ("docs/manual.html", "does not start with http:// or https://"),
        ("./manual/", "is a path of this machine"),
        ("/usr/share/doc/manual.html", "named as file:///folder/page.md"),
        ("file:///usr/share/doc/", "only pages of the web are crawled"),
        ("ftp://example.com/", "only http and https"),
        ("mailto:a@example.com", "only http and https"),
        ("https://", "cannot be read"),
        ("https://exa mple.com/", "space or backslash"),
        ("https://example.com\\@evil.example/", "space or backslash"),
        ("https://example.com/\x00", "control character"),
        ("https://example.com/\ud800", "control character"),
        ("https://example.com:0/", "port 0"),
        ("https://example.com:70000/", "cannot be read"),
        ("https://256.1.1.1/", "cannot be read"),
        ("https://example.com/" + "a" * 2_000, "at most 2,000"),
    ],
)
def test_unusable_addresses_are_refused_with_a_reason(value: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        canonical_url(value)


def test_message_shows_no_control_characters() -> None:
    with pytest.raises(InputError) as caught:
        canonical_url("https://example.com/\x1b[31m")

    assert "\x1b" not in str(caught.value)


@given(st.text(alphabet="abcZ%27eE/.?&=+#!;:@é ~-_", max_size=60).map("https://h.example/".__add__))
def test_canonical_form_is_stable(url: str) -> None:
    once = canonical_url(url)

    assert canonical_url(once) == once


@given(st.text(max_size=80))
def test_any_text_is_an_address_or_an_input_error(text: str) -> None:
    try:
        url = canonical_url(text)
    except InputError:
        return
    assert url.startswith(("http://", "https://"))


@given(st.text(max_size=80))
def test_any_link_is_an_address_or_an_input_error(text: str) -> None:
    try:
        url = canonical_url(text, "https://example.com/a/b")
    except InputError:
        return
    assert url.startswith(("http://", "https://"))


def test_site_drops_www_and_keeps_the_port() -> None:
    sites = [site_of("https://www.example.com/a"), site_of("http://docs.example.com:8080/")]

    assert sites == ["example.com", "docs.example.com:8080"]


@pytest.mark.parametrize(
    ("url", "parents"),
    [
        ("https://e.com/a/b/c.html?q=1", ["https://e.com/a/b/", "https://e.com/a/"]),
        ("https://e.com/a/b/", ["https://e.com/a/"]),
        ("https://e.com/a", []),
        ("https://e.com/", []),
    ],
)
def test_parents_are_the_folders_above_nearest_first(url: str, parents: list[str]) -> None:
    assert parent_urls(url) == parents


def test_content_hash_is_sha256_of_the_text() -> None:
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    assert content_hash("") == empty

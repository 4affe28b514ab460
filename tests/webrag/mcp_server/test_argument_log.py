import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.mcp_server.tools import described

KNOWN = ("url", "query", "source_urls", "top_k")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({}, "no arguments"),
        ({"query": "four", "top_k": 3}, "query (4 characters), top_k"),
        ({"url": "http://me:pw@h.example:81/a/b?k=v#f"}, "url=http://h.example:81/a/b?..."),
        ({"url": ["http://a.example", "ftp://me:pw@b"]}, "url=http://a.example (no http URL)"),
        (
            {"source_urls": ["http://a.example/"] * 5},
            f"source_urls={'http://a.example/ ' * 3}and 2 more",
        ),
        ({"url": "http://a.example/http://me:pw@b/"}, "url=http://a.example/..."),
        ({"url": "http://[pw"}, "url=(no URL)"),
        ({"url": "me:pw@h.example"}, "url=(no http URL)"),
        ({"url": 7, "pw": 1}, "url=(no text), 1 unknown"),
    ],
)
def test_line_names_arguments_and_hosts_only(arguments: dict[str, object], line: str) -> None:
    assert described(arguments, KNOWN) == line


@given(
    shape=st.sampled_from(
        [
            "https://{}@h.example/",
            "https://u:{}@h.example/p",
            "//u:{}@h.example",
            "https:u:{}@h.example",
            "https:\\\\u:{}@h.example",
            "https:///u:{}@h.example/",
            "https://h.example\\u:{}@x/",
            " https://u:{}@h.example",
            "{}@h.example",
        ]
    ),
    secret=st.text(alphabet="pw0123456789@:", min_size=8),
)
def test_secret_before_the_host_is_never_logged(shape: str, secret: str) -> None:
    assert f"Z{secret}Z" not in described({"url": shape.format(f"Z{secret}Z")}, KNOWN)


@given(text=st.text())
def test_line_is_one_line_whatever_the_url(text: str) -> None:
    assert len(described({"url": f"http://h.example/{text}"}, KNOWN).splitlines()) == 1

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.ingestion.browser import MAX_REQUESTS, Request, refusal

PAGE = "https://docs.example.com/guide"


def why(url: str = "https://docs.example.com/app.js", kind: str = "script", **other: object) -> str:
    options = {"other_sites": False, "count": 0} | {
        name: value for name, value in other.items() if name in ("other_sites", "count")
    }
    rest = {name: value for name, value in other.items() if name not in options}
    return refusal(Request(url, kind, **rest), PAGE, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["script", "stylesheet", "xhr", "fetch", "manifest", "document"])
def test_what_writes_text_is_answered(kind: str) -> None:
    assert why(kind=kind) == ""


@pytest.mark.parametrize("kind", ["image", "media", "font", "ping", "eventsource", "texttrack"])
def test_what_adds_no_text_is_refused(kind: str) -> None:
    assert why(kind=kind) == "kind"


def test_frame_is_not_read() -> None:
    assert why(kind="document", is_main=False) == "kind"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_is_sent_that_might_change_something(method: str) -> None:
    assert why(kind="fetch", method=method) == "method"


@pytest.mark.parametrize(
    "url", ["https://cdn.example.net/x.js", "https://example.org/x.js", "https://notexample.com/x"]
)
def test_file_of_another_site_waits_for_leave(url: str) -> None:
    assert (why(url), why(url, other_sites=True)) == ("site", "")


@pytest.mark.parametrize("host", ["docs.example.com", "static.docs.example.com", "example.com"])
def test_hosts_above_and_below_belong_to_the_site(host: str) -> None:
    assert why(f"https://{host}/x.js") == ""


@given(st.integers(min_value=MAX_REQUESTS, max_value=10**9))
def test_page_gets_no_more_files_than_are_allowed(count: int) -> None:
    assert why(count=count) == "count"

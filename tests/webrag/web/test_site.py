import pytest
from starlette.requests import Request

from webrag.presentation.answer import ranges
from webrag.web.site import may_run


def request(host: str, **headers: str) -> Request:
    named = [("host", host), *((name.replace("_", "-"), each) for name, each in headers.items())]
    raw = [(name.encode(), value.encode()) for name, value in named]
    return Request({
        "type": "http", "method": "GET", "path": "/", "query_string": b"q=Why", "headers": raw,
        "scheme": "http", "server": ("10.0.0.5", 8765),
    })  # fmt: skip


@pytest.mark.parametrize("said", ["none", "same-origin"])
def test_typed_address_and_own_link_start_a_question(said: str) -> None:
    assert may_run(request("wiki.corp.example:8765", sec_fetch_site=said))


@pytest.mark.parametrize("said", ["cross-site", "same-site"])
@pytest.mark.parametrize("host", ["localhost:8765", "wiki.corp.example:8765"])
def test_link_of_another_site_starts_nothing(host: str, said: str) -> None:
    assert not may_run(request(host, sec_fetch_site=said))


@pytest.mark.parametrize("host", ["localhost:8765", "127.0.0.1:8765", "[::1]:8765"])
def test_program_on_this_machine_that_says_nothing_starts_a_question(host: str) -> None:
    assert may_run(request(host))


def test_name_that_begins_like_an_address_of_this_machine_is_another_machine() -> None:
    assert not may_run(request("127.evil.example:8765"))


@pytest.mark.parametrize(
    ("referer", "starts"),
    [
        ("", False),
        ("http://evil.example/", False),
        ("http://wiki.corp.example/", False),
        ("http://wiki.corp.example:8765/?q=What", True),
    ],
)
def test_another_machine_over_plain_http_goes_by_where_the_link_stood(
    referer: str, starts: bool
) -> None:
    headers = {"referer": referer} if referer else {}
    assert may_run(request("wiki.corp.example:8765", **headers)) is starts


@pytest.mark.parametrize(
    ("numbers", "told"), [([], ""), ([1, 2], "1, 2"), ([1, 2, 3, 5, 7, 8], "1–3, 5, 7, 8")]
)
def test_numbers_in_a_row_are_told_by_the_first_and_last(numbers: list[int], told: str) -> None:
    assert ranges(numbers) == told

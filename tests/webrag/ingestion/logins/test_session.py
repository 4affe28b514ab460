from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.errors import InputError
from webrag.ingestion.logins.session import (
    Cookie,
    Login,
    Logins,
    checked_host,
    cookies_for,
    read_cookie_file,
    read_headers,
)

NETSCAPE = """# Netscape HTTP Cookie File
#HttpOnly_wiki.example\tTRUE\t/\tTRUE\t4102444800\tsession\tabc def
wiki.example\tFALSE\t/docs\tFALSE\t0\ttheme\tdark
other.example\tFALSE\t/\tTRUE\t4102444800\tforeign\tsecret
"""


def test_cookie_file_of_an_extension_is_read(tmp_path: Path) -> None:
    file = tmp_path / "cookies.txt"
    file.write_text(NETSCAPE)

    found = {each.name: each for each in cookies_for("wiki.example", read_cookie_file(file))}

    assert found == {
        "session": Cookie("session", "abc def", ".wiki.example", "/", 4102444800.0),
        "theme": Cookie("theme", "dark", "wiki.example", "/docs"),
    }


def test_file_that_is_no_cookie_file_is_refused_without_a_word_of_it(tmp_path: Path) -> None:
    file = tmp_path / "cookies.txt"
    file.write_text("# Netscape HTTP Cookie File\nthe-secret-value in one field\n")

    with pytest.raises(InputError, match="is not a cookies") as caught:
        read_cookie_file(file)

    assert "the-secret-value" not in f"{caught.value!r}{caught.value.__cause__!r}"


@pytest.mark.parametrize("end", ["9" * 15, "9" * 400])
def test_a_cookie_that_ends_beyond_the_calendar_is_kept(tmp_path: Path, end: str) -> None:
    file = tmp_path / "cookies.txt"
    file.write_text(NETSCAPE.replace("4102444800", end))

    cookies = cookies_for("wiki.example", read_cookie_file(file))
    login = Login("wiki.example", tuple(each for each in cookies if each.name == "session"))

    assert login.expires_at == datetime(9999, 12, 31, tzinfo=UTC)
    assert Logins([login]).headers_for("https://wiki.example/") == {"Cookie": "session=abc def"}


@pytest.mark.parametrize("end", ["²", "-1", "1e400", "nan", ""])
def test_a_cookie_without_a_number_for_its_end_is_refused(tmp_path: Path, end: str) -> None:
    file = tmp_path / "cookies.txt"
    file.write_text(NETSCAPE.replace("4102444800", end))

    with pytest.raises(InputError, match="is not a cookies"):
        read_cookie_file(file)


def test_missing_cookie_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_cookie_file(tmp_path / "none.txt")


@pytest.mark.parametrize(
    ("given", "host"),
    [
        ("wiki.example.com", "wiki.example.com"),
        ("Wiki.Example.com:443", "wiki.example.com"),
        ("wiki.example.com:8443", "wiki.example.com:8443"),
        ("https://wiki.example.com/some/page?x=1", "wiki.example.com"),
    ],
)
def test_host_is_taken_from_a_name_or_an_address(given: str, host: str) -> None:
    assert checked_host(given) == host


@pytest.mark.parametrize("given", ["", "http://wiki.example", "a b", "https://u:p@wiki.example"])
def test_what_names_no_https_host_is_refused(given: str) -> None:
    with pytest.raises(InputError):
        checked_host(given)


def test_cookie_that_would_end_a_header_is_left_out() -> None:
    cookies = [Cookie("a", "1\r\nX: 2", "wiki.example"), Cookie("b", "2", "wiki.example")]

    assert [each.name for each in cookies_for("wiki.example", cookies)] == ["b"]


@given(st.text("abwiki.example-", min_size=1, max_size=20))
def test_cookies_of_no_other_host_are_kept(domain: str) -> None:
    kept = cookies_for("wiki.example", [Cookie("a", "1", domain)])

    assert bool(kept) == (domain in ("wiki.example", ".wiki.example", ".example"))


@pytest.mark.parametrize(
    "text",
    [
        "secret",
        '["secret"]',
        '{"wiki.example": "secret"}',
        '{"wiki.example": {"X-Key": ["secret"]}}',
        '{"wiki.example": {"Host": "secret"}}',
        '{"wiki.example": {"X-Key": "sec\\nret"}}',
        '{"http://wiki.example": {"X-Key": "secret"}}',
    ],
)
def test_headers_that_cannot_be_sent_are_refused_without_their_value(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        read_headers(text)

    assert "secret" not in str(caught.value)
    assert "secret" not in str(caught.value.__context__)


def test_header_that_is_no_text_is_named_so() -> None:
    with pytest.raises(ValueError, match="each with an object of texts"):
        read_headers('{"wiki.example": {"X-Key": 1}}')


def test_headers_and_cookies_of_a_host_are_sent_together() -> None:
    (of_settings,) = read_headers('{"wiki.example": {"X-Key": "k"}}')
    logins = Logins([Login("wiki.example", (Cookie("a", "1", "wiki.example"),)), of_settings])

    assert logins.headers_for("https://wiki.example/x") == {"X-Key": "k", "Cookie": "a=1"}
    assert logins.headers_for("https://wiki.example:444/x") == {}


@pytest.mark.parametrize(
    ("path", "gets_it"),
    [
        ("/logout", False),
        ("/users/sign_out?next=/", False),
        ("/index.php?title=Special:UserLogout&returnto=Home", False),
        ("/?action=logoff", False),
        ("/guide/how-to-log-out", True),
        ("/logouts-per-day", True),
    ],
)
def test_address_that_signs_out_is_asked_for_without_the_login(path: str, gets_it: bool) -> None:
    logins = Logins([Login("wiki.example", (Cookie("a", "1", "wiki.example"),))])

    assert bool(logins.headers_for(f"https://wiki.example{path}")) == gets_it

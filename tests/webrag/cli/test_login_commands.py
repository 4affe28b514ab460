import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]
SECRET = "s3cret-session-0123456789"


@pytest.fixture
def run(webrag: Run, tmp_path: Path) -> Run:
    """Runs a command on a data folder of its own."""
    return lambda *arguments: webrag(*arguments, "--data-dir", str(tmp_path / "data"))


@pytest.fixture
def cookies(tmp_path: Path) -> str:
    file = tmp_path / "cookies.txt"
    line = f".wiki.example\tTRUE\t/\tTRUE\t4102444800\tsession\t{SECRET}"
    file.write_text(f"# Netscape HTTP Cookie File\n{line}\n")
    return str(file)


def test_login_is_kept_listed_and_deleted_and_never_shown(run: Run, cookies: str) -> None:
    kept = run("login", "wiki.example", "--cookies", cookies)
    listed = run("login")
    as_json = run("login", "--json")
    deleted = run("login", "https://wiki.example/page", "--remove")
    again = run("login", "wiki.example", "--remove")

    assert "Kept 1 cookie of wiki.example, encrypted" in kept.stdout
    assert listed.stdout.splitlines()[1].endswith("2100-01-01 00:00 UTC")
    (login,) = json.loads(as_json.stdout)["logins"]
    assert (login["host"], login["expires_at"]) == ("wiki.example", "2100-01-01T00:00:00Z")
    assert deleted.exit_code == 0
    assert (again.exit_code, "There is no login for wiki.example" in again.stderr) == (2, True)
    everything = (kept, listed, as_json, deleted, again)
    assert not any(SECRET in each.output for each in everything)
    assert "no logins" in run("login").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["http://wiki.example"], "only ever sent over https"),
        (["other.example"], "has no cookies of other.example"),
        (["wiki.example", "--browser", "http://127.0.0.1:9"], "exclude each other"),
    ],
)
def test_login_that_cannot_be_kept_is_explained(
    run: Run, cookies: str, arguments: list[str], said: str
) -> None:
    result = run("login", *arguments, "--cookies", cookies)

    assert result.exit_code == 2
    assert said in result.stderr


def test_other_ways_are_named_where_no_window_can_be_opened(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)

    result = run("login", "wiki.example")

    assert result.exit_code == 2
    assert "there is no display" in result.stderr
    assert all(way in result.stderr for way in ("--cookies", "--browser", "WEBRAG_LOGIN_HEADERS"))

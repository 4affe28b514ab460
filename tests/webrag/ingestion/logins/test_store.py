import logging
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring
from typing_extensions import override

from webrag.ingestion.logins.session import Cookie, Login
from webrag.ingestion.logins.store import LoginStore

SECRET = "s3cret-session-0123456789"
LOGIN = Login(
    "wiki.example:8443",
    (Cookie("session", SECRET, ".wiki.example", expires=4102444800.0),),
    saved_at=datetime(2026, 5, 31, tzinfo=UTC),
)


class MemoryKeyring(KeyringBackend):
    """The keyring of a user's system, as far as its package asks."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    @override
    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    @override
    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    @override
    def delete_password(self, service: str, username: str) -> None:
        self.kept.pop((service, username), None)


@pytest.fixture(autouse=True)
def no_keyring() -> Iterator[None]:
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())
    yield
    keyring.set_keyring(before)


@pytest.fixture
def memory_keyring(no_keyring: None) -> MemoryKeyring:
    made = MemoryKeyring()
    keyring.set_keyring(made)
    return made


def test_login_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    store = LoginStore(tmp_path / "logins")

    assert store.save(LOGIN) == "file"

    assert store.load() == [LOGIN]
    assert store.hosts() == ["wiki.example:8443"]


def test_files_are_the_owners_alone_and_show_no_secret(tmp_path: Path) -> None:
    folder = tmp_path / "logins"
    LoginStore(folder).save(LOGIN)

    files = {each.name: each for each in folder.iterdir()}

    assert files.keys() == {"key", "wiki.example+8443.login"}
    assert {stat.S_IMODE(each.stat().st_mode) for each in files.values()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(SECRET.encode() not in each.read_bytes() for each in files.values())


def test_key_is_in_the_keyring_where_there_is_one(
    tmp_path: Path, memory_keyring: MemoryKeyring
) -> None:
    store = LoginStore(tmp_path / "logins")

    assert store.save(LOGIN) == "keyring"

    assert [each.name for each in (tmp_path / "logins").iterdir()] == ["wiki.example+8443.login"]
    assert len(memory_keyring.kept) == 1
    assert store.load() == [LOGIN]


def test_login_without_its_key_is_not_used_and_the_log_says_so(
    tmp_path: Path, memory_keyring: MemoryKeyring, caplog: pytest.LogCaptureFixture
) -> None:
    store = LoginStore(tmp_path / "logins")
    store.save(LOGIN)
    memory_keyring.kept.clear()

    with caplog.at_level(logging.WARNING):
        assert store.load() == []

    assert "webrag login wiki.example:8443" in caplog.text


def test_last_login_that_is_forgotten_takes_the_key_with_it(
    tmp_path: Path, memory_keyring: MemoryKeyring
) -> None:
    store = LoginStore(tmp_path / "logins")
    store.save(LOGIN)

    assert store.forget(LOGIN.host)

    assert list((tmp_path / "logins").iterdir()) == []
    assert memory_keyring.kept == {}
    assert not store.forget(LOGIN.host)

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from webrag.errors import DatabaseUnavailableError
from webrag.postgres.embedded.cluster import open_private_log, why_not_private
from webrag.postgres.embedded.server import open_lock_file


def _own(path: Path) -> None:
    path.mkdir(mode=0o700)


def _link(path: Path) -> None:
    target = path.with_name("target")
    target.mkdir(mode=0o700)
    path.symlink_to(target)


def _dangling_link(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


def _file(path: Path) -> None:
    path.touch(0o600)


def _absent(path: Path) -> None:
    del path


def _enterable(mode: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.mkdir()
        path.chmod(mode)

    return make


def test_folder_of_this_user_alone_is_private(tmp_path: Path) -> None:
    _own(tmp_path / "folder")

    assert why_not_private(tmp_path / "folder", {os.geteuid()}) is None


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        pytest.param(_link, "it is a symbolic link", id="link"),
        pytest.param(_dangling_link, "it is a symbolic link", id="dangling link"),
        pytest.param(_file, "it is not a folder", id="file"),
        pytest.param(_absent, "it cannot be examined (No such file or directory)", id="absent"),
        pytest.param(_enterable(0o755), "other users may enter it (mode 755)", id="755"),
        pytest.param(_enterable(0o711), "other users may enter it (mode 711)", id="711"),
        pytest.param(_enterable(0o720), "other users may enter it (mode 720)", id="720"),
        pytest.param(_enterable(0o1777), "other users may enter it (mode 1777)", id="1777"),
    ],
)
def test_folder_that_a_stranger_could_fill_is_told_from_a_private_one(
    tmp_path: Path, make: Callable[[Path], None], reason: str
) -> None:
    make(tmp_path / "folder")

    assert why_not_private(tmp_path / "folder", {os.geteuid()}) == reason


def test_folder_of_another_user_is_not_private(tmp_path: Path) -> None:
    _own(tmp_path / "folder")

    assert why_not_private(tmp_path / "folder", {os.geteuid() + 1}) == (
        f"it belongs to user id {os.geteuid()}"
    )


def test_log_is_appended_to_and_private(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    for line in (b"one\n", b"two\n"):
        descriptor = open_private_log(log)
        os.write(descriptor, line)
        os.close(descriptor)

    assert log.read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def _linked_log(log: Path) -> None:
    victim = log.with_name("victim")
    victim.write_text("precious")
    log.symlink_to(victim)


def _hard_linked_log(log: Path) -> None:
    victim = log.with_name("victim")
    victim.write_text("precious")
    log.hardlink_to(victim)


def _pipe(log: Path) -> None:
    os.mkfifo(log)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        pytest.param(_linked_log, "it is a symbolic link", id="link"),
        pytest.param(_dangling_link, "it is a symbolic link", id="dangling link"),
        pytest.param(_hard_linked_log, "it is no file of its own", id="hard link"),
    ],
)
def test_log_that_leads_elsewhere_is_refused_with_the_reason(
    tmp_path: Path, make: Callable[[Path], None], reason: str
) -> None:
    make(tmp_path / "server.log")

    with pytest.raises(DatabaseUnavailableError, match=reason):
        open_private_log(tmp_path / "server.log")

    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("make", [_pipe, _own], ids=["pipe", "folder"])
def test_log_that_is_no_file_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "server.log")

    with pytest.raises((DatabaseUnavailableError, OSError)):
        open_private_log(tmp_path / "server.log")


def test_lock_file_is_not_opened_through_a_link(tmp_path: Path) -> None:
    _linked_log(tmp_path / "lock")

    with pytest.raises(OSError, match="symbolic link"):
        open_lock_file(tmp_path / "lock")

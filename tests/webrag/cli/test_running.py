"""How commands are run and stopped, in this process and as processes of their own."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import Result

from webrag.cli.running import run
from webrag.postgres.database import Database

COMMAND = [sys.executable, "-m", "webrag"]


async def wait_and_tell(events: list[str], signal_number: int) -> None:
    asyncio.get_running_loop().call_later(0.01, os.kill, os.getpid(), signal_number)
    try:
        await asyncio.Event().wait()
    finally:
        events.append("closed")


def test_result_of_the_work_is_returned() -> None:
    async def work() -> int:
        return 7

    assert run(work()) == 7


def test_interrupt_lets_the_work_close_what_it_opened() -> None:
    events: list[str] = []

    with pytest.raises(KeyboardInterrupt):
        run(wait_and_tell(events, signal.SIGINT))

    assert events == ["closed"]


def test_termination_lets_the_work_close_what_it_opened() -> None:
    events: list[str] = []

    with pytest.raises(SystemExit) as caught:
        run(wait_and_tell(events, signal.SIGTERM))

    assert (events, caught.value.code) == (["closed"], 143)


def test_termination_is_handled_as_before_after_the_work() -> None:
    before = signal.getsignal(signal.SIGTERM)

    async def work() -> None:
        """Ends at once."""

    run(work())

    assert signal.getsignal(signal.SIGTERM) is before


def place(database: Database, site: object) -> list[str]:
    return [
        "--data-dir", str(database.config.data_dir),
        "--collection", database.config.collection,
        "--allow-host", urlsplit(str(site)).netloc,
    ]  # fmt: skip


def is_empty(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def slow_page(request: Any) -> tuple[int, dict[str, str], bytes]:
    time.sleep(3)
    return 200, {"content-type": "text/html"}, b"<p>Too late.</p>"


@pytest.mark.parametrize(
    ("signal_number", "code"),
    [
        pytest.param(signal.SIGINT, 130, id="interrupt"),
        pytest.param(signal.SIGTERM, 143, id="terminate"),
    ],
)
def test_stopped_command_leaves_no_process_and_no_page(
    signal_number: int,
    code: int,
    static_site: Callable[..., Any],
    database: Database,
    webrag: Callable[..., Result],
) -> None:
    site = static_site({"/robots.txt": b"", "/": slow_page})
    where = place(database, site)
    process = subprocess.Popen(
        [*COMMAND, "answer", f"{site}/", "What is here?", *where],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(lambda: "/" in [request.path for request in site.requests])

    process.send_signal(signal_number)
    out, err = process.communicate(timeout=20)

    assert (process.returncode, out) == (code, "")
    assert "Traceback" not in err
    wait_until(lambda: is_empty(process.pid))
    assert "Pages stored: 0" in webrag("status", *where).stdout


def test_reader_that_stops_reading_is_no_error() -> None:
    process = subprocess.Popen(
        [*COMMAND, "config"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()

    with process.stderr as stream:
        err = stream.read()

    process.wait(timeout=20)
    assert err == ""

import asyncio
import logging
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.processes import children
from webrag.process_pool.pool import Job, WorkerPool, WorkFailedError
from webrag.process_pool.process import LENGTH, PREPARE, WORK

JOBS = """
import os, resource, time

def make(setup):
    def work(payload):
        name, _, rest = payload.partition(" ")
        return globals()[name](setup, rest)
    return work

def echo(setup, rest):
    return f"{setup} {rest} {os.getpid()}"

def variable(setup, rest):
    return os.environ.get(rest, "unset")

def hang(setup, rest):
    while True:
        pass

def wait(setup, rest):
    time.sleep(float(rest))
    return rest

def fill(setup, rest):
    return "x" * 1_800_000_000

def grow(setup, rest):
    held = b"x" * 520_000_000
    return f"{os.getpid()}"

def flood(setup, rest):
    return "x" * 70_000_000

def fail(setup, rest):
    raise LookupError("nobody foresaw this")

def end(setup, rest):
    os._exit(1)

def count(setup, rest):
    for number in range(2):
        yield f"part {number}"
    if rest == "hang":
        hang(setup, rest)
    return fail(setup, rest) if rest == "fail" else "last part"
"""
JOB = Job("jobs_of_test_pool:make", str, "set-up")


@pytest.fixture
def kept_workers() -> None:
    """None: the processes themselves are what is tried here."""


@pytest.fixture
async def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WorkerPool]:
    (tmp_path / "jobs_of_test_pool.py").write_text(JOBS)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    opened = WorkerPool(workers=1, timeout_s=3.0)
    yield opened
    await opened.aclose()


async def test_work_is_done_in_one_process_after_another(pool: WorkerPool) -> None:
    answers = [await pool.run(JOB, "echo page", about="x") for _ in range(3)]

    assert len(set(answers)) == 1
    assert answers[0].startswith("set-up page ")
    assert int(answers[0].split()[-1]) != os.getpid()


async def test_one_process_does_several_jobs(pool: WorkerPool) -> None:
    first = await pool.run(JOB, "echo page", about="x")
    other = await pool.run(Job("jobs_of_test_pool:make", str, "other"), "echo page", about="x")

    assert first.split()[2:] == other.split()[2:]
    assert other.startswith("other page")


@pytest.mark.parametrize(("given", "seen"), [(None, "1"), ("0", "0")])
async def test_onnx_runtime_in_a_process_reports_to_nobody_unless_the_user_says_so(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch, given: str | None, seen: bytes
) -> None:
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    if given is not None:
        monkeypatch.setenv("ORT_DISABLE_TELEMETRY", given)

    assert await pool.run(JOB, "variable ORT_DISABLE_TELEMETRY", about="x") == seen


@pytest.mark.parametrize(
    ("work", "kind", "said"),
    [
        pytest.param("hang", "late", "longer than 3 seconds", id="endless"),
        pytest.param("fill", "memory", "too much memory", id="memory"),
        pytest.param("flood", "too_large", "more than 64 MB", id="result"),
        pytest.param("end", "died", "ended the process", id="crash"),
        pytest.param("fail", "unexpected", "LookupError: nobody foresaw this", id="bug"),
    ],
)
async def test_failing_work_says_how_and_the_next_piece_is_done(
    pool: WorkerPool, work: bytes, kind: str, said: str
) -> None:
    with pytest.raises(WorkFailedError, match=said) as caught:
        await pool.run(JOB, work, about="https://a.test/")

    assert caught.value.kind == kind
    assert (await pool.run(JOB, "echo page", about="x")).startswith("set-up page")


async def test_time_in_which_a_process_does_not_get_the_processor_is_not_its_own(
    pool: WorkerPool,
) -> None:
    await pool.run(JOB, "echo page", about="x")

    assert await pool.run(JOB, "wait 1.5", about="x", timeout_s=0.5) == "1.5"


async def test_process_that_waits_without_end_is_ended_by_the_clock(pool: WorkerPool) -> None:
    await pool.run(JOB, "echo page", about="x")
    started = time.monotonic()

    with pytest.raises(WorkFailedError, match=r"0\.3 seconds of work, or 1\.8 in all") as caught:
        await pool.run(JOB, "wait 60", about="x", timeout_s=0.3)

    assert caught.value.kind == "late"
    assert time.monotonic() - started < 10


async def test_process_that_is_not_ready_in_time_is_ended_in_a_sentence(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import time\ntime.sleep(60)")  # while it starts
    monkeypatch.setattr("webrag.process_pool.pool._START_TIMEOUT_S", 0.01)
    before = children()

    with pytest.raises(WorkFailedError, match=r"not ready within 0\.01 seconds") as caught:
        await pool.run(JOB, "echo page", about="x")

    assert caught.value.kind == "late"
    assert children() <= before


IMPATIENT = """from webrag.process_pool import process
process._GRACE_S, process.PATIENCE = 1, 25
process.main()"""


def test_work_whose_parent_is_gone_ends_after_its_own_seconds(tmp_path: Path) -> None:
    (tmp_path / "jobs_of_test_pool.py").write_text(JOBS)
    prepare = bytes([PREPARE, 0]) + pickle.dumps((JOB.factory, JOB.setup))
    work = bytes([WORK, 0]) + LENGTH.pack(1) + pickle.dumps("hang")
    given = b"".join(LENGTH.pack(len(each)) + each for each in (prepare, work))
    started = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime

    ended = subprocess.run(
        [sys.executable, "-c", IMPATIENT],
        input=given,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert ended.returncode == -signal.SIGPROF
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - started < 5


async def test_unforeseen_failure_is_logged_with_its_traceback(
    pool: WorkerPool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(WorkFailedError):
        await pool.run(JOB, "fail", about="https://a.test/page")

    assert "https://a.test/page" in caplog.text
    assert 'raise LookupError("nobody foresaw this")' in caplog.text


async def test_prepared_process_does_the_first_work_of_its_job(pool: WorkerPool) -> None:
    before = children()
    pool.prepare([JOB])
    (prepared,) = children() - before

    first, second = [await pool.run(JOB, "echo page", about="x") for _ in range(2)]
    pool.prepare([JOB])

    assert first == second
    assert int(first.split()[-1]) == prepared
    assert children() - before == {prepared}


@pytest.mark.usefixtures("pool")
async def test_each_job_is_done_by_the_process_that_was_started_for_it() -> None:
    other = Job("jobs_of_test_pool:make", str, "other")
    pool = WorkerPool(workers=2, timeout_s=8.0)
    pool.prepare([JOB, other])
    try:
        first = await pool.run(JOB, "echo page", about="x")
        second = await pool.run(other, "echo page", about="x")
    finally:
        await pool.aclose()

    assert first.split()[-1] != second.split()[-1]


async def test_pool_that_is_closed_while_a_process_starts_leaves_none(pool: WorkerPool) -> None:
    before = children()
    pool.prepare([JOB])

    await pool.aclose()

    assert children() <= before


async def test_process_that_cannot_be_prepared_is_replaced(pool: WorkerPool) -> None:
    pool.prepare([Job("no_such_module:make", str)])

    assert (await pool.run(JOB, "echo page", about="x")).startswith("set-up page ")


async def test_process_that_took_much_memory_is_replaced(pool: WorkerPool) -> None:
    grown = await pool.run(JOB, "grow", about="x")

    assert not (await pool.run(JOB, "echo page", about="x")).endswith(" " + grown)


async def test_cancelling_ends_the_work(pool: WorkerPool) -> None:
    pid = int((await pool.run(JOB, "echo page", about="x")).split()[-1])
    task = asyncio.create_task(pool.run(JOB, "hang", about="x"))
    await asyncio.sleep(0.2)
    started = time.monotonic()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task

    assert time.monotonic() - started < 3
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_result_comes_in_parts(pool: WorkerPool) -> None:
    parts = await pool.run_parts(JOB, "count", about="x", limits_s=[8, 8, 8])

    assert parts == ["part 0", "part 1", "last part"]


@pytest.mark.parametrize(("work", "kind"), [("count hang", "late"), ("count fail", "unexpected")])
async def test_parts_that_came_are_kept_when_a_later_one_does_not(
    pool: WorkerPool, work: str, kind: str
) -> None:
    with pytest.raises(WorkFailedError) as caught:
        await pool.run_parts(JOB, work, about="x", limits_s=[8, 8, 0.5])

    assert caught.value.kind == kind
    assert caught.value.parts == ["part 0", "part 1"]
    assert (await pool.run(JOB, "echo page", about="x")).startswith("set-up page")


async def test_process_that_gives_more_parts_than_were_asked_for_is_replaced(
    pool: WorkerPool,
) -> None:
    before = await pool.run(JOB, "echo page", about="x")

    parts = await pool.run_parts(JOB, "count hang", about="x", limits_s=[8, 8])

    assert parts == ["part 0", "part 1"]
    assert await pool.run(JOB, "echo page", about="x") != before

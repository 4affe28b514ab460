"""Runs work on what strangers wrote in other processes, so that it costs a deadline at most.

It starts, restarts and ends the processes; what they do is named by a `Job`. Nothing here knows
of pages.
"""

import asyncio
import contextlib
import json
import logging
import math
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import TypeAdapter

from webrag.concurrency import settled
from webrag.errors import InputError
from webrag.process_pool.process import (
    FAILED,
    LENGTH,
    PART,
    PATIENCE,
    PREPARE,
    READY,
    RETIRING,
    WORK,
)

_log = logging.getLogger(__name__)

_T = TypeVar("_T")
_START_TIMEOUT_S = 60.0  # on the clock
_END_TIMEOUT_S = 2.0
_LEAST_WAIT_S = 0.05
# A page of the greatest size that is read gives about 30 MB; more would not fit in our own memory.
_MAX_RESULT_BYTES = 64_000_000
# What Python itself needs to start; everything else stays behind.
_PASSED_ON = """HOME LANG LC_ALL LD_LIBRARY_PATH ORT_DISABLE_TELEMETRY PATH PYTHONDONTWRITEBYTECODE
PYTHONHOME PYTHONPATH SYSTEMROOT TEMP TMP TMPDIR""".split()  # noqa: SIM905
# One thread does what there is to do; memory of more would count against the limit.
_SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Job(Generic[_T]):
    """Work for a process.

    The factory, named as `module:function`, is called with `setup`, which can be pickled and
    hashed, once in each process, and returns the function that turns a request into a result. A
    generator function gives its result in parts, of which the last is what it returns. `result`
    is the type of each part, which is read from JSON.
    """

    factory: str
    result: type[_T]
    setup: Any = None

    @cached_property
    def _reader(self) -> "TypeAdapter[_T]":
        return TypeAdapter(self.result)

    def read(self, result: bytes) -> _T:
        """Read a result that a process wrote."""
        return self._reader.validate_json(result)


class WorkFailedError(Exception):
    """A piece of work had no result; the message says why, as the end of a sentence.

    Its kind: `late` for too long, `memory` for more than a process may have, `too_large` for such a
    result, `died` when the process ended, twice, `unexpected` for an error nobody foresaw, which is
    logged. Its parts are those of the result that came before.
    """

    def __init__(
        self,
        kind: Literal["late", "memory", "too_large", "died", "unexpected"],
        message: str,
        parts: Sequence[Any] = (),
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.parts = parts


class _WorkerDied(Exception):
    """The process ended in the middle of an exchange."""


class _ResultTooLarge(Exception):
    """A result was announced that would not fit in our own memory."""


class _Worker:
    """One process and its pipes; every method blocks and runs in the pool's threads.

    Plain subprocesses, not asyncio's: they work on every event loop, and a worker can serve
    several loops one after the other.
    """

    def __init__(self) -> None:
        # -P and another folder: nothing in the current directory may be imported, because an MCP
        # server is started inside other people's projects. No environment: a process that parses
        # hostile pages has no use for keys.
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "webrag.process_pool.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            close_fds=True,
            cwd=Path(sys.executable).parent,
            env=passed_on | _SINGLE_THREADED | token_tables(),
        )
        self.prepared: dict[Job[Any], int] = {}

    def wait_ready(self) -> None:
        if self._read() != READY:
            raise _WorkerDied("it did not start")

    def start(self, job: Job[Any]) -> None:
        self.wait_ready()
        self.prepare(job)

    def prepare(self, job: Job[Any]) -> None:
        number = len(self.prepared)
        self._write(bytes([PREPARE, number]), pickle.dumps((job.factory, job.setup)))
        if self._read() != READY:
            raise _WorkerDied("it could not prepare")
        self.prepared[job] = number

    def begin(self, job: Job[Any], request: object, limit_s: float) -> bytes:
        seconds = LENGTH.pack(math.ceil(limit_s))
        self._write(bytes([WORK, self.prepared[job]]), seconds, pickle.dumps(request))
        return self.go_on()

    def go_on(self) -> bytes:
        return self._read()

    def spent_s(self) -> float:
        """Tell its processor time so far; 0 where the system does not, and the clock decides."""
        with contextlib.suppress(OSError):  # it has ended, which its pipe tells
            if sys.platform == "linux":  # see clock_getcpuclockid(3)
                return time.clock_gettime(~self._process.pid << 3 | 2)
        return 0.0

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            self._process.kill()

    def close(self) -> None:
        """End the process and wait for it; safe to call more than once."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _write(self, *parts: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(LENGTH.pack(sum(map(len, parts))))
            for part in parts:
                stdin.write(part)
            stdin.flush()
        except OSError as error:
            raise _WorkerDied("it stopped reading") from error

    def _read(self) -> bytes:
        stdout = self._process.stdout
        assert stdout is not None
        header = stdout.read(LENGTH.size)
        if len(header) < LENGTH.size:
            raise _WorkerDied("it ended early")
        (length,) = LENGTH.unpack(header)
        if length > _MAX_RESULT_BYTES:
            raise _ResultTooLarge
        payload = stdout.read(length)
        if len(payload) < length:
            raise _WorkerDied("it ended early")
        return payload


class _Starting(NamedTuple):
    """A process that gets ready for a job before there is work for it."""

    worker: _Worker
    job: Job[Any]
    future: "Future[None]"


class WorkerPool:
    """Works in up to `workers` processes, started when first needed.

    Seconds are processor time of the process, which may take six times as long on the clock; where
    the system does not tell that, they are seconds on the clock.
    Cancelling a call or passing the deadline kills the process that works on it; the next call
    gets a new one. Nothing is left running after `aclose`.
    """

    def __init__(self, workers: int, timeout_s: float) -> None:
        """Prepare for `workers` pieces of work at once, each of `timeout_s`; nothing is started."""
        self._timeout_s = timeout_s
        self._slots = asyncio.Semaphore(workers)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="webrag-worker")
        self._workers = workers
        self._idle: list[_Worker] = []
        self._starting: list[_Starting] = []
        self._has_started = False
        self._busy: set[_Worker] = set()
        self._is_closed = False

    def prepare(self, jobs: Sequence[Job[Any]]) -> None:
        """Start a process, which takes half a second, for each of the first jobs, once."""
        if self._has_started or self._is_closed:
            return
        self._has_started = True
        for job in jobs[: self._workers]:
            worker = _Worker()
            self._starting.append(_Starting(worker, job, self._threads.submit(worker.start, job)))

    async def run(
        self, job: Job[_T], request: object, *, about: str, timeout_s: float | None = None
    ) -> _T:
        """Do one piece of work that gives its result as a whole, as `run_parts` does."""
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        (result,) = await self.run_parts(job, request, about=about, limits_s=[limit_s])
        return result

    async def run_parts(
        self, job: Job[_T], request: object, *, about: str, limits_s: Sequence[float]
    ) -> list[_T]:
        """Do one piece of work that gives its result in parts, each in its own time.

        The request can be pickled; what it is about is for the log. WorkFailedError where a part
        takes too long, needs too much memory, or fails.
        """
        async with self._slots:
            self._check_open()
            for is_last in (False, True):
                parts: list[_T] = []
                try:
                    await self._fill(parts, job, request, about, limits_s)
                    break
                except _WorkerDied as error:
                    self._check_open()
                    if is_last:
                        raise WorkFailedError("died", "it ended the process", parts) from error
                    # An idle worker may have been ended by the system; what kills twice is bad.
                    _log.warning("the process working on %s ended; trying once more", about)
            return parts

    async def aclose(self) -> None:
        """End every process; calls under way fail."""
        self._is_closed = True
        for worker in self._busy:
            worker.kill()
        for starting in self._starting:
            starting.worker.kill()
        await settled([asyncio.wrap_future(each.future) for each in self._starting])
        self._idle += [each.worker for each in self._starting]
        self._starting.clear()
        loop = asyncio.get_running_loop()
        while self._idle:
            await loop.run_in_executor(self._threads, self._idle.pop().close)
        await asyncio.to_thread(self._threads.shutdown)

    def _check_open(self) -> None:
        if self._is_closed:
            raise InputError("WebRAG was closed: use its parts while it is open.")

    async def _fill(
        self, parts: list[_T], job: Job[_T], request: object, about: str, limits_s: Sequence[float]
    ) -> None:
        worker = await self._prepared_worker(job)
        receive: Callable[[], bytes] = partial(worker.begin, job, request, sum(limits_s))
        status = PART
        found: Any = None
        try:
            for limit_s in limits_s:
                status, found = await self._in_time(worker, _received, limit_s, receive, job)
                if not status & FAILED:
                    parts.append(found)
                if not status & PART:
                    break
                receive = worker.go_on
        except TimeoutError as error:
            clock_s = limit_s * PATIENCE
            reason = f"it took longer than {limit_s:g} seconds of work, or {clock_s:g} in all"
            raise WorkFailedError("late", reason, parts) from error
        except _ResultTooLarge as error:
            most = _MAX_RESULT_BYTES // 1_000_000
            raise WorkFailedError("too_large", f"it makes more than {most} MB", parts) from error
        if status & PART:  # more than was asked for
            worker.kill()
        if self._is_closed or status & (RETIRING | PART):
            await asyncio.get_running_loop().run_in_executor(None, worker.close)
        else:
            self._idle.append(worker)
        if status & FAILED and found["kind"] == "memory":
            raise WorkFailedError("memory", "it takes too much memory", parts)
        if status & FAILED:
            _log.error("Work on %s failed unexpectedly:\n%s", about, found["traceback"])
            raise WorkFailedError("unexpected", str(found["reason"]), parts)

    async def _prepared_worker(self, job: Job[Any]) -> _Worker:
        worker = await self._worker_for(job)
        if job not in worker.prepared:
            await self._make_ready(worker, worker.prepare, job)
        return worker

    async def _worker_for(self, job: Job[Any]) -> _Worker:
        """One that is prepared for the job or gets ready for it, else any, else a new one."""
        for at, idle in enumerate(self._idle):
            if job in idle.prepared:
                return self._idle.pop(at)
        # It began to get ready before there was work: an idle one would begin only now.
        for at, starting in enumerate(self._starting):
            if starting.job == job:
                self._starting.pop(at)
                return await self._make_ready(starting.worker, starting.future.result)
        if self._idle:
            return self._idle.pop()
        if self._starting:
            starting = self._starting.pop()
            return await self._make_ready(starting.worker, starting.future.result)
        self._has_started = True
        worker = _Worker()
        return await self._make_ready(worker, worker.wait_ready)

    async def _make_ready(
        self, worker: _Worker, wait: Callable[..., None], *arguments: object
    ) -> _Worker:
        try:
            await self._in_time(worker, wait, _START_TIMEOUT_S, *arguments, patience=1)
        except TimeoutError as error:
            reason = f"its process was not ready within {_START_TIMEOUT_S:g} seconds"
            raise WorkFailedError("late", reason) from error
        return worker

    async def _in_time(
        self,
        worker: _Worker,
        work: Callable[..., _T],
        seconds: float,
        *arguments: object,
        patience: int = PATIENCE,
    ) -> _T:
        """Run blocking work on a worker; end the worker unless the work succeeds in time.

        The time is that of its processor, and `patience` times as much on the clock.
        """
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._threads, work, *arguments)
        self._busy.add(worker)
        try:
            return await _in_seconds(running, worker, seconds, seconds * patience)
        except BaseException:
            worker.kill()
            # The kill ends the thread's read at once; waiting here leaves nothing behind.
            try:
                await settled([running])
            finally:
                worker.close()
            raise
        finally:
            self._busy.discard(worker)


async def _in_seconds(
    running: asyncio.Future[_T], worker: _Worker, seconds: float, clock_s: float
) -> _T:
    loop = asyncio.get_running_loop()
    begun_s, until, left_s = worker.spent_s(), loop.time() + clock_s, seconds
    while left_s > 0:
        await asyncio.wait([running], timeout=max(left_s, _LEAST_WAIT_S))
        if running.done():
            return running.result()
        left_s = min(seconds - (worker.spent_s() - begun_s), until - loop.time())
    raise TimeoutError


def _received(receive: Callable[[], bytes], job: Job[Any]) -> tuple[int, Any]:
    """Wait for a frame: its status, and the result that it holds or how the work failed."""
    frame = receive()
    status, content = frame[0], frame[1:]
    return status, json.loads(content) if status & FAILED else job.read(content)


def token_tables() -> dict[str, str]:
    """Say by a variable where llama-index-core has tiktoken's tables; else it downloads them."""
    package = find_spec("llama_index.core")
    if package is None or not package.submodule_search_locations:
        return {}
    folder = Path(package.submodule_search_locations[0], "_static/tiktoken_cache")
    return {"TIKTOKEN_CACHE_DIR": str(folder)}

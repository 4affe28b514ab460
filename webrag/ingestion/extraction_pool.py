"""Converts pages in worker processes, so that a hostile page costs a deadline, not the program.

It starts, restarts and ends the processes; what they do is in `extract`.
"""

import asyncio
import contextlib
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from webrag.concurrency import settled
from webrag.errors import UnusablePageError
from webrag.ingestion.extraction_worker import LENGTH, READY
from webrag.ingestion.models import FetchedPage, NormalizedDocument

__all__ = ["ExtractionPool"]

_log = logging.getLogger(__name__)

_T = TypeVar("_T")
_START_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 2.0
# What Python itself needs to start; everything else stays behind.
_PASSED_ON = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHOME",
    "PYTHONPATH",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "TMPDIR",
)


class _WorkerDied(Exception):
    """The process ended in the middle of an exchange."""


class _Worker:
    """One process and its pipes; every method blocks and runs in the pool's threads.

    Plain subprocesses, not asyncio's: they work on every event loop, and a worker can serve
    several loops one after the other.
    """

    def __init__(self, timeout_s: float) -> None:
        # -P and another folder: nothing in the current directory may be imported, because an MCP
        # server is started inside other people's projects. No environment: a process that parses
        # hostile pages has no use for keys.
        self._process = subprocess.Popen(  # noqa: S603 - our own module, no outside argument
            [sys.executable, "-P", "-m", "webrag.ingestion.extraction_worker", str(timeout_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            close_fds=True,
            cwd=Path(sys.executable).parent,
            env=_worker_environment(),
        )

    def wait_ready(self) -> None:
        if self._read() != READY:
            raise _WorkerDied("it did not start")

    def exchange(self, payload: bytes) -> bytes:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(LENGTH.pack(len(payload)))
            stdin.write(payload)
            stdin.flush()
        except OSError as error:
            raise _WorkerDied("it stopped reading") from error
        return self._read()

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

    def _read(self) -> bytes:
        stdout = self._process.stdout
        assert stdout is not None
        header = stdout.read(LENGTH.size)
        if len(header) < LENGTH.size:
            raise _WorkerDied("it ended early")
        (length,) = LENGTH.unpack(header)
        payload = stdout.read(length)
        if len(payload) < length:
            raise _WorkerDied("it ended early")
        return payload


class ExtractionPool:
    """Converts pages in up to `workers` processes, started when first needed.

    Cancelling a call or passing the deadline kills the process that works on it; the next call
    gets a new one. Nothing is left running after `aclose`.
    """

    def __init__(self, workers: int, timeout_s: float) -> None:
        """Prepare the pool; nothing is started.

        Args:
            workers: Pages converted at once.
            timeout_s: Time one page may take, start-up of the process not counted.
        """
        self._timeout_s = timeout_s
        self._slots = asyncio.Semaphore(workers)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="webrag-extract")
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._is_closed = False

    async def extract(self, page: FetchedPage) -> NormalizedDocument:
        """Convert one page.

        Raises:
            UnusablePageError: The page holds no readable text, cannot be converted, or takes
                longer than the pool allows.
        """
        payload = page.model_dump_json().encode()
        async with self._slots:
            self._check_open()
            try:
                answer = await self._converted(page, payload)
            except _WorkerDied:
                self._check_open()
                # An idle worker may have been ended by the system; a page that kills twice is bad.
                _log.warning("the process converting %s ended; trying once more", page.url)
                try:
                    answer = await self._converted(page, payload)
                except _WorkerDied as error:
                    self._check_open()
                    raise UnusablePageError(
                        f"The page {page.url} cannot be converted: its markup ended the converter.",
                        url=page.url,
                        status=page.status,
                    ) from error
        return _document(page, answer)

    async def aclose(self) -> None:
        """End every process; calls under way fail."""
        self._is_closed = True
        for worker in self._busy:
            worker.kill()
        loop = asyncio.get_running_loop()
        while self._idle:
            await loop.run_in_executor(self._threads, self._idle.pop().close)
        await asyncio.to_thread(self._threads.shutdown)

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("the extraction pool is closed")

    async def _converted(self, page: FetchedPage, payload: bytes) -> bytes:
        worker = self._idle.pop() if self._idle else await self._started()
        try:
            answer = await self._in_time(worker, worker.exchange, self._timeout_s, payload)
        except TimeoutError as error:
            raise UnusablePageError(
                f"Converting {page.url} took longer than {self._timeout_s:g} seconds.",
                url=page.url,
                status=page.status,
            ) from error
        if self._is_closed:
            await asyncio.get_running_loop().run_in_executor(None, worker.close)
        else:
            self._idle.append(worker)
        return answer

    async def _started(self) -> _Worker:
        worker = _Worker(self._timeout_s)
        await self._in_time(worker, worker.wait_ready, _START_TIMEOUT_S)
        return worker

    async def _in_time(
        self, worker: _Worker, work: Callable[..., _T], seconds: float, *arguments: bytes
    ) -> _T:
        """Run blocking work on a worker; end the worker unless the work succeeds in time."""
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._threads, work, *arguments)
        self._busy.add(worker)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(running)
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


def _document(page: FetchedPage, answer: bytes) -> NormalizedDocument:
    if answer[:1] == b"\x01":
        return NormalizedDocument.model_validate_json(answer[1:])
    failure = json.loads(answer[1:])
    raise UnusablePageError(
        failure["message"],
        url=page.url,
        status=page.status,
        hint=failure.get("hint"),
        kind=failure.get("kind") or "",
        alternative_url=failure.get("alternative_url"),
    )


def _worker_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ}

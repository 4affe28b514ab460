"""Worker processes that outlive their pool and serve the pools of later tests.

To start the two that convert and cut a test's pages takes a second of computing, more than all else
that most tests of a whole WebRAG do.
"""

from typing import Any

from webrag.process_pool.pool import Job, _Worker, _WorkerDied
from webrag.process_pool.process import PART, RETIRING

_MOST_KEPT = 3
# Each set-up that a process has seen stays in its memory, which is limited.
_MOST_JOBS = 8


class KeptWorkers:
    """Processes that wait for the next pool."""

    def __init__(self) -> None:
        self._waiting: list[_KeptWorker] = []

    def lend(self) -> "_KeptWorker":
        """One that another pool has left, or a new one."""
        while self._waiting:
            worker = self._waiting.pop()
            if worker.is_usable():
                return worker
            worker.end()
        return _KeptWorker(self)

    def take_back(self, worker: "_KeptWorker") -> None:
        if worker.is_usable() and len(self._waiting) < _MOST_KEPT:
            self._waiting.append(worker)
        else:
            worker.end()

    def end(self) -> None:
        while self._waiting:
            self._waiting.pop().end()


class _KeptWorker(_Worker):
    """A real process with its real pipes; closing it gives it back unless something went wrong."""

    def __init__(self, keeper: KeptWorkers) -> None:
        super().__init__()
        self._keeper = keeper
        self._is_ready = False
        self._is_between_exchanges = False
        self._is_dismissed = False
        self._is_killed = False

    def is_usable(self) -> bool:
        """Whether it runs, waits for a request and is not full of set-ups."""
        if self._is_killed or not self._is_between_exchanges:
            return False
        return self._process.poll() is None and len(self.prepared) < _MOST_JOBS

    def wait_ready(self) -> None:
        if not self._is_ready:
            super().wait_ready()
        self._is_ready = self._is_between_exchanges = True

    def prepare(self, job: Job[Any]) -> None:
        if job not in self.prepared:
            self._begin()
            super().prepare(job)
            self._is_between_exchanges = True

    def begin(self, job: Job[Any], request: object, limit_s: float) -> bytes:
        self._begin()
        return super().begin(job, request, limit_s)

    def go_on(self) -> bytes:
        frame = super().go_on()
        self._is_between_exchanges = not frame[0] & (RETIRING | PART)
        return frame

    def _begin(self) -> None:
        self._is_between_exchanges = False
        if self._is_dismissed:
            self._is_between_exchanges = True
            raise _WorkerDied("its pool has no more use for it")

    def kill(self) -> None:
        """End what it does; a closing pool kills those, too, that do nothing."""
        self._is_dismissed = True
        if not self._is_between_exchanges:
            self._is_killed = True
            super().kill()

    def close(self) -> None:
        self._is_dismissed = False
        self._keeper.take_back(self)

    def end(self) -> None:
        super().close()

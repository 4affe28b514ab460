"""Work that goes on whether or not anybody watches: answers being made, pages being fetched."""

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

from webrag.errors import InputError, WebRAGError

logger = logging.getLogger(__name__)

RunState = Literal["running", "done", "stopped", "failed"]

# What a watcher who comes late is told: a crawl of a day would else be kept page by page.
_MOST_EVENTS = 300
# Chosen, not measured: an answer holds some 30 kB.
_MOST_KEPT = 200
_MOST_RUNNING = 20
# All owners together get so many times what one gets.
_SHARES = 5


@dataclass
class WatchedRun:
    """One piece of work and what is known of it; of many events the oldest are dropped.

    The id cannot be guessed; the owner may see it, "" where everybody is the same.
    """

    id: str
    owner: str
    kind: str
    asked: Mapping[str, Any]
    started: float = field(default_factory=time.monotonic)
    state: RunState = "running"
    result: Any = None
    error: WebRAGError | None = None
    events: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    progress: str = ""
    dropped: int = 0
    task: asyncio.Task[None] | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def seconds(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self.started

    def tell(self, name: str, **values: Any) -> None:
        """Tell everybody who watches; must be called on the event loop."""
        self.events.append((name, values))
        if len(self.events) > _MOST_EVENTS:
            del self.events[0]
            self.dropped += 1
        self._wake()

    def tell_progress(self, text: str) -> None:
        """Say how far it is; what was said before is replaced."""
        self.progress = text
        self._wake()

    def end(self, state: RunState) -> None:
        """Nothing more will be told."""
        self.state = state
        self._wake()

    async def followed(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """Everything told so far and from now on, until `end`, which comes last."""
        sent, progress = 0, ""
        while True:
            changed = self._changed
            news = self.events[max(sent - self.dropped, 0) :]
            sent = self.dropped + len(self.events)
            for each in news:
                yield each
            if self.progress != progress:
                progress = self.progress
                yield "progress", {"text": progress}
            if self.state != "running":
                yield "end", {"state": self.state}
                return
            if changed is self._changed:
                await changed.wait()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


class Runs:
    """The runs of one server, a bounded number of each owner; they do not outlive it.

    Each enters `counted` while it works, so that a server which stops can wait for it.
    """

    def __init__(self, counted: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._counted = counted
        self._runs: OrderedDict[str, WatchedRun] = OrderedDict()

    def start(
        self,
        kind: str,
        asked: Mapping[str, Any],
        work: Callable[[WatchedRun], Awaitable[Any]],
        *,
        owner: str = "",
    ) -> WatchedRun:
        """Begin to work, and return at once; InputError where too much is under way."""
        running = [each.owner for each in self._runs.values() if each.state == "running"]
        if running.count(owner) >= _MOST_RUNNING:
            raise InputError(
                f"This server does {_MOST_RUNNING} of your questions and crawls at once, and no"
                " more now; wait for one, or stop one."
            )
        if len(running) >= _SHARES * _MOST_RUNNING:
            raise InputError("This server does as much as it can; try again later.")
        run = WatchedRun(secrets.token_urlsafe(12), owner, kind, asked)
        self._runs[run.id] = run
        self._drop_oldest([each for each in self._runs.values() if each.owner == owner], _MOST_KEPT)
        self._drop_oldest([*self._runs.values()], _SHARES * _MOST_KEPT)
        run.task = asyncio.create_task(self._work(run, work), name=f"webrag-{kind}-{run.id}")
        return run

    def get(self, run_id: str, owner: str = "") -> WatchedRun | None:
        """A run of this owner; None when it is none, or is not kept any more."""
        run = self._runs.get(run_id)
        return run if run is not None and run.owner == owner else None

    def latest(self, *kinds: str, owner: str = "") -> list[WatchedRun]:
        """The runs of this owner, the latest first."""
        found = [run for run in self._runs.values() if run.kind in kinds and run.owner == owner]
        return found[::-1]

    async def stop(self, run: WatchedRun) -> None:
        """Cancel what it does and wait until it has ended."""
        if run.task is not None and not run.task.done():
            run.task.cancel()
            await asyncio.wait({run.task})
        if run.state == "running":
            # Cancelled before it began.
            run.end("stopped")

    async def _work(self, run: WatchedRun, work: Callable[[WatchedRun], Awaitable[Any]]) -> None:
        try:
            with self._counted():
                run.result = await work(run)
        except asyncio.CancelledError:
            # Its end is told like any other; whoever cancelled it waits for the task.
            run.end("stopped")
        except WebRAGError as error:
            run.error = error
            run.end("failed")
        # A defect must end in a sentence as well: nobody else asks the task for its error.
        except Exception:
            logger.exception("A run failed unexpectedly")
            run.error = WebRAGError(
                "WebRAG failed unexpectedly.", hint="The server's log says where; report it."
            )
            run.end("failed")
        else:
            run.end("done")

    def _drop_oldest(self, runs: list[WatchedRun], most: int) -> None:
        ended = [run.id for run in runs if run.state != "running"]
        for each in ended[: max(len(runs) - most, 0)]:
            del self._runs[each]

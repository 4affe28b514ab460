"""Converts pages in worker processes, so that a hostile page costs a deadline, not the program."""

import json
from typing import Final

from webrag.errors import UnusablePageError
from webrag.ingestion.models import FetchedPage, NormalizedDocument
from webrag.process_pool.pool import Job, WorkerPool, WorkFailedError

_JOB: Final = Job("webrag.ingestion.extraction_worker:make_converter")


class ExtractionPool:
    """Converts pages in up to `workers` processes, started when first needed.

    Cancelling a call or passing the deadline kills the process that works on it; the next call
    gets a new one. Nothing is left running after `aclose`.

    Attributes:
        workers: The processes; other work on pages may be done in them too.
    """

    def __init__(self, workers: int, timeout_s: float) -> None:
        """Prepare the pool; nothing is started.

        Args:
            workers: Pages converted at once.
            timeout_s: Time one page may take, start-up of the process not counted.
        """
        self.workers = WorkerPool(workers, timeout_s)
        self._timeout_s = timeout_s

    def prepare(self, *others: Job) -> None:
        """Start the processes, one for converting and one for each other job, if none has been."""
        self.workers.prepare([_JOB, *others])

    async def extract(self, page: FetchedPage) -> NormalizedDocument:
        """Convert one page.

        Raises:
            UnusablePageError: The page holds no readable text, cannot be converted, or takes
                longer than the pool allows.
        """
        try:
            answer = await self.workers.run(
                _JOB, page.model_dump_json().encode(), about=f"{page.url} (converting it)"
            )
        except WorkFailedError as error:
            raise UnusablePageError(
                self._reason(page.url, error), url=page.url, status=page.status
            ) from error
        return _document(page, answer)

    async def aclose(self) -> None:
        """End every process; calls under way fail."""
        await self.workers.aclose()

    def _reason(self, url: str, error: WorkFailedError) -> str:
        match error.kind:
            case "late":
                return f"Converting {url} took longer than {self._timeout_s:g} seconds."
            case "memory":
                return f"Converting {url} takes too much memory."
            case "died":
                return f"The page {url} cannot be converted: its markup ended the converter."
            case _:
                return f"{url} cannot be converted ({error})."


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

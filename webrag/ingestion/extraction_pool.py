"""Converts pages in worker processes, so that a hostile page costs a deadline, not the program."""

from typing import Any, Final

from webrag.errors import UnusablePageError
from webrag.ingestion.extraction_worker import Conversion
from webrag.ingestion.models import FetchedPage, NormalizedDocument
from webrag.process_pool.pool import Job, WorkerPool, WorkFailedError

_JOB: Final = Job("webrag.ingestion.extraction_worker:make_converter", Conversion)


class ExtractionPool:
    """Converts pages in up to `workers` processes, started when first needed.

    Attributes:
        workers: The processes; other work on pages may be done in them too.
        timeout_s: Time one page may take, start-up of the process not counted.
    """

    def __init__(self, workers: int, timeout_s: float) -> None:
        self.workers = WorkerPool(workers, timeout_s)
        self.timeout_s = timeout_s

    def prepare(self, job: Job[Any] = _JOB) -> None:
        """Start the processes, ready for a job, if none has been."""
        self.workers.prepare([job] * 2)

    async def extract(self, page: FetchedPage) -> NormalizedDocument:
        """Convert one page.

        Raises:
            UnusablePageError: It holds no readable text, cannot be converted, or takes too long.
        """
        try:
            conversion = await self.workers.run(
                _JOB, page, about=f"{page.url} (converting it)", timeout_s=self.timeout_s
            )
        except WorkFailedError as error:
            raise self.failure(page, error) from error
        return conversion.result(page)

    async def aclose(self) -> None:
        """End every process; calls under way fail."""
        await self.workers.aclose()

    def failure(self, page: FetchedPage, error: WorkFailedError) -> UnusablePageError:
        """Say why a page could not be converted."""
        reasons = {
            "late": f"Converting {page.url} took longer than {self.timeout_s:g} seconds.",
            "memory": f"Converting {page.url} takes too much memory.",
            "died": f"The page {page.url} cannot be converted: its markup ended the converter.",
        }
        reason = reasons.get(error.kind, f"{page.url} cannot be converted ({error}).")
        return UnusablePageError(reason, url=page.url, status=page.status)

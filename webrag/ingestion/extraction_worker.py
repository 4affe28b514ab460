"""Converts a page in a worker process: the job behind `ExtractionPool`."""

from collections.abc import Callable

from webrag.errors import UnusablePageError
from webrag.frozen import FrozenModel, shared_fields
from webrag.ingestion.models import FetchedPage, NormalizedDocument


class Conversion(FrozenModel):
    """A page after its conversion: a document, or a failure as UnusablePageError has it."""

    document: NormalizedDocument | None = None
    failure: str = ""
    hint: str | None = None
    kind: str = ""
    alternative_url: str | None = None

    def result(self, page: FetchedPage) -> NormalizedDocument:
        """Give the document that a page became, or raise UnusablePageError where it became none."""
        if self.document is not None:
            return self.document
        said = self.model_dump(include={"hint", "kind", "alternative_url"})
        raise UnusablePageError(self.failure, url=page.url, status=page.status, **said)


def make_converter(_setup: object) -> Callable[[FetchedPage], Conversion]:
    """Load what converts pages."""
    from webrag.ingestion.extract import extract

    def convert(page: FetchedPage) -> Conversion:
        try:
            return Conversion(document=extract(page))
        except UnusablePageError as error:
            return Conversion(failure=str(error), **shared_fields(Conversion, error))

    return convert

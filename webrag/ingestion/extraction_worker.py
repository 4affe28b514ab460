"""What a worker process does to convert a page: the job behind `ExtractionPool`."""

import importlib
import json
from collections.abc import Callable

from webrag.errors import UnusablePageError
from webrag.ingestion.extract import extract
from webrag.ingestion.models import FetchedPage


def make_converter(_setup: bytes) -> Callable[[bytes], bytes]:
    """What converts a page: a `FetchedPage` as JSON to a document, or to why there is none."""
    importlib.import_module("htmldate")
    return _convert


def _convert(payload: bytes) -> bytes:
    page = FetchedPage.model_validate_json(payload)
    try:
        return b"\x01" + extract(page).model_dump_json().encode()
    except UnusablePageError as error:
        failure = {
            "message": str(error),
            "hint": error.hint,
            "kind": error.kind,
            "alternative_url": error.alternative_url,
        }
    return b"\x02" + json.dumps(failure).encode()

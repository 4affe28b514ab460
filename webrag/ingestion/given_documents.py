"""Documents that a program brings, as pages that were fetched; it asks nobody for them."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from llama_index.core.schema import Document, MetadataMode

from webrag.errors import InputError
from webrag.ingestion.addresses import page_address
from webrag.ingestion.characters import collapse, storable
from webrag.ingestion.html.markdown import PageFacts, html_from_markdown, page_html
from webrag.ingestion.models import FetchedPage

__all__ = ["page_of_document"]

_ADDRESSES = ("source_url", "url", "source", "URL")
_FILE_NAMES = ("file_name", "filename", "file_path")
_MAX_FACT_CHARS = 1_000


def page_of_document(document: Document) -> FetchedPage:
    """A document as a page: under the address its metadata name, else under one of its own.

    The latter is made of its id, so a document given again under the same id is the next version
    of that page. Its text is read as Markdown, which plain text is as well.

    Raises:
        InputError: It has no text, or an id that is too long.
    """
    if not isinstance(document, Document):
        raise InputError(f"{type(document).__name__} is no LlamaIndex Document.")
    text = storable(document.get_content(metadata_mode=MetadataMode.NONE))
    if not text.strip():
        raise InputError(f"The document {document.doc_id!r} has no text.")
    url = _address(document)
    return FetchedPage(
        requested_url=url,
        url=url,
        status=200,
        kind="html",
        text=page_html(html_from_markdown(text), _facts(document.metadata)),
        fetched_at=datetime.now(UTC),
        source="documents",
    )


def _address(document: Document) -> str:
    for name in _ADDRESSES:
        value = document.metadata.get(name)
        if isinstance(value, str) and value.startswith(("http://", "https://")):
            return page_address(value)
    return page_address(f"document:{quote(document.doc_id, safe='/~:@!$&()*+,;=')}")


def _facts(metadata: dict[str, Any]) -> PageFacts:
    def first(*names: str) -> str:
        values = (metadata.get(name) for name in names)
        found = next((value for value in values if isinstance(value, str) and value.strip()), "")
        return collapse(storable(found))[:_MAX_FACT_CHARS]

    page = metadata.get("page_label")
    file_name = first(*_FILE_NAMES).rpartition("/")[2]
    named = f"{file_name}, page {page}" if file_name and page else file_name
    return PageFacts(
        title=first("title", "og_title") or named,
        description=first("description", "summary"),
        language=first("language", "lang"),
        published_at=first("date", "published", "publish_date", "published_time"),
    )

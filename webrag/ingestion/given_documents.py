"""Documents that a program brings, as pages that were fetched; it asks nobody for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from llama_index.core.schema import Document, MetadataMode

from webrag.errors import InputError
from webrag.ingestion.addresses import content_hash, page_address
from webrag.ingestion.characters import storable, storable_values
from webrag.ingestion.html.markdown import PageFacts, fact_of, html_from_markdown, page_html
from webrag.ingestion.models import Anchor, FetchedPage, NormalizedDocument, OutgoingLink

_ADDRESSES = ("source_url", "url", "source", "URL")
_FILE_NAMES = ("file_name", "filename", "file_path")
_BETWEEN = "\n\n"


@dataclass(frozen=True)
class GivenPage:
    """The documents of one address, in the order they were given.

    Attributes:
        url: Their address.
        parts: Each of them as a page.
        numbers: The page of a PDF, or the like, that each of them is; empty when one does not say.
        metadata: What they agree on.
    """

    url: str
    parts: tuple[FetchedPage, ...]
    numbers: tuple[int, ...]
    metadata: dict[str, Any]

    def joined(self, parts: Sequence[NormalizedDocument | None]) -> NormalizedDocument:
        """One document of all parts, which leads to their numbers.

        Args:
            parts: As converted, None for what could not be; at least one could.
        """
        found = [(at, part) for at, part in enumerate(parts) if part is not None]
        texts: list[str] = []
        links: list[OutgoingLink] = []
        anchors: list[Anchor] = []
        offset = 0
        for at, part in found:
            texts.append(part.markdown)
            links += (_moved(link, offset) for link in part.links)
            if len(self.parts) > 1 and self.numbers:
                anchors.append(Anchor(char_start=offset, fragment=f"page={self.numbers[at]}"))
            offset += len(part.markdown) + len(_BETWEEN)
        markdown = _BETWEEN.join(texts)
        return found[0][1].model_copy(
            update={
                "markdown": markdown,
                "html": "\n".join(part.html for _, part in found),
                "links": tuple(links),
                "anchors": tuple(anchors),
                "content_hash": content_hash(markdown),
                "metadata": self.metadata,
            }
        )


def pages_of_documents(documents: Sequence[Document]) -> list[GivenPage]:
    """Documents as pages: under the address their metadata name, else each under one of its own.

    The latter is made of its id, so a document given again under the same id is the next version
    of that page. Several documents of one address are the parts of one page, as readers give a
    PDF; those without text among them are left out. Text is read as Markdown, which plain text is
    as well.

    Raises:
        InputError: A page has no text, or an id is too long.
    """
    by_address: dict[str, list[Document]] = {}
    for document in documents:
        if not isinstance(document, Document):
            raise InputError(f"{type(document).__name__} is no LlamaIndex Document.")
        kept = {"id_": storable(document.doc_id), "metadata": storable_values(document.metadata)}
        document = document.model_copy(update=kept)
        by_address.setdefault(_address(document), []).append(document)
    return [_page(url, several) for url, several in by_address.items()]


def _page(url: str, several: Sequence[Document]) -> GivenPage:
    texts = [storable(each.get_content(metadata_mode=MetadataMode.NONE)) for each in several]
    told = [(each, text) for each, text in zip(several, texts, strict=True) if text.strip()]
    if not told:
        raise InputError(f"The document {several[0].doc_id!r} has no text.")
    metadata = _agreed([each.metadata for each, _ in told])
    facts = _facts(metadata)
    labels = [str(each.metadata.get("page_label", "")) for each, _ in told]
    return GivenPage(
        url=url,
        parts=tuple(_part(url, text, facts) for _, text in told),
        numbers=tuple(map(int, labels)) if all(map(str.isdecimal, labels)) else (),
        metadata=metadata,
    )


def _agreed(several: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first, *others = several
    return {
        name: value
        for name, value in first.items()
        if all(name in other and other[name] == value for other in others)
    }


def _part(url: str, text: str, facts: PageFacts) -> FetchedPage:
    return FetchedPage(
        requested_url=url,
        url=url,
        status=200,
        kind="html",
        text=page_html(html_from_markdown(text), facts),
        fetched_at=datetime.now(UTC),
        source="documents",
    )


def _moved(link: OutgoingLink, offset: int) -> OutgoingLink:
    if link.char_start is None or link.char_end is None:
        return link
    places = {"char_start": link.char_start + offset, "char_end": link.char_end + offset}
    return link.model_copy(update=places)


def _address(document: Document) -> str:
    for name in _ADDRESSES:
        value = document.metadata.get(name)
        if isinstance(value, str) and value.startswith(("http://", "https://")):
            return page_address(value)
    return page_address(f"document:{quote(document.doc_id, safe='/~:@!$&()*+,;=')}")


def _facts(metadata: dict[str, Any]) -> PageFacts:
    page = metadata.get("page_label")
    file_name = fact_of(metadata, *_FILE_NAMES).rpartition("/")[2]
    named = f"{file_name}, page {page}" if file_name and page else file_name
    return PageFacts(
        title=fact_of(metadata, "title", "og_title") or named,
        description=fact_of(metadata, "description", "summary"),
        author=fact_of(metadata, "author", "authors"),
        language=fact_of(metadata, "language", "lang"),
        published_at=fact_of(metadata, "date", "published", "publish_date", "published_time"),
    )

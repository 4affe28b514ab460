"""Files and folders of this machine, from naming them to quoting their lines."""

import json
import os
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import Document
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from tests.kept_collections import KeptCollections
from webrag import WebRAG
from webrag.errors import RefusedAddressError
from webrag.ingestion.addresses import file_url
from webrag.retrieval.citation_checks import Citation
from webrag.settings import Settings

QUESTION = "When is an idle connection closed?"
Open = Callable[..., AbstractAsyncContextManager[WebRAG]]


@pytest.fixture
def opened(postgres_dir: Path, kept_collections: KeptCollections) -> Open:
    """Opens a WebRAG on a collection of its own that is dropped when it is left."""

    @asynccontextmanager
    async def make(
        *, collection: str = "", drop: bool = True, **given: Any
    ) -> AsyncIterator[WebRAG]:
        name = collection or f"test_{uuid.uuid4().hex[:16]}"
        folders = given.pop("allow_dirs", ())
        settings = Settings(data_dir=postgres_dir, collection=name, allow_dirs=folders)
        async with WebRAG(settings, **given) as rag:
            try:
                yield rag
            finally:
                if drop:
                    await kept_collections.take_back_from(rag)

    return make


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A start page that links to the page with the answer, in a folder."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "index.md").write_text("# Manual\n\nLimits of a connection: [limits](limits.md).\n")
    (folder / "limits.md").write_text(
        "---\ntitle: Limits\n---\n\n# Limits\n\nThe broker closes a connection\nthat is idle for"
        " 95 seconds.\n"
    )
    (tmp_path / "secret.md").write_text(
        "# Secret\n\nThe secret connection is idle for 7 seconds.\n"
    )
    return folder


async def test_folder_is_answered_from_with_file_and_line(opened: Open, docs: Path) -> None:
    async with opened() as rag:
        result = await rag.answer(docs, QUESTION)
        brief = rag.brief(result)

    link = f"{file_url(docs / 'limits.md')}#L7"
    assert f"passage: {link} (docs/limits.md:7)" in brief
    assert "secret" not in brief


@pytest.mark.parametrize("mode", ["fast", "deep"])
async def test_folder_is_not_answered_for_by_files_elsewhere(
    opened: Open, docs: Path, mode: Any
) -> None:
    async with opened() as rag:
        await rag.ingest(docs.parent / "secret.md")
        (docs / "limits.md").write_text("# Limits\n\nNothing is limited so far.\n")
        result = await rag.answer(docs, "What is idle for 7 seconds?", research_mode=mode)

    assert {item.chunk.source_url for item in result.chunks} <= set(map(file_url, docs.iterdir()))


async def test_file_of_a_folder_that_cannot_be_read_is_named_once(opened: Open, docs: Path) -> None:
    (docs / "broken.pdf").write_bytes(b"%PDF-1.7 no more of it")
    async with opened() as rag:
        result = await rag.answer(docs, QUESTION)

    assert [each.count(file_url(docs / "broken.pdf")) for each in result.warnings] == [1]


async def test_loop_follows_links_from_file_to_file(opened: Open, docs: Path) -> None:
    (docs / "index.md").write_text(
        "# Manual\n\nLimits of a connection: [limits](limits.md), [more](../secret.md).\n"
    )
    async with opened(allow_dirs=[str(docs)]) as rag:
        result = await rag.answer(file_url(docs / "index.md"), QUESTION, research_mode="deep")

    assert result.urls_fetched == (file_url(docs / "index.md"), file_url(docs / "limits.md"))


async def test_next_run_reads_changed_files_and_marks_deleted_ones(
    opened: Open, docs: Path
) -> None:
    async with opened() as rag:
        await rag.ingest(docs)
        (docs / "limits.md").write_text("# Limits\n\nNow it is 60 seconds.\n")
        (docs / "index.md").unlink()
        (docs / "new.md").write_text("# New\n\nA new page.\n")
        report = await rag.ingest(docs)
        again = await rag.ingest(docs)
        status = await rag.status()

    assert {page.url: page.outcome for page in report.pages} == {
        file_url(docs / "limits.md"): "updated",
        file_url(docs / "new.md"): "indexed",
    }
    assert report.gone == (file_url(docs / "index.md"),)
    assert {page.outcome for page in again.pages} == {"unchanged"}
    assert (status.documents, status.gone) == (2, 1)


async def test_server_reads_only_below_the_allowed_folders(opened: Open, docs: Path) -> None:
    async with opened(reads_named_files=False, allow_dirs=[str(docs)]) as rag:
        report = await rag.ingest([file_url(docs), file_url(docs.parent / "secret.md")])
        with pytest.raises(RefusedAddressError, match="WEBRAG_ALLOW_DIRS"):
            await rag.answer(file_url(docs.parent / "secret.md"), QUESTION)

    assert [page.title for page in report.pages] == ["Manual", "Limits"]
    assert list(report.failed) == [file_url(docs.parent / "secret.md")]


async def test_server_answers_from_a_stored_file_that_it_may_not_read(
    opened: Open, docs: Path
) -> None:
    url = file_url(docs / "limits.md")
    async with opened(drop=False) as rag:
        await rag.ingest(url)
        name = rag.settings.collection
    (docs / "limits.md").write_text("# Limits\n\nChanged meanwhile.\n")

    async with opened(collection=name, reads_named_files=False) as rag:
        result = await rag.answer(url, QUESTION)
        check = await rag.verify(Citation(url=url, quote="idle for 95 seconds"))

    assert "95 seconds" in result.chunks[0].chunk.text
    assert "refused" in str(check[0].live)


async def test_quotation_of_a_file_is_verified_against_it(opened: Open, docs: Path) -> None:
    url = file_url(docs / "limits.md")
    async with opened() as rag:
        await rag.ingest(url)
        (docs / "limits.md").write_text("# Limits\n\nIt never closes.\n")
        check = await rag.verify(Citation(url=url, quote="idle for 95 seconds"))

    assert (check[0].stored.state, check[0].live.state if check[0].live else "") == (
        "exact",
        "absent",
    )


async def test_file_is_forgotten_and_found_by_the_filter_for_files(
    opened: Open, docs: Path
) -> None:
    async with opened() as rag:
        await rag.ingest(docs)
        found = await rag.search(QUESTION, sites="file:")
        report = await rag.forget(file_url(docs / "limits.md"))

    assert found.corpus_stats.total_documents == 2
    assert report.removed == (file_url(docs / "limits.md"),)


async def test_folder_without_a_file_to_read_says_what_it_holds(
    opened: Open, tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(b"p")
    os.utime(tmp_path / "a.png")

    async with opened() as rag:
        report = await rag.ingest(tmp_path)

    assert list(report.failed.values()) == [
        f"There is no file to read below {tmp_path} (1 of a kind that is not read)."
    ]
    assert json.loads(report.model_dump_json())["left_out"] == {"of a kind that is not read": 1}


async def test_documents_of_a_program_are_answered_from(opened: Open) -> None:
    given = [
        Document(
            text="The broker closes a connection that is idle for 95 seconds.",
            doc_id="limits-1",
            metadata={"file_name": "limits.pdf", "page_label": "3", "team": "core"},
        ),
        Document(text="# Else\n\nOther words.", metadata={"url": "https://example.com/else"}),
    ]

    async with opened() as rag:
        report = await rag.add_documents(given)
        again = await rag.add_documents(given)
        result = await rag.search(QUESTION)
        nodes = await rag.vector_store().aget_nodes(
            filters=MetadataFilters(filters=[MetadataFilter(key="team", value="core")])
        )

    assert [page.url for page in report.pages] == [
        "document:limits-1",
        "https://example.com/else",
    ]
    assert {page.outcome for page in again.pages} == {"unchanged"}
    assert result.chunks[0].chunk.title == "limits.pdf, page 3"
    assert [node.metadata["page_label"] for node in nodes] == ["3"]


async def test_documents_of_one_address_are_one_page_whose_parts_are_cited(opened: Open) -> None:
    url = "https://example.com/manual.pdf"
    history = (
        "Brokers were painted green before they were sold, and stood in gardens for years. " * 3
    )
    texts = [history, "", "Idle connections close after 95 seconds."]
    given = [
        Document(text=text, metadata={"url": url, "file_name": "manual.pdf", "page_label": str(at)})
        for at, text in enumerate(texts, 1)
    ]

    async with opened() as rag:
        report = await rag.add_documents(given)
        brief = rag.brief(await rag.search(QUESTION))
        nodes = await rag.vector_store().aget_nodes(
            filters=MetadataFilters(filters=[MetadataFilter(key="file_name", value="manual.pdf")])
        )

    assert [(page.url, page.title) for page in report.pages] == [(url, "manual.pdf")]
    assert f"passage: {url}#page=3" in brief
    assert {"page_label" in node.metadata for node in nodes} == {False}

"""Versions of a library, from storing them to comparing what they say."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from webrag import WebRAG
from webrag.errors import InputError
from webrag.postgres.database import Database
from webrag.settings import Settings

QUESTION = "When does the broker close an idle connection?"
SHARED = "Each connection is counted against the limit of the account that opened it."
OLD = "The broker closes a connection that is idle for 95 seconds, whatever its clients want."
NEW = "The broker closes a connection that is idle for 30 seconds, whatever its clients want."
ADDED = "Clients may send a heartbeat frame to keep an idle connection open for longer."
REMOVED = "A connection that the broker closed while idle is listed in the file of lost sessions."


def page(*paragraphs: str, title: str = "Limits") -> str:
    body = "".join(f"<p>{each}</p>" for each in paragraphs)
    return f"<html><title>{title}</title><body><main><h1>Limits</h1>{body}</main></body></html>"


@pytest.fixture
def site(static_site: Any) -> Any:
    return static_site(
        {
            "/1.9/limits": page(SHARED, OLD, REMOVED),
            "/1.10/limits": page(SHARED, NEW, ADDED),
            "/plain": page(OLD, title="Plain"),
            "/1.9/same": page(SHARED),
            "/1.10/same": page(SHARED),
        }
    )


@pytest.fixture
async def rag(database: Database, site: Any) -> AsyncIterator[WebRAG]:
    config = database.config
    settings = Settings(
        data_dir=config.data_dir,
        collection=config.collection,
        allow_hosts=(urlsplit(str(site)).netloc,),
    )
    async with WebRAG(settings) as opened:
        await opened.ingest([f"{site}/1.9/limits", f"{site}/1.10/limits"])
        yield opened


@pytest.fixture
def host(site: Any) -> str:
    return urlsplit(str(site)).netloc


async def found(rag: WebRAG, **filters: Any) -> tuple[set[str | None], tuple[str, ...]]:
    result = await rag.search(QUESTION, **filters)
    return {item.chunk.version for item in result.chunks}, result.warnings


async def test_newest_version_is_searched_and_named(rag: WebRAG, host: str) -> None:
    versions, warnings = await found(rag)

    assert versions == {"1.10"}
    assert warnings == (
        f"Of {host}, version 1.10 was searched; also stored: 1.9. Ask for {host}@1.9 to search"
        " that one.",
    )


@pytest.mark.parametrize("name", ["{host}@1.9", "@1.9"])
async def test_version_that_is_asked_for_is_searched(rag: WebRAG, host: str, name: str) -> None:
    assert await found(rag, sites=name.format(host=host)) == ({"1.9"}, ())


async def test_missing_version_is_refused_in_every_search(rag: WebRAG, host: str) -> None:
    sites = f"{host}@2.0"

    with pytest.raises(InputError, match=r"not stored; there are 1\.10, 1\.9\."):
        await rag.search(QUESTION, sites=sites)
    with pytest.raises(InputError, match=r"not stored; there are 1\.10, 1\.9\."):
        await rag.ask(QUESTION, sites=sites)
    with pytest.raises(InputError, match=r"not stored; there are 1\.10, 1\.9\."):
        await rag.retriever(sites=sites).aretrieve(QUESTION)


async def test_named_page_is_answered_from_whatever_its_version(rag: WebRAG, site: Any) -> None:
    result = await rag.answer(f"{site}/1.9/limits", QUESTION)

    assert {item.chunk.version for item in result.chunks} == {"1.9"}


async def test_answer_in_sentences_is_of_the_version(rag: WebRAG, host: str) -> None:
    answer = await rag.ask(QUESTION, sites=f"{host}@1.9")

    assert {urlsplit(each.source_url).path for each in answer.citations} == {"/1.9/limits"}


async def test_answer_in_sentences_names_the_version_that_was_searched(
    rag: WebRAG, host: str
) -> None:
    unasked, asked = await rag.ask(QUESTION), await rag.ask(QUESTION, sites=f"{host}@1.9")

    assert any("version 1.10 was searched" in each for each in unasked.degraded)
    assert asked.degraded == ()


async def test_retriever_tells_the_version(rag: WebRAG, host: str) -> None:
    (node, *_) = await rag.retriever(sites=f"{host}@1.9").aretrieve(QUESTION)

    assert node.node.metadata["version"] == "1.9"


async def test_vector_store_filters_by_version(rag: WebRAG) -> None:
    filters = MetadataFilters(filters=[MetadataFilter(key="version", value="1.9")])

    nodes = await rag.vector_index().as_retriever(filters=filters).aretrieve(QUESTION)

    assert {urlsplit(each.node.metadata["source_url"]).path for each in nodes} == {"/1.9/limits"}


async def test_version_that_is_named_holds_for_later_states(rag: WebRAG, site: Any) -> None:
    first = await rag.ingest(f"{site}/plain", version="v3.2")
    later = await rag.ingest(f"{site}/plain", refresh=True)

    assert [page.version for page in (*first.pages, *later.pages)] == ["3.2", "3.2"]


async def test_stored_page_gets_the_version_that_is_named_later(rag: WebRAG, site: Any) -> None:
    await rag.ingest(f"{site}/plain")
    (stored,) = (await rag.ingest(f"{site}/plain", version="3.2")).pages

    assert (stored.outcome, stored.version) == ("stored", "3.2")
    assert await found(rag, sites="@3.2") == ({"3.2"}, ())


async def test_equal_pages_of_two_versions_are_both_stored(rag: WebRAG, site: Any) -> None:
    report = await rag.ingest([f"{site}/1.9/same", f"{site}/1.10/same"])

    assert sorted(each.version or "" for each in report.pages) == ["1.10", "1.9"]


async def test_package_of_a_folder_names_version_and_library(rag: WebRAG, tmp_path: Path) -> None:
    for version, text in (("1.0", OLD), ("2.0", NEW)):
        folder = tmp_path / f"checkout{version[0]}"
        folder.mkdir()
        (folder / "pyproject.toml").write_text(
            f'[project]\nname = "broker"\nversion = "{version}"\n'
        )
        (folder / "limits.md").write_text(f"# Limits\n\n{text}\n")
        await rag.ingest(folder)

    assert await found(rag, sites="broker@1.0") == ({"1.0"}, ())
    assert await found(rag, sites="file:") == (
        {"2.0"},
        (
            "Of broker, version 2.0 was searched; also stored: 1.0. Ask for broker@1.0 to search"
            " that one.",
        ),
    )


async def test_files_follow_their_package_to_its_next_version(rag: WebRAG, tmp_path: Path) -> None:
    package, text = tmp_path / "package.json", tmp_path / "limits.md"
    text.write_text(f"# Limits\n\n{OLD}\n")
    package.write_text('{"name": "broker", "version": "1.0.0"}')
    await rag.ingest(tmp_path)

    package.write_text('{"name": "broker", "version": "1.1.0"}')
    report = await rag.ingest(tmp_path)

    versions = {page.url.rpartition("/")[2]: page.version for page in report.pages}
    assert versions["limits.md"] == "1.1.0"


async def test_export_keeps_versions(rag: WebRAG, host: str, tmp_path: Path) -> None:
    await rag.export_corpus(tmp_path / "corpus.jsonl")
    await rag.clear()
    assert await found(rag) != ({"1.10"}, ())

    await rag.import_corpus(tmp_path / "corpus.jsonl")

    assert await found(rag, sites=f"{host}@1.9") == ({"1.9"}, ())

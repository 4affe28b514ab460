"""The operations as a program calls them, on an open WebRAG and on one that is not."""

import math
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from webrag.app import WebRAG
from webrag.errors import GuardrailsViolationError, InputError
from webrag.ingesting import Ingester
from webrag.ingestion.addresses import file_url
from webrag.postgres.database import Database
from webrag.question import Question
from webrag.retrieval.citation_checks import Citation
from webrag.settings import Settings, load_settings

PAGE = """<html><head><title>{0}</title></head><body><main><h1>{0}</h1>
<p>This page is about {0}, told at some length so that it counts as a page.</p></main></body>"""


@pytest.fixture
def site(static_site: Callable[..., Any]) -> Any:
    return static_site({"/a": PAGE.format("apples"), "/b": PAGE.format("bananas")})


@pytest.fixture
def settings(database: Database, site: Any) -> Settings:
    config = database.config
    loaded = load_settings(None, collection=config.collection, data_dir=config.data_dir)
    return loaded.allowing([urlsplit(site).netloc])


async def test_forget_asks_before_anything_is_deleted(settings: Settings, site: Any) -> None:
    asked: list[Any] = []

    def refuse(urls: Any) -> bool:
        asked.extend(urls)
        return False

    async with WebRAG(settings) as rag:
        await rag.ingest([f"{site}/a", f"{site}/b"])
        report = await rag.forget(older_than=timedelta(microseconds=1), confirm=refuse)
        status = await rag.status()

    assert asked == [f"{site}/a", f"{site}/b"]
    assert (report.removed, status.documents) == ((), 2)


async def test_page_that_was_never_obtained_is_forgotten_too(settings: Settings, site: Any) -> None:
    async with WebRAG(settings) as rag:
        await rag.ingest(f"{site}/a")
        await rag.ingest(f"{site}/missing")
        report = await rag.forget([f"{site}/missing", f"{site}/never"])
        status = await rag.status()

    assert (report.removed, report.unknown) == ((f"{site}/missing",), (f"{site}/never",))
    assert (status.failures, status.documents) == ((), 1)


async def test_age_that_would_mean_every_page_forgets_none(
    settings: Settings, site: Any, subtests: pytest.Subtests
) -> None:
    ages: list[Any] = [
        timedelta(days=-1), timedelta(0), timedelta.max, timedelta(seconds=-0.5), -1, "1d",
    ]  # fmt: skip
    async with WebRAG(settings) as rag:
        await rag.ingest(f"{site}/a")
        for age in ages:
            with subtests.test(age=repr(age)):
                with pytest.raises(InputError, match=r"^older_than is "):
                    await rag.forget(older_than=age, confirm=True)

                assert (await rag.status()).documents == 1


@pytest.fixture
async def crowded(
    settings: Settings, static_site: Callable[..., Any]
) -> AsyncIterator[tuple[WebRAG, str]]:
    """21 stored pages of one host."""
    many = static_site({f"/{n}": PAGE.format(f"apples number {n}") for n in range(21)})
    host = urlsplit(many).netloc
    async with WebRAG(settings.allowing([host])) as rag:
        await rag.ingest([f"{many}/{n}" for n in range(21)])
        yield rag, host


@pytest.mark.parametrize(
    ("confirm", "left"),
    [(True, 0), (lambda urls: len(urls) != 21, 21)],
)
async def test_confirmation_decides_about_more_than_twenty_pages(
    crowded: tuple[WebRAG, str], confirm: Any, left: int
) -> None:
    rag, host = crowded
    await rag.forget(site=host, confirm=confirm)

    assert (await rag.status()).documents == left


@pytest.mark.parametrize("by", ["site", "urls"])
async def test_more_than_twenty_pages_are_not_forgotten_unasked(
    crowded: tuple[WebRAG, str], by: str
) -> None:
    rag, host = crowded
    named: dict[str, Any] = {
        "site": {"site": host},
        "urls": {"urls": [f"http://{host}/{n}" for n in range(21)]},
    }

    with pytest.raises(InputError, match="would forget 21 pages"):
        await rag.forget(**named[by])

    assert (await rag.status()).documents == 21


async def test_twenty_pages_are_forgotten_unasked(crowded: tuple[WebRAG, str]) -> None:
    rag, host = crowded

    report = await rag.forget([f"http://{host}/{n}" for n in range(20)])

    assert len(report.removed) == 20


@pytest.mark.parametrize("value", [-1, True, math.nan, "three"])
@pytest.mark.parametrize("name", ["top_k", "expansion_budget", "deadline_s"])
async def test_number_that_cannot_be_used_is_refused_by_name(
    settings: Settings, name: str, value: Any
) -> None:
    rag = WebRAG(settings)
    given: dict[str, Any] = {
        "top_k": lambda: rag.search("Apples?", top_k=value),
        "expansion_budget": lambda: rag.answer("http://a.test/", "?", expansion_budget=value),
        "deadline_s": lambda: rag.verify(
            Citation(url="http://a.test/", quote="Apples."), deadline_s=value
        ),
    }

    with pytest.raises(InputError, match=f"^{name} is "):
        await given[name]()


async def test_site_and_age_hold_together(settings: Settings, site: Any) -> None:
    async with WebRAG(settings) as rag:
        await rag.ingest(f"{site}/a")
        young = await rag.forget(site=urlsplit(site).netloc, older_than=timedelta(hours=1))
        other = await rag.forget(site="docs.test", older_than=timedelta(microseconds=1))
        both = await rag.forget(site=f"{site}/x", older_than=timedelta(microseconds=1))

    assert (young.removed, other.removed, both.removed) == ((), (), (f"{site}/a",))


async def test_page_is_forgotten_by_any_of_its_urls(
    static_site: Callable[..., Any], settings: Settings
) -> None:
    moved = static_site(
        {"/new": PAGE.format("x"), "/old": lambda _: (301, {"Location": "/new"}, "")}
    )
    async with WebRAG(settings.allowing([urlsplit(moved).netloc])) as rag:
        await rag.ingest(f"{moved}/old")
        report = await rag.forget(f"{moved}/old")

    assert report.removed == (f"{moved}/new",)


async def test_open_instance_follows_a_reindexing(
    settings: Settings, site: Any, embedding_service: Any
) -> None:
    """As a server does while somebody renews the vectors on the command line."""
    either = settings.model_copy(
        update={
            "embedding_base_url": embedding_service.url,
            "embedding_model": "test-embedding",
            "embedding_dimensions": 48,
        }
    )
    chosen = either.model_copy(update={"embedding_provider": "openai_compatible"})
    async with WebRAG(either) as rag:
        await rag.ingest(f"{site}/a")
        await WebRAG(chosen).reindex()

        found = await rag.search("What about apples?")
        report = await rag.ingest(f"{site}/b")
        status = await rag.status()

    assert [each.chunk.source_url for each in found.chunks] == [f"{site}/a"]
    assert report.failed == {}
    assert (status.documents, status.embedding_dimensions) == (2, 48)


class _NoApples:
    stage: Any = "input"

    def check(self, checked: Any) -> None:
        raise GuardrailsViolationError("input", "apples", "Ask about pears.")


async def test_guardrails_of_the_caller_stay_after_a_reindexing(
    settings: Settings, site: Any, embedding_service: Any
) -> None:
    either = settings.model_copy(
        update={
            "embedding_base_url": embedding_service.url,
            "embedding_model": "test-embedding",
            "embedding_dimensions": 48,
        }
    )
    chosen = either.model_copy(update={"embedding_provider": "openai_compatible"})
    async with WebRAG(either, guardrails=[_NoApples()]) as rag:
        await rag.ingest(f"{site}/a")
        await WebRAG(chosen).reindex()

        answered = await rag.ask("What about apples?")

    assert answered.answer == "Ask about pears."


async def test_operations_work_without_opening(settings: Settings, site: Any) -> None:
    async with WebRAG(settings) as rag:
        await rag.ingest(f"{site}/a")
    closed = WebRAG(settings)

    assert (await closed.check_corpus(everything=True)).is_sound
    sizes = {each.name: each.documents for each in await closed.collections()}
    assert sizes[settings.collection] == 1
    assert await closed.drop_collection()
    assert not await closed.drop_collection()


async def test_import_needs_an_open_instance(settings: Settings, tmp_path: Any) -> None:
    with pytest.raises(InputError, match="not open"):
        await WebRAG(settings).import_corpus(tmp_path / "x")


@pytest.mark.parametrize("asks", [WebRAG.evidence_for, WebRAG.answer_to])
async def test_corpus_reindexed_while_a_folder_is_read_is_searched_with_the_new_model(
    settings: Settings,
    embedding_service: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asks: Any,
) -> None:
    (tmp_path / "apples.md").write_text("# Apples\n\nApples are picked in September.\n")
    service = {
        "embedding_base_url": embedding_service.url,
        "embedding_model": "test-embedding",
        "embedding_dimensions": 48,
    }
    chosen = settings.model_copy(update={**service, "embedding_provider": "openai_compatible"})
    located = Ingester.located

    async def reindexed_meanwhile(*args: Any) -> Any:
        found = await located(*args)
        await WebRAG(chosen).reindex()
        return found

    async with WebRAG(settings.model_copy(update=service)) as rag:
        await rag.ingest(tmp_path)
        monkeypatch.setattr(Ingester, "located", reindexed_meanwhile)
        question = Question.of("When are apples picked?", urls=[file_url(tmp_path)])
        found = await asks(rag, question)

    assert "picked in September" in repr(found.model_dump())

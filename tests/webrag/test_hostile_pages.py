"""Bad pages among good ones: each fails by name, and the good ones are stored."""

import gzip
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from webrag.app import WebRAG
from webrag.postgres.database import Database
from webrag.settings import load_settings

QUESTION = "When is the pump primed?"
GOOD = """<html><head><title>Pump {0}</title></head><body><main><h1>Pump {0}</h1>
<p>The pump of station {0} is primed before it is started, in any weather and at any hour.</p>
<p>See <a href="/first">the first</a> and <a href="/second">the second</a> pump.</p>
{1}</main></body></html>"""
BOMB = {"Content-Type": "text/html", "Content-Encoding": "gzip"}

HOSTILE: dict[str, tuple[dict[str, str], bytes, str]] = {
    "sections": ({"Content-Type": "text/markdown"}, b"# a\n\nb\n\n" * 10_100, "20,000 pieces"),
    "bomb": (BOMB, gzip.compress(b"<p>x" * 3_000_000, 1), "10.0 MB"),
    "no-gzip": (BOMB, b"<p>This is not compressed.", "cannot be read"),
    "zeros": ({"Content-Type": "text/html"}, b"\x00" * 10_000, ""),
    "comments": ({"Content-Type": "application/octet-stream"}, b"<!---->" * 72, ""),
    "invisible": (
        {"Content-Type": "text/html; charset=utf-8"},
        ("<p>" + "\u200b\u0301" * 5_000).encode(),
        "",
    ),
}


BAD_LINKS = "".join(
    f'<p>When the pump is primed: <a href="/{name}">{name}</a>.</p>' for name in HOSTILE
)
PAGES = {
    "/": GOOD.format("zero", BAD_LINKS),
    "/first": GOOD.format("one", ""),
    "/second": GOOD.format("two", ""),
}


def answering(headers: dict[str, str], body: bytes) -> Callable[[Any], Any]:
    return lambda _: (200, headers, body)


@pytest.fixture
def site(static_site: Callable[..., Any]) -> Any:
    hostile = {f"/{name}": answering(*answer[:2]) for name, answer in HOSTILE.items()}
    return static_site(PAGES | hostile)


@pytest.fixture
def seeds(site: Any) -> list[str]:
    """A good page, the hostile ones, another good page."""
    return [f"{site}/first", *(f"{site}/{name}" for name in HOSTILE), f"{site}/second"]


@pytest.fixture
async def rag(database: Database, site: Any) -> AsyncIterator[WebRAG]:
    config = database.config
    settings = load_settings(
        None,
        collection=config.collection,
        data_dir=config.data_dir,
        fetching={
            "extraction_timeout_s": 60
        },  # the refusals are what is tried here, on a busy machine too
    )
    async with WebRAG(settings.allowing([urlsplit(site).netloc])) as opened:
        yield opened


def unnamed(failures: Mapping[str, str], site: str) -> dict[str, str]:
    """Hostile pages whose failure is not told, or does not say what was wrong."""
    told = {name: failures.get(f"{site}/{name}", "nothing is told") for name in HOSTILE}
    return {name: reason for name, reason in told.items() if HOSTILE[name][2] not in reason}


async def test_batch_goes_on_without_hostile_pages(
    rag: WebRAG, site: Any, seeds: list[str]
) -> None:
    report = await rag.ingest(seeds)

    assert [page.url for page in report.pages] == [seeds[0], seeds[-1]]
    assert unnamed(report.failed, site) == {}


async def test_crawl_goes_on_without_hostile_pages(rag: WebRAG, site: Any) -> None:
    report = await rag.ingest_site(f"{site}/")

    assert (report.pages, report.ended) == ({"indexed": 3}, "complete")
    assert unnamed(report.failures, site) == {}


@pytest.mark.parametrize("mode", ["fast", "deep"])
async def test_answer_goes_on_without_hostile_seeds(
    rag: WebRAG, site: Any, seeds: list[str], mode: Any
) -> None:
    result = await rag.answer(seeds, QUESTION, research_mode=mode)

    assert {chunk.chunk.source_url for chunk in result.chunks} == {seeds[0], seeds[-1]}
    told = " ".join((*result.warnings, *result.degraded))
    assert unnamed({url: told for url in seeds if url in told}, site) == {}

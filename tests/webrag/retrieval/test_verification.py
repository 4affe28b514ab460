"""Quotations checked on a real database against a site on loopback that changes."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.kept_collections import KeptCollections
from webrag import WebRAG
from webrag.errors import InputError
from webrag.retrieval.citation_checks import Citation, CitationCheck
from webrag.settings import load_settings

FERRY = "The ferry leaves the island at seven, at noon and at five."
NOTICE = "Tickets are sold on board by the mate, who takes coins only."


def page(*paragraphs: str) -> str:
    inside = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return f"<html><head><title>Ferry</title></head><body><main><h1>Ferry</h1>{inside}</main>"


@pytest.fixture
def routes() -> dict[str, Any]:
    return {"/": page(FERRY, NOTICE), "/other": page(NOTICE)}


@pytest.fixture
def site(static_site: Any, routes: dict[str, Any]) -> Any:
    return static_site(routes)


@pytest.fixture
async def rag(
    postgres_dir: Path, kept_collections: KeptCollections, site: Any
) -> AsyncIterator[WebRAG]:
    name = f"test_{uuid.uuid4().hex[:16]}"
    settings = load_settings(data_dir=postgres_dir, collection=name).allowing(["127.0.0.1"])
    async with WebRAG(settings) as opened:
        await opened.ingest(f"{site}/")
        yield opened
        await kept_collections.take_back_from(opened)


async def checked(rag: WebRAG, site: Any, quote: str = FERRY, **options: Any) -> CitationCheck:
    given = {"url": f"{site}/", "quote": quote} | options
    live = given.pop("live", True)
    return (await rag.verify(Citation(**given), live=live))[0]


async def test_quotation_of_a_brief_is_exact_in_both_versions(rag: WebRAG, site: Any) -> None:
    result = await rag.search("When does the ferry leave the island?")
    span = next(block.citation for block in rag.evidence(result) if block.citation)
    place = {"char_start": span.char_start, "char_end": span.char_end}

    check = await checked(rag, site, span.verbatim_text, **place)

    assert (check.stored.state, check.live.state) == ("exact", "exact")
    assert check.stored.text == check.live.text == span.verbatim_text


@pytest.mark.parametrize(
    ("now", "state", "text"),
    [
        pytest.param(page("New first lines.", FERRY), "moved", FERRY, id="moved"),
        pytest.param(
            page("The ferry leaves the island at eight, at noon and at five."),
            "changed",
            "The ferry leaves the island at eight, at noon and at five",
            id="changed",
        ),
        pytest.param(page(NOTICE * 3), "absent", None, id="removed"),
    ],
)
async def test_live_page_tells_what_became_of_a_quotation(
    rag: WebRAG, site: Any, routes: dict[str, Any], now: str, state: str, text: str | None
) -> None:
    stored = await rag.markdown(f"{site}/")
    start = str(stored).index(FERRY)
    routes["/"] = now

    check = await checked(rag, site, char_start=start, char_end=start + len(FERRY))

    assert (check.stored.state, check.live.state) == ("exact", state)
    assert check.live.text == text


@pytest.mark.parametrize(("is_edited", "unchanged"), [(False, True), (True, False)])
async def test_check_tells_whether_the_page_is_as_it_was_stored(
    rag: WebRAG, site: Any, routes: dict[str, Any], is_edited: bool, unchanged: bool
) -> None:
    if is_edited:
        routes["/"] = page(NOTICE * 3)

    check = await checked(rag, site, "A sentence that somebody made up, about trains.")

    assert (check.live.state, check.page_unchanged) == ("absent", unchanged)


async def test_verifying_stores_nothing(rag: WebRAG, site: Any, routes: dict[str, Any]) -> None:
    routes["/"] = page("Everything is different now, and nothing else is said here at all.")
    before = await rag.markdown(f"{site}/")

    await checked(rag, site)
    await checked(rag, site, NOTICE, url=f"{site}/other")

    assert await rag.markdown(f"{site}/") == before
    assert await rag.markdown(f"{site}/other") is None


async def test_page_that_is_not_stored_is_checked_live(rag: WebRAG, site: Any) -> None:
    check = await checked(rag, site, NOTICE, url=f"{site}/other")

    assert (check.stored.state, check.live.state) == ("not_stored", "exact")


async def test_deleted_page_is_gone(rag: WebRAG, site: Any, routes: dict[str, Any]) -> None:
    del routes["/"]

    check = await checked(rag, site)

    assert (check.stored.state, check.live.state) == ("exact", "gone")
    assert "404" in str(check.live.reason)


async def test_private_address_is_refused_and_reported(rag: WebRAG, site: Any) -> None:
    check = await checked(rag, site, url="http://10.0.0.1/")

    assert check.live.state == "unreachable"
    assert "WEBRAG_ALLOW_HOSTS=10.0.0.1" in str(check.live.reason)


async def test_stored_version_alone_needs_no_request(rag: WebRAG, site: Any) -> None:
    before = len(site.requests)

    check = await checked(rag, site, live=False)

    assert (check.live.state, len(site.requests)) == ("unchecked", before)


async def test_each_live_page_is_fetched_once(rag: WebRAG, site: Any) -> None:
    before = len(site.paths)

    await rag.verify([Citation(url=f"{site}/", quote=quote) for quote in (FERRY, NOTICE)])

    assert site.paths[before:] == ["/"]


async def test_pages_that_take_too_long_are_left_unchecked(rag: WebRAG, site: Any) -> None:
    checks = await rag.verify([Citation(url=f"{site}/", quote=FERRY)], deadline_s=0)

    assert (checks[0].stored.state, checks[0].live.state) == ("exact", "unchecked")


async def test_passage_id_stands_for_page_and_place(rag: WebRAG) -> None:
    result = await rag.search("When does the ferry leave?")
    passage = result.chunks[0].chunk.chunk_id

    check = (await rag.verify(Citation(passage_id=passage, quote=FERRY)))[0]

    assert check.stored.state == "exact"


UNCHECKABLE = {
    "no page": (Citation(quote="x"), "names no page"),
    "no text": (Citation(quote=" ", url="https://a.example/"), "is empty"),
    "offsets": (
        Citation(quote="x", url="https://a.example/", char_start=5, char_end=2),
        "char_start is 5",
    ),
    "scheme": (Citation(quote="x", url="ftp://a.example/"), "ftp"),
    "id": (Citation(quote="x", passage_id=uuid.uuid4()), "No stored passage"),
    "long": (Citation(quote="x" * 10_001, url="https://a.example/"), "10,001"),
}


async def test_citation_that_cannot_be_checked_is_refused(
    rag: WebRAG, subtests: pytest.Subtests
) -> None:
    for name, (citation, words) in UNCHECKABLE.items():
        with subtests.test(name), pytest.raises(InputError, match=words):
            await rag.verify(citation)

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from webrag.errors import InputError, PageGoneError, UnusablePageError
from webrag.ingestion.browser import BrowserRenderer
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.models import NormalizedDocument, NotModified, Validators
from webrag.ingestion.service import ExtractionPool, IngestionService

PAGE = (
    '<html lang="en"><title>Guide</title><main><h1>Guide</h1><p>Do <a href="/b">b</a>.</p></main>'
)


@pytest.fixture
async def service(
    make_fetcher: Callable[..., HttpFetcher], pool: ExtractionPool
) -> AsyncIterator[IngestionService]:
    opened = IngestionService(make_fetcher(), pool)
    yield opened
    await opened.aclose()


async def test_address_becomes_a_document(service: IngestionService, static_site: Any) -> None:
    site = static_site({"/a": PAGE}, validators=True)

    document = await service.ingest(f"{site}/a?utm_source=x#top")

    assert isinstance(document, NormalizedDocument)
    assert document.url == f"{site}/a"
    assert document.markdown == "# Guide\n\nDo b."
    assert (document.title, document.language, document.source) == ("Guide", "en", "builtin")
    assert document.links[0].url == f"{site}/b"
    assert document.etag


SHELL = '<title>Hives</title><div id="app"></div><script src="{}"></script>'
WRITES = "document.getElementById('app').innerHTML = '<h1>Hives</h1><p>A hive weighs 40 kg.</p>'"


@pytest.fixture
async def drawing(
    make_fetcher: Callable[..., HttpFetcher], pool: ExtractionPool, chromium: Path
) -> AsyncIterator[Callable[..., IngestionService]]:
    """Makes services that draw pages in a real browser."""
    fetcher = make_fetcher(allowed_hosts=("127.0.0.1", "localhost"))
    renderer = BrowserRenderer(fetcher, chromium)
    yield lambda **options: IngestionService(fetcher, pool, renderer=renderer, **options)
    await renderer.aclose()


async def test_page_whose_text_scripts_write_is_drawn(
    drawing: Callable[..., IngestionService], static_site: Any
) -> None:
    site = static_site({"/": SHELL.format("/app.js"), "/app.js": WRITES})
    document = await drawing().ingest(f"{site}/")
    assert (document.markdown, document.source) == ("# Hives\n\nA hive weighs 40 kg.", "browser")


async def test_page_with_text_is_not_drawn(
    drawing: Callable[..., IngestionService], static_site: Any
) -> None:
    site = static_site({"/": PAGE.replace("<main>", '<script src="/app.js"></script><main>')})
    document = await drawing().ingest(f"{site}/")
    assert (document.source, site.paths) == ("builtin", ["/"])


async def test_every_page_can_be_drawn(
    drawing: Callable[..., IngestionService], static_site: Any
) -> None:
    site = static_site({"/": PAGE})
    assert (await drawing(render_always=True).ingest(f"{site}/")).source == "browser"


async def test_files_of_another_site_are_had_when_the_page_is_empty_without_them(
    drawing: Callable[..., IngestionService], static_site: Any
) -> None:
    library = static_site({"/app.js": WRITES})
    script = library.url.replace("127.0.0.1", "localhost") + "/app.js"
    site = static_site({"/": SHELL.format(script)})
    assert "40 kg" in (await drawing().ingest(f"{site}/")).markdown


async def test_page_that_stays_empty_in_the_browser_is_reported(
    drawing: Callable[..., IngestionService], static_site: Any
) -> None:
    site = static_site({"/": SHELL.format("/app.js"), "/app.js": "1 + 1"})
    with pytest.raises(UnusablePageError, match="draws no text on it either"):
        await drawing().ingest(f"{site}/")


async def test_current_version_is_reported(service: IngestionService, static_site: Any) -> None:
    site = static_site({"/a": PAGE}, validators=True)
    document = await service.ingest(f"{site}/a")
    assert isinstance(document, NormalizedDocument)

    again = await service.ingest(f"{site}/a", validators=Validators(etag=document.etag))

    assert isinstance(again, NotModified)


async def test_document_after_a_redirect_is_known_by_its_last_address(
    service: IngestionService, static_site: Any
) -> None:
    site = static_site({"/a": lambda _: (301, {"Location": "/b#x"}, ""), "/b": PAGE})

    document = await service.ingest(f"{site}/a")

    assert isinstance(document, NormalizedDocument)
    assert (document.url, document.requested_url) == (f"{site}/b", f"{site}/a")


async def test_errors_keep_their_kind(service: IngestionService, static_site: Any) -> None:
    site = static_site({"/empty": "<body></body>"})

    with pytest.raises(PageGoneError):
        await service.ingest(f"{site}/gone")
    with pytest.raises(UnusablePageError):
        await service.ingest(f"{site}/empty")
    with pytest.raises(InputError):
        await service.ingest("no address")


async def test_markdown_page_is_ingested(service: IngestionService, static_site: Any) -> None:
    site = static_site({"/a.md": "# Head\n\nText with [a link](/x)."})

    document = await service.ingest(f"{site}/a.md")

    assert isinstance(document, NormalizedDocument)
    assert document.markdown == "# Head\n\nText with a link."


TWIN = '<link rel="alternate" type="text/markdown" href="/a.md">'
MARKDOWN = b"# Guide\n\nThe text in Markdown."


async def test_markdown_version_stands_in_for_a_page_drawn_by_scripts(
    service: IngestionService, static_site: Any
) -> None:
    shell = f'<head>{TWIN}</head><body><div id="root"></div><script src="/x.js"></script></body>'
    site = static_site({"/a": shell, "/a.md": MARKDOWN}, validators=True)

    document = await service.ingest(f"{site}/a")

    assert isinstance(document, NormalizedDocument)
    assert document.markdown == "# Guide\n\nThe text in Markdown."
    assert (document.url, document.requested_url) == (f"{site}/a", f"{site}/a")
    assert document.etag is None


async def test_markdown_version_costs_no_request_when_the_page_is_readable(
    service: IngestionService, static_site: Any
) -> None:
    site = static_site({"/a": TWIN + PAGE, "/a.md": MARKDOWN})

    document = await service.ingest(f"{site}/a")

    assert isinstance(document, NormalizedDocument)
    assert document.markdown_url == f"{site}/a.md"
    assert site.paths == ["/a"]


async def test_markdown_version_can_be_preferred(
    make_fetcher: Callable[..., HttpFetcher], pool: ExtractionPool, static_site: Any
) -> None:
    site = static_site(
        {"/a": TWIN + PAGE, "/a.md": MARKDOWN, "/b": TWIN.replace("a.md", "c.md") + PAGE}
    )
    service = IngestionService(make_fetcher(), pool, prefer_markdown=True)

    first, second = await service.ingest(f"{site}/a"), await service.ingest(f"{site}/b")

    assert isinstance(first, NormalizedDocument)
    assert isinstance(second, NormalizedDocument)
    assert first.markdown == "# Guide\n\nThe text in Markdown."
    assert (first.url, first.language) == (f"{site}/a", "en")
    assert second.markdown == "# Guide\n\nDo b."


async def test_wall_keeps_its_kind_through_the_worker(
    service: IngestionService, static_site: Any
) -> None:
    site = static_site({"/a": "<title>Page not found</title><h1>Page not found</h1>"})

    with pytest.raises(UnusablePageError) as caught:
        await service.ingest(f"{site}/a")

    assert (caught.value.kind, bool(caught.value.hint)) == ("soft_404", True)
